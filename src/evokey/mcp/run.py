"""Run the MCP server: over stdin and stdout for one client, or over HTTP for many."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool

from evokey.mcp.server import build
from evokey.serve.keys import Key
from evokey.serve.options import Options
from evokey.serve.run import CONNECTIONS, ENDING, Prompt
from evokey.serve.service import Service

PATH = "/mcp"
LOCAL = TransportSecuritySettings(
    allowed_hosts=["127.0.0.1:*", "localhost:*", "[::1]:*"],
    allowed_origins=["http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*"],
)
"""Without keys, a page in a browser must not reach the server by a name that it has made point to this machine."""
BY_KEY = TransportSecuritySettings(enable_dns_rebinding_protection=False)


def serve_stdio(options: Options, user: Key) -> None:
    service = Service.build(options)
    service.start()
    try:
        build(service, user).run("stdio")
    finally:
        service.stop()


def serve_http(options: Options) -> None:
    uvicorn.run(
        build_app(options), host=options.host, port=options.port, http=Prompt, log_level="warning",
        server_header=False, limit_concurrency=CONNECTIONS, timeout_graceful_shutdown=ENDING,
    )  # fmt: skip


def build_app(options: Options) -> Starlette:
    """The application; its memory is opened when it starts, and closed when it ends."""
    service = Service.build(options)
    app = build(service).streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=options.limits.body,
        transport_security=BY_KEY if options.auth else LOCAL,
        host=options.host,
    )
    sessions = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await run_in_threadpool(service.start)
        try:
            async with sessions(app):
                yield
        finally:
            await run_in_threadpool(service.stop)

    app.router.lifespan_context = lifespan
    return app
