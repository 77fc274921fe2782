"""The command lessons: what was taught, by whom; put on hold, released, exported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from evokey.cli import screen
from evokey.cli.options import HERE, AsJson, At, existing_or_layer
from evokey.errors import InvalidInput
from evokey.layer.layer import Layer
from evokey.memory import Memory
from evokey.types import Lesson

SHOWN = 50
"""Lessons that are listed on a screen: the newest."""
FORMS = ("jsonl", "csv", "qrels")


def lessons(
    numbers: Annotated[list[int] | None, typer.Argument(help="Numbers of lessons. Default: all.")] = None,
    query: Annotated[str | None, typer.Option(help="Only lessons for this question.")] = None,
    actor: Annotated[str | None, typer.Option(help="Only lessons of this actor.")] = None,
    document: Annotated[str | None, typer.Option(help="Only lessons that name this document (id).")] = None,
    verifier: Annotated[str | None, typer.Option(help="Only lessons of this verifier; feedback is one.")] = None,
    held: Annotated[
        bool | None, typer.Option("--held/--not-held", help="Only those on hold, or only the others.")
    ] = None,
    hold: Annotated[
        bool, typer.Option("--hold", help="Put these lessons on hold: no new epoch learns from them.")
    ] = False,
    release: Annotated[bool, typer.Option("--release", help="Release these lessons.")] = False,
    export: Annotated[Path | None, typer.Option(help="Write these lessons into a JSONL file, one per line.")] = None,
    form: Annotated[
        str,
        typer.Option("--as", help="With --export: jsonl; or judgements of documents alone, as csv or (TREC) qrels."),
    ] = "jsonl",
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """List lessons, oldest first; put them on hold, release or export them."""
    with screen.report_errors(as_json), existing_or_layer(at) as memory:
        found = memory.lessons(query, actor, document, verifier, held)
        if numbers:
            found = _select(found, numbers)
        if hold or release:
            _move(memory, found, hold, release, as_json)
        elif export is not None:
            _export(found, export, form, as_json)
        elif as_json:
            screen.emit([one.to_dict() for one in found])
        else:
            _show(found)


def _select(found: Sequence[Lesson], numbers: Sequence[int]) -> list[Lesson]:
    missing = sorted(set(numbers).difference(one.number for one in found))
    if missing:
        raise InvalidInput(f"no lesson {missing[0]} meets these conditions; list them with: evokey lessons")
    return [one for one in found if one.number in numbers]


def _move(memory: Memory | Layer, found: Sequence[Lesson], hold: bool, release: bool, as_json: bool) -> None:
    if hold and release:
        raise InvalidInput("lessons are put on hold or released: give --hold or --release, not both")
    numbers = [one.number for one in found]
    count = memory.hold(numbers) if hold else memory.release(numbers)
    if as_json:
        screen.emit({"held" if hold else "released": count, "on_hold": memory.stats().held})
        return
    done = "put on hold" if hold else "released"
    screen.say(f"{screen.several(count, 'lesson')} {done}; in effect with the next: evokey evolve")


def _export(found: Sequence[Lesson], to: Path, form: str, as_json: bool) -> None:
    if form not in FORMS:
        raise InvalidInput(f"--as is one of {', '.join(FORMS)}, not {form[:80]!r}")
    judgements = None
    if form == "jsonl":
        _write_lines(found, to)
    else:
        from evokey.feedback import judgments

        judgements = judgments.write(to, found, form)
    if as_json:
        more = {} if judgements is None else {"judgements": judgements}
        screen.emit({"exported": len(found), "to": str(to), **more})
        return
    of = "" if judgements is None else f", as {screen.several(judgements, 'judgement')},"
    screen.say(f"wrote {screen.several(len(found), 'lesson')}{of} into {escape(str(to))}")


def _write_lines(found: Sequence[Lesson], to: Path) -> None:
    lines = [json.dumps(one.to_dict(), ensure_ascii=False) for one in found]
    try:
        to.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    except OSError as error:
        raise InvalidInput(f"{to} cannot be written ({error}); name another file") from error


def _show(found: Sequence[Lesson]) -> None:
    table = screen.plain_table("lesson", "when", "by", "question", "documents")
    for one in found[-SHOWN:]:
        when = datetime.fromtimestamp(one.time, UTC).strftime("%Y-%m-%d %H:%M")
        who = f"{one.verifier} {one.actor}" if one.actor else one.verifier
        said = ", ".join(f"{verdict.document} {verdict.grade:+g}" for verdict in one.verdicts)
        mark = " [yellow]on hold[/]" if one.held else ""
        table.add_row(f"{one.number}{mark}", when, escape(who), escape(one.query), escape(said))
    screen.console.print(table)
    shown = f", the newest {SHOWN} shown" if len(found) > SHOWN else ""
    screen.say(f"{screen.several(len(found), 'lesson')}{shown}")


COMMANDS = (lessons,)
