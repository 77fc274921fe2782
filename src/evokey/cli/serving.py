"""The commands serve, api-keys and compare."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from evokey import checks
from evokey.cli import screen
from evokey.cli.options import HERE, AsJson, At, existing
from evokey.errors import InvalidInput, UnknownComponent
from evokey.inspect import comparison

if TYPE_CHECKING:
    from evokey.serve.keys import Key, KeyRing

Root = Annotated[Path | None, typer.Option(help="Folder of several memories, each a collection; instead of --at.")]
DAY = 86_400.0
api_keys = typer.Typer(help="API keys of the service: create, list, rotate, revoke.", no_args_is_help=True)


def serve(
    at: At = HERE,
    root: Root = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on.")] = 8321,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="No API keys: everybody on this machine may do everything.")
    ] = False,
    learn_after: Annotated[
        int | None, typer.Option(min=1, help="Evolve by itself after this many new lessons.")
    ] = None,
    learn_every: Annotated[
        float | None, typer.Option(min=0.01, help="Evolve by itself every so many minutes, if there are new lessons.")
    ] = None,
    learn_saturated: Annotated[
        bool, typer.Option("--learn-saturated", help="Evolve by itself when new lessons bring little that is new.")
    ] = False,
    learn_traffic: Annotated[
        bool, typer.Option("--learn-traffic", help="Also learn from the queries that are searched (needs a verifier).")
    ] = False,
    auto_rollback: Annotated[
        bool,
        typer.Option("--auto-rollback", help="Roll back an epoch after which votes or protected queries get worse."),
    ] = False,
    shadow: Annotated[
        str | None,
        typer.Option(help="Epoch (a number, or candidate) that answers every search too, only to be recorded."),
    ] = None,
    forget_shown: Annotated[
        bool, typer.Option("--no-history", help="Do not keep what was shown; then nothing can be rated.")
    ] = False,
    tracing: Annotated[bool, typer.Option("--tracing", help="OpenTelemetry spans; they hold queries.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes; several need a memory in PostgreSQL.")] = 1,
    files: Annotated[
        Path | None, typer.Option(help="Folder of the API keys, where the memory is in PostgreSQL.")
    ] = None,
    layers: Annotated[
        Path | None, typer.Option(help="TOML file that names the search of each collection that is a layer beside it.")
    ] = None,
) -> None:
    """Serve a memory over HTTP, with a console in the browser. Needs: pip install 'evokey[serve]'."""
    with screen.report_errors(False):
        run, options = _load_service()
        learning = options.Learning(learn_after, learn_every, learn_saturated, learn_traffic, auto_rollback)
        chosen = options.Options(
            at=None if root else at, root=root, files=files, layers=layers, host=host, port=port, auth=not no_auth,
            keep_shown=not forget_shown, shadow=_read_epoch(shadow), tracing=tracing, workers=workers,
            learning=learning,
        )  # fmt: skip
        screen.say(f"evokey serves at http://{host}:{port}/")
        run.serve(chosen)


def _read_epoch(said: str | None) -> int | str | None:
    if said is None or said == "candidate":
        return said
    if not said.isdecimal():
        raise InvalidInput(f"--shadow is the number of an epoch, or candidate; not {said[:80]!r}")
    return int(said)


def serve_demo(at: Path, port: int) -> None:
    """The console on a memory of the demo, for this machine alone."""
    run, options = _load_service()
    screen.say(f"open http://127.0.0.1:{port}/#/search?compare=1&q=zip+two+lists+of+different+length  (Ctrl+C ends it)")
    run.serve(options.Options(at=at, port=port, auth=False))


def _load_service() -> tuple[Any, Any]:
    try:
        from evokey.serve import options, run
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    return run, options


def _missing(error: ModuleNotFoundError) -> UnknownComponent:
    return UnknownComponent(f"the service needs {error.name}: pip install 'evokey[serve]'")


def _ring(at: Path, root: Path | None) -> KeyRing:
    from evokey.serve.keys import KeyRing

    folder = root or Path(at)
    if not folder.is_dir():
        raise InvalidInput(f"{folder} does not exist; name the memory (--at) or the folder of memories (--root)")
    return KeyRing(folder)


@api_keys.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="Name of the key: a-z, 0-9, '.' and '-'.")],
    scope: Annotated[
        list[str] | None, typer.Option(help="read, teach, teach-as or admin; repeat for several. Default: read.")
    ] = None,
    collection: Annotated[
        list[str] | None, typer.Option(help="Collection it may use; repeat for several. Default: all.")
    ] = None,
    actor: Annotated[
        str, typer.Option(help="Name under which its feedback is recorded. Default: the key's name.")
    ] = "",
    where: Annotated[str | None, typer.Option(help="Filter, as JSON, that all its requests have.")] = None,
    rate: Annotated[float, typer.Option(help="Requests per second.")] = 50.0,
    days: Annotated[float | None, typer.Option(help="Days after which it expires.")] = None,
    at: At = HERE,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Create an API key. It is shown once: only its hash is kept."""
    with screen.report_errors(as_json):
        from evokey.serve.keys import Key

        filter_ = None if where is None else checks.json_value(where)
        if filter_ is not None:
            checks.filter(filter_)
        expires = None if days is None else time.time() + days * DAY
        key = Key(name, frozenset(scope or ["read"]), tuple(collection or ["*"]), actor, filter_, rate, expires)
        secret = _ring(at, root).create(key)
        screen.emit({"name": name, "key": secret}) if as_json else screen.say(escape(secret))


@api_keys.command("list")
def list_keys(at: At = HERE, root: Root = None, as_json: AsJson = False) -> None:
    """List the API keys, without their secrets."""
    with screen.report_errors(as_json):
        found = _ring(at, root).all()
        if as_json:
            screen.emit([one.to_dict() for one in found])
            return
        table = screen.plain_table("key", "scopes", "collections", "actor", "expires")
        for one in found:
            table.add_row(
                escape(one.name), ", ".join(sorted(one.scopes)), escape(", ".join(one.collections)), *_rest(one)
            )
        screen.console.print(table)


def _rest(key: Key) -> tuple[str, str]:
    if key.revoked:
        return escape(key.actor), "[red]revoked[/]"
    if key.expires is None:
        return escape(key.actor), "never"
    return escape(key.actor), datetime.fromtimestamp(key.expires, UTC).strftime("%Y-%m-%d %H:%M")


@api_keys.command("rotate")
def rotate_key(
    name: Annotated[str, typer.Argument(help="Name of the key.")],
    at: At = HERE,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Give a key a new secret; the old one works for a day more."""
    with screen.report_errors(as_json):
        secret = _ring(at, root).rotate(name)
        screen.emit({"name": name, "key": secret}) if as_json else screen.say(escape(secret))


@api_keys.command("revoke")
def revoke_key(
    name: Annotated[str, typer.Argument(help="Name of the key.")],
    at: At = HERE,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Make a key useless, from now on."""
    with screen.report_errors(as_json):
        _ring(at, root).revoke(name)
        screen.emit({"revoked": name}) if as_json else screen.say(f"{escape(name)} is revoked")


def compare(
    days: Annotated[float, typer.Option(min=0.0, help="Days to look back.")] = 7.0,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Compare epochs by clicks and upvotes on what was shown: interleaved searches, or a shadow."""
    with screen.report_errors(as_json), existing(at) as memory:
        since = time.time() - days * DAY
        shown = [one for one in memory.shown(since) if one.other is not None]
        found = comparison.compare(shown, memory.clicks(), memory.ratings(since))
        if as_json:
            screen.emit([one.to_dict() for one in found])
            return
        for one in found:
            who = f"epoch {one.winner} wins" if one.winner is not None else "nobody wins yet"
            screen.say(
                f"epoch {one.epoch} against {one.other} ({one.mode}): {who}; margin {one.margin:+.3f} "
                f"({one.low:+.3f} to {one.high:+.3f}), {one.wins} won, {one.losses} lost of {one.impressions}"
            )
        if not found:
            screen.say("nothing was compared; search with compare=EPOCH, or serve with --shadow EPOCH")


COMMANDS = (serve, compare)
