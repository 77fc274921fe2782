"""Structured logs: one line of JSON for each request, without keys, queries or texts."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evokey.serve.metrics import Metrics

log = logging.getLogger("evokey.serve.requests")


class JSONFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"time": round(record.created, 3), "level": record.levelname.lower()}
        line |= record.args if isinstance(record.args, dict) else {"message": record.getMessage()}
        if record.exc_info and record.exc_info[0]:
            line["exception"] = record.exc_info[0].__name__
            line["at"] = _place(record.exc_info[2])
        return json.dumps(line)


def _place(traceback: Any) -> str:
    """Where an exception was raised. Its text is left out: it may quote what somebody asked."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}" if traceback else ""


class Requests:
    """Logs and counts every request by its route, never by its path: a path may hold a name."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.running.inc()
        try:
            await self._app(scope, receive, note)
        finally:
            self._metrics.running.dec()
            self._write(scope, status, time.perf_counter() - began)

    def _write(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self._metrics.requests.labels(route, scope["method"], str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        state: dict[str, Any] = scope.get("state") or {}
        told = {"method": scope["method"], "route": route, "status": status, "ms": round(seconds * 1000, 1)}
        told |= {name: state[name] for name in ("key", "collection", "query_id") if state.get(name)}
        log.info("request", told)


def configure() -> None:
    """Lines of JSON on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JSONFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("httpx").setLevel(logging.WARNING)
