"""Commands that list what a memory can be made of: encoders, keys."""

from __future__ import annotations

from dataclasses import asdict

from rich.markup import escape

from evokey import registry
from evokey.cli import screen
from evokey.cli.options import AsJson


def encoders(as_json: AsJson = False) -> None:
    """List the encoders: what there is, what is installed, and the line that installs the rest."""
    _listed("encoder", as_json)


def keys(as_json: AsJson = False) -> None:
    """List the ways to build a document's key."""
    _listed("keys", as_json)


def _listed(kind: str, as_json: bool) -> None:
    found = registry.parts(kind)
    if as_json:
        screen.emit([asdict(part) for part in found])
        return
    table = screen.plain_table("", kind, "what it is", "to install")
    for part in found:
        mark = "[green]●[/]" if part.installed else "[dim]○[/]"
        table.add_row(mark, f"[bold]{part.name}[/]", escape(part.about), escape(part.install or ""))
    screen.console.print(table)


COMMANDS = (encoders, keys)
