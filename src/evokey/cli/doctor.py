"""The command doctor: is the installation sound, and is the memory?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from evokey.cli import screen
from evokey.cli.options import HERE, AsJson, At, component, existing, not_there
from evokey.errors import InvalidInput
from evokey.inspect import doctor as doctor_
from evokey.inspect.doctor import Finding
from evokey.inspect.installation import Check, check_installation, check_writing
from evokey.postgres.address import Address
from evokey.settings import FILE, place
from evokey.types import EpochReport


def doctor(
    context: typer.Context,
    installation: Annotated[
        bool,
        typer.Option("--installation", help="Check the installation alone. Default where there is no memory."),
    ] = False,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild", help="Rebuild derived files from the ledger; sound keys that took time or money are kept."
        ),
    ] = False,
    reencode: Annotated[
        bool,
        typer.Option("--reencode", help="Encode documents and lessons again and learn again, to change the encoder."),
    ] = False,
    encoder: Annotated[
        list[str] | None, typer.Option(help="With --reencode: the new encoders. Default: those of the settings.")
    ] = None,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Check the installation (Python, packages, extras, word vectors, SQLite, clock), then the memory: the ledger, and
    the checksums of everything derived from it. Without a memory, a small one is made, taught and removed."""
    with screen.report_errors(as_json):
        if encoder and not reencode:
            raise InvalidInput("--encoder changes the encoders of a memory: add --reencode")
        if installation or (_nowhere(context, at) and not (rebuild or reencode)):
            _examine_installation(as_json)
            return
        if isinstance(at, Address):
            found = _examine_database(at, changing=rebuild or reencode)
        else:
            found = _examine(_folder(at), Change(rebuild, reencode, tuple(encoder or ())), as_json)
        _show(found, [one for one in check_installation() if one.state == "broken"], as_json)


@dataclass(frozen=True, slots=True)
class Change:
    rebuild: bool
    reencode: bool
    encoders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Examination:
    findings: Sequence[Finding]
    rebuilt: int | None = None
    """Documents whose keys were made again."""
    learned: EpochReport | None = None


def _nowhere(context: typer.Context, at: Path | Address) -> bool:
    """Nobody named a memory, and there is none in this directory."""
    source = context.get_parameter_source("at")
    return not (source is None or source.name != "DEFAULT" or isinstance(at, Address) or (place(at) / FILE).exists())


def _folder(at: Path) -> Path:
    folder = place(at)
    if not (folder / FILE).exists():
        raise not_there(at)
    return folder


def _examine(folder: Path, change: Change, as_json: bool) -> Examination:
    doing = "reencoding" if change.reencode else "rebuilding" if change.rebuild else "examining"
    with screen.working(doing, as_json):
        if change.reencode:
            documents, report = doctor_.reencode(folder, [component(one) for one in change.encoders])
            return Examination(doctor_.examine(folder), documents, report)
        rebuilt = doctor_.rebuild(folder) if change.rebuild else None
        return Examination(doctor_.examine(folder), rebuilt)


def _examine_database(at: Address, *, changing: bool) -> Examination:
    if changing:
        raise InvalidInput(
            f"{at} may be open elsewhere, with keys of its encoders. Copy it to a directory (evokey migrate), change "
            f"it there, and migrate it to a new name"
        )
    with existing(at) as memory:
        return Examination([Finding(what, "") for what in doctor_.examine_shared(memory)])


def _show(found: Examination, broken: Sequence[Check], as_json: bool) -> None:
    sound = not found.findings and not broken
    if as_json:
        learned = None if found.learned is None else found.learned.to_dict()
        findings = [one.what for one in found.findings]
        parts = {"rebuilt": found.rebuilt, "learned": learned, "findings": findings}
        screen.emit({"sound": sound, **parts, "installation": [asdict(one) for one in broken]})
    else:
        _say_lines(found, broken)
    if not sound:
        raise typer.Exit(screen.FAILED)


def _say_lines(found: Examination, broken: Sequence[Check]) -> None:
    for check in broken:
        _say_check(check)
    if found.rebuilt is not None:
        screen.say(f"rebuilt the keys of {screen.several(found.rebuilt, 'document')} again")
    if found.learned is not None:
        screen.say(f"learned again: {escape(found.learned.reason)}")
    for one in found.findings:
        repair = f"\n  repair: {escape(one.mended_by)}" if one.mended_by else ""
        screen.say(f"[red]✗[/] {escape(one.what)}{repair}")
    if not found.findings:
        screen.say("[green]✓[/] the memory is sound")


def _examine_installation(as_json: bool) -> None:
    with screen.working("examining", as_json):
        checks = [*check_installation(), *check_writing(Path.cwd())]
    sound = all(one.state != "broken" for one in checks)
    if as_json:
        screen.emit({"sound": sound, "installation": [asdict(one) for one in checks]})
    else:
        for one in checks:
            _say_check(one)
        screen.say("[green]✓[/] the installation is sound" if sound else "[red]✗[/] the installation is not sound")
    if not sound:
        raise typer.Exit(screen.FAILED)


def _say_check(one: Check) -> None:
    mark = {"sound": "[green]✓[/]", "absent": "[dim]–[/]", "broken": "[red]✗[/]"}[one.state]
    repair = f": {escape(one.repair)}" if one.state == "absent" else ""
    screen.say(f"{mark} [bold]{escape(one.part)}[/]  {escape(one.found)}{repair}")
    if one.state == "broken":
        screen.say(f"  repair: {escape(one.repair)}")
