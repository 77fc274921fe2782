"""What the commands show: tables for people, one JSON value for machines, errors as instructions."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from evokey.encoders.bm25 import BM25
from evokey.encoders.words import WORD
from evokey.errors import EvokeyError, InvalidInput, InvalidSettings, StorageFailed
from evokey.types import EpochReport, Hit, Quality, TunedEncoder

T = TypeVar("T")
NOTICEABLE = 1.0
"""In seconds: work that is mentioned."""
FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130
CONTROLS = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"},
    **dict.fromkeys([0x7F, *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd"),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
    ord("\r"): "",
}
"""Characters that control a terminal, or that it cannot write: escape sequences, overprinting, reversed text."""
JSON_CONTROLS = {code: f"\\u{code:04x}" for code in CONTROLS if code >= 0x7F}
"""Those that JSON does not require to be escaped."""


def visible(text: str) -> str:
    """Foreign text, made safe for a terminal."""
    return text.translate(CONTROLS)


class Screen(Console):
    """A console that executes no escape sequences: control characters are made visible first."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)


console = Screen(emoji=False)
errors = Screen(emoji=False, stderr=True)


class VisibleFormatter(logging.Formatter):
    """Warnings may quote what a service answered."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def emit(value: Any) -> None:
    """One JSON value on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False).translate(JSON_CONTROLS) + "\n")


def say(text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def fail(error: EvokeyError, as_json: bool) -> NoReturn:
    if as_json:
        emit({"error": type(error).__name__, "message": str(error)})
    else:
        errors.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
    raise typer.Exit(WRONG_USE if isinstance(error, InvalidInput | InvalidSettings) else FAILED)


def exit_after_interrupt(what: str, as_json: bool) -> NoReturn:
    """After Ctrl-C: report what is done, and exit with the usual code."""
    if as_json:
        emit({"error": "Interrupted", "message": what})
    else:
        errors.print(f"[bold red]interrupted:[/] {escape(what)}", highlight=False, soft_wrap=True)
    raise typer.Exit(INTERRUPTED)


@contextmanager
def report_errors(as_json: bool) -> Iterator[None]:
    """Errors raised on purpose become one line and an exit code."""
    try:
        yield
    except EvokeyError as error:
        fail(error, as_json)
    except BrokenPipeError:
        raise  # the reader of the output has closed it
    except OSError as error:
        fail(StorageFailed(f"the operating system refuses: {error}"), as_json)


@contextmanager
def working(what: str, as_json: bool) -> Iterator[None]:
    """A spinner, for work of unknown length."""
    if as_json or not errors.is_terminal:
        yield
        return
    with errors.status(escape(visible(what))):
        yield


def several(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def track(items: Iterable[T], what: str, as_json: bool, total: int | None = None) -> Generator[T]:
    """A progress bar on standard error, if it is a terminal."""
    with _progress(as_json) as progress:
        yield from progress.track(items, total=total, description=escape(visible(what)))


@contextmanager
def bar(what: str, as_json: bool, total: int | None = None) -> Iterator[Callable[..., None]]:
    """The same for work that reports its own progress: how much is done, and of how much if that was not known."""
    with _progress(as_json) as progress:
        task = progress.add_task(escape(visible(what)), total=total)
        yield lambda done, total=None: progress.update(task, completed=done, total=total)


@contextmanager
def stages(as_json: bool) -> Iterator[Callable[[str, float], None]]:
    """The same for work of several stages, each of which reports the share that is done."""
    with _progress(as_json) as progress:
        tasks: dict[str, TaskID] = {}

        def show(stage: str, share: float) -> None:
            if stage not in tasks:
                tasks[stage] = progress.add_task(escape(visible(stage)), total=100)
            progress.update(tasks[stage], completed=int(100 * share))

        yield show


def _progress(as_json: bool) -> Progress:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=errors, transient=True, disable=as_json or not errors.is_terminal)


def plain_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column)
    return table


def hits_table(hits: Sequence[Hit], query: str = "") -> Table:
    """Each hit with its passage: the part with most of the query's words, and these marked."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("", justify="right", style="dim")
    table.add_column("score", justify="right")
    table.add_column("id", style="bold cyan", overflow="fold")
    table.add_column("passage", ratio=1)
    wanted = frozenset(stems(query))
    for rank, hit in enumerate(hits, start=1):
        similar = f" [dim](and {several(len(hit.similar), 'near-duplicate')})[/]" if hit.similar else ""
        name = escape(hit.passage.name(hit.id))
        table.add_row(str(rank), f"{hit.score:.3f}", name + similar, mark(snippet(hit, wanted), wanted))
    return table


def stems(text: str) -> list[str]:
    """The words of a text as BM25 compares them, without those that say nothing."""
    return [stem for bag in _bm25().queries([text]) for stem in bag]


@cache
def _bm25() -> BM25:
    return BM25()


def mark(text: str, wanted: frozenset[str]) -> Text:
    """A text with the query's words in bold."""
    shown = Text(visible(text))
    for word in WORD.finditer(shown.plain):
        if wanted.intersection(stems(word[0])):
            shown.stylize("bold yellow", word.start(), word.end())
    return shown


def snippet(hit: Hit, wanted: frozenset[str], width: int = 220) -> str:
    """Of the passage so many characters, where most of the query's words are; of a short document, its title too."""
    passage = hit.passage
    text = " ".join(passage.text.split()) or " ".join(hit.document.title.split())
    if not passage.where and hit.document.title:
        text = " ".join(f"{hit.document.title}  {passage.text}".split())
    if len(text) <= width:
        return text
    places = [word.start() for word in WORD.finditer(text) if wanted.intersection(stems(word[0]))]
    start = max(places or [0], key=lambda at: (sum(at <= other < at + width - 20 for other in places), -at))
    start = 0 if start < width // 2 else text.rfind(" ", 0, start - 10) + 1
    end = start + width - 2
    return f"{'…' * (start > 0)}{text[start:end].strip()}{'…' * (end < len(text))}"


def excerpt(hit: Hit, width: int = 110) -> str:
    """The beginning of the passage, in one line."""
    text = " ".join(f"{hit.document.title}  {hit.passage.text}".split())
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def report_table(report: EpochReport) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("nDCG@10")
    for name in ("before", "after", "queries"):
        table.add_column(name, justify="right")
    groups = {
        "held-out queries": report.held_out,
        "taught queries": report.taught,
        "unrelated queries": report.unrelated,
    }
    for name, quality in groups.items():
        if quality is not None:
            table.add_row(name, f"{quality.before:.3f}", _after(quality), str(quality.queries))
    return table


def tuned_table(encoders: Sequence[TunedEncoder]) -> Table:
    """What training did to each encoder."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("nDCG@10 after evolve")
    for name in ("encoder as it was", "tuned", "questions"):
        table.add_column(name, justify="right")
    for one in encoders:
        groups = {"held-out": one.held_out, "related to lessons": one.related, "unrelated": one.unrelated}
        for name, quality in groups.items():
            if quality is not None:
                label = f"{escape(one.retriever)}, {name}"
                table.add_row(label, f"{quality.before:.3f}", _after(quality), str(quality.queries))
    return table


def _after(quality: Quality) -> str:
    colour = "green" if quality.after > quality.before else "red" if quality.after < quality.before else "dim"
    return f"[{colour}]{quality.after:.3f}[/]"


def pool_lines(report: EpochReport) -> Iterator[str]:
    """What documents that came or went have cost, if it was more than a moment."""
    if report.pools_seconds >= NOTICEABLE:
        yield (
            f"{report.pools_renewed:,} results of taught questions were looked up again, for documents have changed "
            f"({report.pools_seconds:.1f} s)"
        )


def _describe_likeness(weights: Mapping[str, float]) -> str:
    """Beside a search that is not ours: what says how like questions are."""
    return "likeness by " + ", ".join(f"{name} {weight:.0%}" for name, weight in weights.items() if weight)


def choice_lines(report: EpochReport) -> Iterator[str]:
    """How each retriever learned, in words."""
    for name, choice in report.choice.items():
        parts = [f"weight {report.weights[name]:g}" if name in report.weights else _describe_likeness(report.weights)]
        if choice.step or not choice.demotion:
            parts.append(f"keys move (step {choice.step:g})" if choice.step else "keys stay")
        parts.append(
            "taught questions are not keys"
            if choice.penalty is None
            else f"taught questions are keys (penalty {choice.penalty:g})"
        )
        if choice.half_life:
            parts.append(f"lessons lose half of their weight in {choice.half_life:g} days")
        if choice.lens_parameter is not None:
            evened = ", directions evened out" if choice.whitening else ""
            parts.append(f"queries are mapped by a lens ({choice.lens_parameter:g}{evened})")
        if choice.discount:
            parts.append(f"documents returned for many questions lose ({choice.discount:g})")
        if choice.sharpness:
            parts.append(f"behind a gate (sharpness {choice.sharpness:g})")
        if choice.demotion:
            parts.append(f"wrong documents are demoted ({choice.demotion:g})")
        if choice.unit_weight:
            parts.append(f"weight of expansion units {choice.unit_weight:g}")
        yield f"  [bold]{name}[/]: {', '.join(parts)}"
    if report.reach is not None and report.reach.threshold > -1:
        yield f"  acts on questions whose similarity to a taught one is at least {report.reach.threshold:.2f}"


def left_out_lines(actors: Mapping[str | None, int], documents: Mapping[str, int], most: int = 10) -> Iterator[str]:
    """Whose lessons are not learned, and which documents do not learn from some."""
    for kind, found in (("actor", actors), ("document", documents)):
        for name, count in list(found.items())[:most]:
            who = escape(str(name or "no actor named"))
            yield f"  left out: {kind} [bold]{who}[/], {several(count, 'lesson')} that harm other questions"
        if len(found) > most:
            yield f"  left out: {len(found) - most} more {kind}s"
