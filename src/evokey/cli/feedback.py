"""The command feedback: lessons from the command line, from a file, or from what another tool has recorded."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from evokey import checks, ingest
from evokey.cli import screen
from evokey.cli.options import HERE, AsJson, At, existing_or_layer, parse_grade
from evokey.errors import InvalidInput
from evokey.layer.layer import Layer
from evokey.memory import Memory

EXPORTED = {"number", "verifier", "time", "held"}
"""What an exported lesson says beside what feedback takes: it is recorded again, and on hold if it was."""
SOURCES = ("ubi", "phoenix", "langfuse", "langsmith", "judgments", "csv")


def feedback(
    query: Annotated[str | None, typer.Argument(help="The question.")] = None,
    relevant: Annotated[
        list[str] | None, typer.Option("-r", "--relevant", help="Id of a right document; id=2 gives it a grade.")
    ] = None,
    irrelevant: Annotated[list[str] | None, typer.Option("-w", "--irrelevant", help="Id of a wrong document.")] = None,
    unit: Annotated[list[str] | None, typer.Option(help="An expansion unit that helped.")] = None,
    actor: Annotated[str | None, typer.Option(help="Who gives this feedback; can be forgotten later.")] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(
            help="Many lessons: JSONL with query, relevant, irrelevant, units, actor; or what lessons --export wrote. "
            "With --from: an export; repeat for several files."
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from", help="What wrote --file: ubi, phoenix, langfuse, langsmith, judgments (tables, qrels) or csv."
        ),
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="With --from a tracing tool: name of the scores that count. Default: all.")
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="With --from a tracing tool: from which value on a score is high.")
    ] = 0.5,
    id_field: Annotated[
        str | None, typer.Option(help="With --from a tracing tool: field of the metadata that has a document's id.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --from: only report what would be recorded.")
    ] = False,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Record which documents were right or wrong for a question. The next evolve learns from it."""
    with screen.report_errors(as_json), existing_or_layer(at) as memory:
        if source is not None:
            _import(memory, (source, file or []), (score, threshold, id_field), actor, dry_run, as_json)
            return
        if (query is None) == (not file) or (file and (relevant or irrelevant or unit)):
            raise InvalidInput("give a question with --relevant or --irrelevant, or --file with many lessons")
        said = _read_files(file, actor) if file else [_lesson(query or "", relevant, irrelevant, unit, actor)]
        if isinstance(memory, Layer):
            said = [_without_units(one) for one in said]
        _record(memory, said, as_json)


def _without_units(lesson: dict[str, Any]) -> dict[str, Any]:
    if lesson.get("units"):
        raise InvalidInput("a layer beside a search function does not learn from expansion units: leave them out")
    return {name: value for name, value in lesson.items() if name != "units"}


def _record(
    memory: Memory | Layer, said: list[dict[str, Any]], as_json: bool, left_out: dict[str, int] | None = None
) -> None:
    waiting = [bool(one.pop("held", False)) for one in said]
    with closing(screen.track(said, "teaching", as_json, len(said))) as tracked:
        taught = memory.feedback_many(tracked)
    if any(waiting):
        memory.hold(lesson.number for lesson, held in zip(taught, waiting, strict=True) if held)
    if as_json:
        more = {} if left_out is None else {"left_out": left_out}
        screen.emit({"lessons": [lesson.number for lesson in taught], **more})
        return
    _tell_left_out(left_out or {})
    screen.say(f"recorded {screen.several(len(taught), 'lesson')}; learn from them with: evokey evolve")


def _import(
    memory: Memory | Layer,
    files: tuple[str, Sequence[Path]],
    scores: tuple[str | None, float, str | None],
    actor: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    from evokey.feedback import sources
    from evokey.feedback.judged import lessons

    source, paths = files
    if source not in SOURCES or not paths:
        raise InvalidInput(f"--from is one of {', '.join(SOURCES)}, with --file FILE for each file of the export")
    judged = sources.read(source, paths, sources.Scores(*scores))
    if judged.found and isinstance(memory, Memory):  # a layer has no documents: its engine may know them all
        judged = judged.only(memory.sources(dict.fromkeys(one.document for one in judged.found)))
    said, left_out = lessons(judged.found, actor or source), dict(judged.left_out.most_common())
    if not dry_run:
        _record(memory, said, as_json, left_out)
    elif as_json:
        screen.emit({"would_record": said, "left_out": left_out})
    else:
        _tell_left_out(left_out)
        screen.say(f"would record {screen.several(len(said), 'lesson')}, with {len(judged.found)} verdicts")


def _tell_left_out(left_out: dict[str, int]) -> None:
    for reason, count in left_out.items():
        screen.say(f"[yellow]left out[/] {count:>7,}  {escape(reason)}")


def _read_files(files: Sequence[Path], actor: str | None) -> list[dict[str, Any]]:
    return [lesson for file in files for lesson in _lessons(file, actor)]


def _lesson(
    query: str, relevant: list[str] | None, irrelevant: list[str] | None, units: list[str] | None, actor: str | None
) -> dict[str, Any]:
    grades = dict(parse_grade(one) for one in relevant or [])
    return {"query": query, "relevant": grades, "irrelevant": irrelevant or [], "units": units, "actor": actor}


def _lessons(file: Path, actor: str | None) -> list[dict[str, Any]]:
    """The lessons of a JSONL file, each checked as far as the file alone can tell."""
    if not file.is_file():
        raise InvalidInput(f"{file} does not exist; --file takes JSONL with one lesson a line")
    known = {"query", "relevant", "irrelevant", "units", "actor"}
    found = []
    for where, lesson in ingest.records(file):
        if "query" not in lesson or set(lesson) - known - EXPORTED:
            raise InvalidInput(f"{where}: a lesson has query and some of {', '.join(sorted(known))}")
        try:
            checks.query(lesson["query"])
            checks.grades(lesson.get("relevant", ()), lesson.get("irrelevant", ()))
            checks.units(lesson.get("units", ()))
        except InvalidInput as error:
            raise InvalidInput(f"{where}: {error}") from error
        found.append({"actor": actor, **{name: lesson[name] for name in (*known, "held") if name in lesson}})
    return found


COMMANDS = (feedback,)
