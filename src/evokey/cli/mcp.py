"""The command mcp: a memory for agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evokey.cli import screen
from evokey.cli.options import HERE, At, existing, folder_of
from evokey.errors import UnknownComponent
from evokey.postgres.address import Address


def mcp(
    at: At = HERE,
    http: Annotated[bool, typer.Option("--http", help="Serve many clients over HTTP; default: one, by stdio.")] = False,
    host: Annotated[str, typer.Option(help="With --http: address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="With --http: port to listen on.")] = 8322,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="With --http: no API keys; for this machine alone.")
    ] = False,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="By stdio: what the agent may do, of read, teach and admin. Default: all."),
    ] = None,
    actor: Annotated[str, typer.Option(help="By stdio: whose lessons they are; can be forgotten later.")] = "agent",
    learn_after: Annotated[
        int | None, typer.Option(min=1, help="Evolve by itself after this many new lessons.")
    ] = None,
    files: Annotated[
        Path | None, typer.Option(help="Folder of the API keys, where the memory is in PostgreSQL.")
    ] = None,
) -> None:
    """Offer a memory to agents as an MCP server. Needs: pip install 'evokey[mcp]'."""
    with screen.report_errors(False):
        run, server, options, keys = _load()
        existing(at).close()
        if files is None and isinstance(at, Address):
            files = folder_of(at)
        user = server.name_user(scope or ["read", "teach", "admin"], actor)
        keys.check(keys.Key("stdio", user.scopes))
        learning = options.Learning(lessons=learn_after)
        chosen = options.Options(
            at=at, files=files, host=host, port=port, auth=http and not no_auth, learning=learning
        )  # fmt: skip
        if not http:
            run.serve_stdio(chosen, user)
            return
        screen.say(f"evokey serves MCP at http://{host}:{port}{run.PATH}")
        run.serve_http(chosen)


def _load() -> tuple[Any, Any, Any, Any]:
    try:
        from evokey.mcp import run, server
        from evokey.serve import keys, options
    except ModuleNotFoundError as error:
        raise UnknownComponent(f"the MCP server needs {error.name}: pip install 'evokey[mcp]'") from error
    return run, server, options, keys


COMMANDS = (mcp,)
