"""Run the service: uvicorn, which ends what it has begun before it stops."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from evokey.serve import logs
from evokey.serve.app import build
from evokey.serve.options import Options

HEAD_SECONDS = 20.0
"""Seconds in which the head of a first request must have arrived."""
CONNECTIONS = 1_000
ENDING = 30
"""Seconds that requests have to end, when the service is stopped."""


class Prompt(H11Protocol):
    """Closes a connection on which no request arrives: somebody may hold many of them open."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        asyncio.get_running_loop().call_later(HEAD_SECONDS, self._close_if_silent)

    def _close_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


def serve(options: Options) -> None:
    logs.configure()
    uvicorn.run(
        build(options), host=options.host, port=options.port, http=Prompt, log_config=None, access_log=False,
        server_header=False, limit_concurrency=CONNECTIONS, timeout_graceful_shutdown=ENDING,
    )  # fmt: skip
