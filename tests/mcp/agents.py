"""MCP servers to test, and the SDK's own client to call them."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from evokey.mcp.run import PATH, build_app
from evokey.serve.options import Options

Script = Callable[[Client], Awaitable[Any]]


def talk(server: Any, script: Script, mode: str = "auto") -> Any:
    """Run a script with a connected client; what it returns."""

    async def run() -> Any:
        async with Client(server, mode=mode) as client:
            return await script(client)

    return anyio.run(run)


def by_stdio(at: Path | str, *options: str) -> StdioServerParameters:
    command = ["-m", "evokey", "mcp", "--at", str(at), *options]
    return StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))


@asynccontextmanager
async def _with_key(address: str, key: str | None) -> AsyncIterator[Any]:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        streamable_http_client(address, http_client=http) as streams,
    ):
        yield streams


def by_http(address: str, key: str | None = None) -> Any:
    return _with_key(address, key)


@contextmanager
def serving(options: Options) -> Iterator[str]:
    """A server on a free port; its address. It is stopped at the end, also after a failure."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(build_app(options), host="127.0.0.1", port=port, log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not server.started:
            assert thread.is_alive() and time.monotonic() < deadline, "the server does not start"
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}{PATH}"
    finally:
        server.should_exit = True
        thread.join(30)


async def call(client: Client, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """What a tool answers; its error is an AssertionError."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refuse(client: Client, tool: str, /, **arguments: Any) -> str:
    """The error that a tool answers."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return str(result.content[0].text)  # type: ignore[union-attr]
