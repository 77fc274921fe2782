"""`evokey bench --at DIR`: would learning help here? Over the lessons, traffic and seeds that are there; reads only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

import evokey
from evokey.cli import screen
from evokey.cli.options import HERE, AsJson, At, component, existing_or_layer
from evokey.errors import InvalidInput

if TYPE_CHECKING:
    from evokey.bench.own import Bench, Effect, OwnReport

JUDGED = 20
"""Searched questions that are judged unless the user says otherwise."""


def bench_memory(
    llm: Annotated[
        str | None,
        typer.Option(
            help="Language model that judges searched questions, name or JSON. Default: the memory's, if any."
        ),
    ] = None,
    traffic: Annotated[
        int, typer.Option(min=0, help="Number of searched questions that the language model judges; 0: none.")
    ] = JUDGED,
    plot: Annotated[Path | None, typer.Option(help="Plot the figures into this file (PNG, SVG, PDF).")] = None,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Would learning help here? Measured on the memory's own lessons; nothing in the memory changes.

    The same as `evokey bench --at DIR`. Every question of a lesson is tested on what evolve would learn from the
    others, people's questions and synthetic ones (evokey seed) apart.
    """
    with screen.report_errors(as_json), existing_or_layer(at) as memory:
        from evokey.bench.own import Bench

        if llm is not None and isinstance(memory, evokey.Layer):
            raise InvalidInput("a layer beside a search function keeps no searched questions to judge: leave --llm out")
        with screen.bar("learning from the others", as_json) as advance:
            bench = Bench(memory, advance)
            report = bench.run()
        if isinstance(memory, evokey.Memory):
            report = _judge(bench, report, llm, traffic, as_json)
        if plot is not None:
            from evokey.bench import own_figure

            own_figure.draw(report, plot)
        screen.emit(report.to_dict()) if as_json else _show(report, plot)


def _judge(bench: Bench, report: OwnReport, llm: str | None, most: int, as_json: bool) -> OwnReport:
    """With searched questions judged, where there is a model for that."""
    from evokey.bench.judging import CALLS, TrafficJudge

    judge = TrafficJudge.of(bench, None if llm is None else component(llm)) if most else None
    questions = [] if judge is None else judge.choose(most)
    if judge is None or not questions:
        return report
    if not as_json:
        calls = f"{screen.several(len(questions), 'searched question')}, at most {CALLS * len(questions)} calls"
        screen.errors.print(f"judging {calls} of {escape(judge.model)}", highlight=False, soft_wrap=True)
    with screen.working("judging searched questions", as_json):
        return judge.add(report, questions)


def _show(report: OwnReport, plot: Path | None) -> None:
    screen.say(f"{screen.several(report.lessons, 'lesson')} on {screen.several(report.documents, 'document')}")
    table = screen.plain_table("nDCG@10", "questions", "untaught", "taught", "change (95 %)")
    for kind in report.kinds.values():
        rows = {
            f"{kind.name}, held out": kind.held_out,
            "  related to lessons": kind.related,
            "  unrelated": kind.unrelated,
            f"{kind.name}, asked again": kind.asked_again,
        }
        for name, one in rows.items():
            if one is not None:
                table.add_row(name, *_cells(one))
    further = {"people, by seeds alone": report.by_seeds, "searched, judged": report.judged_traffic}
    for name, one in further.items():
        if one is not None:
            table.add_row(name, *_cells(one))
    if table.row_count:
        screen.console.print(table)
    for sentence in report.verdicts:
        screen.say(f"[bold]→[/] {escape(sentence)}")
    if plot is not None:
        screen.say(f"plotted into {escape(str(plot))}")


def _cells(one: Effect) -> tuple[str, ...]:
    colour = "dim" if not one.clear else "green" if one.gain > 0 else "red"
    change = f"[{colour}]{one.gain:+.3f}[/] ({one.low:+.3f} to {one.high:+.3f})"
    return str(one.questions), f"{one.untaught:.3f}", f"{one.taught:.3f}", change
