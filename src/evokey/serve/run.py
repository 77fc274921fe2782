"""Run the service: uvicorn, which ends what it has begun before it stops."""

from __future__ import annotations

import asyncio
import base64
import gc
import os
import pickle
from typing import Any

import uvicorn
from fastapi import FastAPI
from threadpoolctl import threadpool_limits
from uvicorn.protocols.http.h11_impl import H11Protocol

from evokey.serve import logs
from evokey.serve.app import build
from evokey.serve.options import Options

HEAD_SECONDS = 20.0
"""Seconds in which the head of a first request must have arrived."""
PASSED = "EVOKEY_SERVICE_OPTIONS"
IDLE = 75
"""Seconds for which a connection waits for its next request: more than a proxy in front waits."""
CONNECTIONS = 1_000
ENDING = 30
"""Seconds that requests have to end, when the service is stopped."""


BLAS = "OPENBLAS_NUM_THREADS"
YOUNG = (10_000, 10, 100)
"""Thresholds of the garbage collector: all objects are looked at a hundredth as often as by default."""


class Prompt(H11Protocol):
    """Closes a connection on which no request arrives: somebody may hold many of them open."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        asyncio.get_running_loop().call_later(HEAD_SECONDS, self._close_if_silent)

    def _close_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


def make_app() -> FastAPI:
    """In each of several workers: the options come from the process that started it."""
    logs.configure()
    avoid_pauses()
    options: Options = pickle.loads(base64.b64decode(os.environ[PASSED]))
    return build(options)


def avoid_pauses() -> None:
    """What else makes all searches wait. Threads of BLAS spin while they wait for each other: the products of a search
    are small, and those of the learner, whose process inherits the variable, take half of the processor time without.
    And the garbage collector would look at all that was imported, a tenth of a second each time."""
    threadpool_limits(int(os.environ.setdefault(BLAS, "1")), user_api="blas")
    gc.collect()
    gc.freeze()
    gc.set_threshold(*YOUNG)


def serve(options: Options) -> None:
    logs.configure()
    avoid_pauses()
    several = options.workers > 1
    if several:
        os.environ[PASSED] = base64.b64encode(pickle.dumps(options)).decode()
    uvicorn.run(
        "evokey.serve.run:make_app" if several else build(options),
        factory=several,
        workers=options.workers,
        host=options.host,
        port=options.port,
        http=Prompt,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=ENDING,
    )
