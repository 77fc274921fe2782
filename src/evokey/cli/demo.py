"""`evokey demo`: an index learns, on the documentation of the Python that runs."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

import evokey
from evokey.cli import screen, serving
from evokey.demo import run as demo_
from evokey.settings import FILE
from evokey.types import View


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the memory, the results and the plot.")] = Path("demo-output"),
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Then show the memory in the console, in the browser; an earlier run's, too."),
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="With --serve: port of the console.")] = 8321,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON value.")] = False,
) -> None:
    """Show how an index learns: index Python's standard library documentation, teach half of the questions, evolve."""

    def track(items: Iterable[Any], what: str, total: int) -> Iterable[Any]:
        return screen.track(items, what, as_json, total)

    with screen.report_errors(as_json):
        if serve and (out / "results.json").exists() and (out / "memory" / FILE).exists():
            serving.serve_demo(out / "memory", port)
            return
        if (out / "memory" / FILE).exists():  # an earlier run's; whatever else lies there is refused by open
            shutil.rmtree(out / "memory")
        with screen.working("reading the standard library's documentation", as_json):
            corpus = demo_.documents()
        with evokey.open(out / "memory") as memory:
            outcome = demo_.run(memory, corpus, track)
        (out / "results.json").write_text(json.dumps(outcome.to_dict(), indent=1, ensure_ascii=False) + "\n", "utf-8")
        drawn = _draw(outcome, out / "before-after.png")
        if as_json:
            screen.emit(outcome.to_dict())
            return
        _show(outcome)
        at = escape(str(out))
        screen.say(f"\nfigures: {at}/results.json" + (f"   plot: {at}/before-after.png" if drawn else ""))
        screen.say(f"try it: {escape(_program())} search 'your question' --at {at}/memory")
        if serve:
            serving.serve_demo(out / "memory", port)


def _program() -> str:
    """How to call this again: `make demo` leaves it in .venv, where no shell looks."""
    called = Path(sys.argv[0])
    return str(called) if called.name == "evokey" and shutil.which("evokey") is None else "evokey"


def _draw(outcome: demo_.Outcome, path: Path) -> bool:
    try:
        demo_.plot(outcome, path)
    except ModuleNotFoundError:
        screen.errors.print("no plot: pip install 'evokey[demo]' brings matplotlib", highlight=False)
        return False
    return True


def _show(outcome: demo_.Outcome) -> None:
    title = f"{outcome.documents:,} documentation entries, {outcome.lessons} lessons, one evolve"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    table.add_column("questions", min_width=20)
    for name in ("", "nDCG@10 before", "after", "first hit right before", "after"):
        table.add_column(name, justify="right")
    for row in outcome.rows:
        table.add_row(
            row.group, str(row.questions), f"{row.before:.3f}", _colour(row.after, row.before, ".3f"),
            f"{row.first_before:.0%}", _colour(row.first_after, row.first_before, ".0%"),
        )  # fmt: skip
    screen.console.print(table)
    screen.say(f"\n{escape(outcome.report.reason)}")
    for story in outcome.stories:
        _show_story(story)


def _colour(after: float, before: float, form: str) -> str:
    colour = "green" if after > before + 0.0005 else "red" if after < before - 0.0005 else "dim"
    return f"[{colour}]{after:{form}}[/]"


def _show_story(story: demo_.Story) -> None:
    screen.say(f"\n[bold]“{escape(story.question)}”[/]")
    screen.say(f"  before: [dim]{escape(', '.join(story.before))}[/]")
    screen.say(f"  now:    [green]{escape(story.after[0])}[/][dim], {escape(', '.join(story.after[1:]))}[/]")
    for view in story.explanation.views:
        if view.after > view.before:
            screen.say(f"  why:    {view.retriever} {view.before:.2f} → {view.after:.2f}: {escape(_cause(view))}")


def _cause(view: View) -> str:
    if view.best_key == "taught question":
        return f"similar to the taught “{view.nearest_taught}”"
    return f"its key moved towards the taught “{view.contributions[0].text}”"
