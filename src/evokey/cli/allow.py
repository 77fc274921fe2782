"""The command allow: what a memory's settings use outside its directory, and what the user allows."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from evokey.cli import screen
from evokey.cli.options import HERE, AsJson, At, folder_of, not_there
from evokey.postgres.address import Address
from evokey.settings import FILE, needs, read, trust


def allow(
    what: Annotated[
        list[str] | None, typer.Argument(help="A host, key, code, model or path, as in the error message.")
    ] = None,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="First withdraw all that was allowed for this memory.")
    ] = False,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Allow a memory to use something outside its directory; without arguments, list what it would use."""
    with screen.report_errors(as_json):
        folder = folder_of(at)
        described = at if not isinstance(at, Address) and at.is_file() else folder / FILE
        if not described.exists():
            raise not_there(at)
        if withdraw:
            trust.withdraw(folder)
        trust.record(folder, what or ())
        wanted = [*(trust.links(folder) if folder.is_dir() else []), *needs(read(described), folder)]
        known = trust.allowances(folder)
        rows = [(one, trust.is_met(one, known)) for one in wanted]
        if as_json:
            screen.emit([{"setting": one.setting, "uses": one.allowance, "allowed": met} for one, met in rows])
            return
        if not rows:
            screen.say(f"{escape(str(at))} uses nothing outside its directory")
            return
        table = screen.plain_table("setting", "uses", "allowed")
        for one, met in rows:
            table.add_row(escape(one.setting), escape(one.allowance), "[green]yes[/]" if met else "[red]no[/]")
        screen.console.print(table)


COMMANDS = (allow,)
