"""Commands of the loop: ask answers, learn verifies and records lessons, review lets a person decide; verifiers."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

import evokey
from evokey.checks import LARGEST
from evokey.cli import screen
from evokey.cli.options import HERE, AsJson, At, Where, existing, filter_of
from evokey.cli.parts import list_parts
from evokey.errors import InvalidInput
from evokey.evolution.saturation import Saturation
from evokey.loop.watch import PENDING, shortfall
from evokey.types import Answer, LearnReport, Spent
from evokey.verifiers.human import Human

POLL = 0.5
"""Seconds between reads of a file that may grow."""
BATCH = 16


def verifiers(as_json: AsJson = False) -> None:
    """List the verifiers, which decide whether an attempt succeeded."""
    list_parts("verifier", as_json)


def ask(
    query: Annotated[str, typer.Argument(help="The question.")],
    k: Annotated[int, typer.Option("-k", help="Number of documents the model reads.")] = 5,
    where: Where = None,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Answer a question from the documents that search finds, and cite them. Needs a language model (evokey llms)."""
    with screen.report_errors(as_json), existing(at) as memory:
        if as_json:
            screen.emit(_answer_fields(memory.ask(query, k, filter_of(where))))
            return
        stream = memory.ask_stream(query, k, filter_of(where))
        answer = stream_to_screen(stream)
        if not answer.text:
            screen.say("[dim]the documents found do not contain an answer[/]")
        for number, hit in enumerate(answer.hits, start=1):
            cited = hit.id in answer.citations
            mark = f"[green]\\[{number}][/]" if cited else f"[dim]\\[{number}][/]"
            screen.say(f"{mark} {escape(hit.passage.name(hit.id))}  [dim]{escape(screen.excerpt(hit, 80))}[/]")
        screen.say(f"[dim]{escape(_cost(answer.spent))}[/]")


def stream_to_screen(stream: Any) -> Answer:
    while True:
        try:
            piece = next(stream)
        except StopIteration as end:
            sys.stdout.write("\n")
            answer: Answer = end.value
            return answer
        sys.stdout.write(screen.visible(piece))
        sys.stdout.flush()


def _answer_fields(answer: Answer) -> dict[str, Any]:
    return {
        "query": answer.query,
        "text": answer.text,
        "citations": list(answer.citations),
        "sources": [{"name": one.name, "document": one.document, **asdict(one.passage)} for one in answer.sources],
        "hits": [hit.id for hit in answer.hits],
        "model": answer.model,
        "finished": answer.finished,
        "tokens": answer.spent.prompt_tokens + answer.spent.answer_tokens,
        "seconds": round(answer.spent.seconds, 3),
        "money": answer.spent.money,
    }


def _cost(spent: Spent) -> str:
    money = f", {spent.money:.4f} $" if spent.money else ""
    return f"{spent.calls} calls, {spent.prompt_tokens + spent.answer_tokens} tokens, {spent.seconds:.1f} s{money}"


def learn(
    file: Annotated[
        Path, typer.Argument(help='JSONL of {"query", "expected"?, "relevant"?, "actor"?}; - reads standard input.')
    ],
    follow: Annotated[
        bool, typer.Option("--follow", help="Continue as the file grows, and evolve when new lessons bring little.")
    ] = False,
    actor: Annotated[str | None, typer.Option(help="Actor of the lines that name none.")] = None,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Run queries through the loop: expand, search, answer, verify. Only what was verified becomes a lesson."""
    with screen.report_errors(as_json), existing(at) as memory:
        if not follow:
            tasks = [_task(line, number, actor) for number, line in enumerate(_lines(file), start=1)]
            reports = [memory.learn(**task) for task in screen.track(tasks, "learning", as_json)]
            _summary(reports, as_json)
            return
        _follow(memory, file, actor, as_json)


def _follow(memory: evokey.Memory, file: Path, actor: str | None, as_json: bool) -> None:
    saturation, gains, pending = Saturation(), list[float](), 0
    for number, line in enumerate(_growing(file), start=1):
        report = memory.learn(**_task(line, number, actor))
        _line(report, as_json)
        if report.lesson is None:
            continue
        gains, pending = [*gains, shortfall(report)], pending + 1
        if len(gains) >= BATCH:
            saturation, gains = saturation.after(max(gains)), []
        if saturation.saturated or pending >= PENDING:
            evolved = memory.evolve()
            saturation, pending = Saturation(), 0
            if as_json:
                screen.emit({"evolved": evolved.to_dict()})
            else:
                screen.say(f"[bold]epoch {evolved.epoch}[/]: {escape(evolved.reason)}")


def _line(report: LearnReport, as_json: bool) -> None:
    if as_json:
        screen.emit(report.to_dict())
        sys.stdout.flush()
        return
    mark = "[green]✓[/]" if report.lesson else "[yellow]?[/]" if report.ruling.success is None else "[red]✗[/]"
    screen.say(f"{mark} {escape(report.query)}  [dim]{escape(report.reason)}; {escape(_cost(report.spent))}[/]")


def _summary(reports: list[LearnReport], as_json: bool) -> None:
    learned = sum(one.lesson is not None for one in reports)
    abstained = sum(one.ruling.success is None for one in reports)
    spent = sum((one.spent for one in reports), Spent())
    if as_json:
        screen.emit({"learned": learned, "abstained": abstained, "reports": [one.to_dict() for one in reports]})
        return
    for one in reports:
        _line(one, as_json)
    failed = len(reports) - learned - abstained
    screen.say(f"{screen.several(learned, 'lesson')}, {failed} not credited, {abstained} abstentions; {_cost(spent)}")
    if learned:
        screen.say("next: evokey evolve")


def _task(line: str, number: int, actor: str | None) -> dict[str, Any]:
    try:
        task = json.loads(line)
    except (ValueError, RecursionError):
        task = {"query": line}
    if isinstance(task, str):
        task = {"query": task}
    unknown = set(task) - {"query", "expected", "relevant", "actor"} if isinstance(task, dict) else None
    if unknown is None or unknown or "query" not in task:
        raise InvalidInput(f'line {number}: expected {{"query": …, "expected": …, "relevant": …}}, not {line[:80]}')
    return {"actor": actor, **task}


def _lines(file: Path) -> list[str]:
    if str(file) == "-":
        return [line.strip() for line in sys.stdin if line.strip()]
    try:
        return [line.strip() for line in file.read_text("utf-8").split("\n") if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from error


def _growing(file: Path) -> Iterator[str]:
    """Lines of a file, also those added later; of standard input until its end."""
    if str(file) == "-":
        yield from (line.strip() for line in sys.stdin if line.strip())
        return
    if not file.exists():
        raise InvalidInput(f"{file} does not exist; create it first; lines may be added later")
    with file.open(encoding="utf-8") as lines:
        part = ""
        while True:
            read = lines.readline()
            part += read
            if part.endswith("\n"):
                if part.strip():
                    yield part.strip()
                part = ""
            elif not read:
                time.sleep(POLL)


def review(
    id: Annotated[
        int | None,
        typer.Argument(min=1, max=LARGEST, help="Number of the question to answer. Default: list the open questions."),
    ] = None,
    right: Annotated[list[str] | None, typer.Option(help="Id of a right document; repeat for several.")] = None,
    wrong: Annotated[list[str] | None, typer.Option(help="Id of a wrong document; repeat for several.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="The attempt failed.")] = False,
    skip: Annotated[bool, typer.Option("--skip", help="Drop the question.")] = False,
    actor: Annotated[str | None, typer.Option(help="Who gives this answer.")] = None,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Answer the open questions of the verifier 'human'. An answer counts when the query is learned again."""
    with screen.report_errors(as_json):
        with existing(at) as memory:
            queue = memory.reviews()
        if id is None:
            _list_open(queue, as_json)
            return
        if skip:
            queue.skip(id)
        else:
            grades = {**dict.fromkeys(right or (), 1.0), **dict.fromkeys(wrong or (), -1.0)}
            if not grades and not failed:
                raise InvalidInput("name the right documents with --right ID; or give --failed or --skip")
            queue.answer(id, not failed, grades, actor=actor)
        left = len(queue.pending())
        screen.emit({"answered": id, "open": left}) if as_json else screen.say(f"recorded; {left} more open")


def _list_open(queue: Human, as_json: bool) -> None:
    waiting = queue.pending()
    if as_json:
        screen.emit([asdict(one) for one in waiting])
        return
    for one in waiting:
        screen.say(f"[bold]{one.id}[/]  {escape(one.query)}")
        if one.answer:
            screen.say(f"     answered: {escape(one.answer)}")
        for document in one.documents:
            shown = " ".join(f"{document.title} {document.text}".split())[:100]
            screen.say(f"     [cyan]{escape(document.id)}[/] {escape(shown)}")
    screen.say(f"{screen.several(len(waiting), 'question')} open" if waiting else "no open questions")


COMMANDS = (ask, learn, review, verifiers)
