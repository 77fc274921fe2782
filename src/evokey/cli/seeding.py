"""The command seed: a language model writes questions, and those that are confirmed become lessons."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from evokey.cli import screen
from evokey.cli.options import HERE, AsJson, At, Where, component, existing, filter_of
from evokey.seeding.report import SeedReport


def seed(
    llm: Annotated[
        str | None,
        typer.Option(
            help="Language model that writes the questions: as listed by evokey llms, or JSON. Default: the memory's."
        ),
    ] = None,
    per_passage: Annotated[int, typer.Option(min=1, max=20, help="Questions to ask for, for each passage.")] = 2,
    limit: Annotated[
        int, typer.Option(min=0, help="Maximum number of passages; 0: all. The next run continues with others.")
    ] = 500,
    confirm: Annotated[
        str,
        typer.Option(
            help="Who confirms a question: search (its document must be among the first k hits of the untaught "
            "index), or judge (the memory's verifier; costs further calls)."
        ),
    ] = "search",
    k: Annotated[int, typer.Option("-k", min=1, help="Number of first hits among which the document must be.")] = 10,
    where: Where = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only estimate the cost; call no model.")] = False,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Start without feedback: a language model writes questions for your passages, as lessons of 'synthetic'.

    They count less than people's lessons, and are never tested beside these. Next: evokey evolve learns from them,
    evokey bench --at DIR tells whether that helps, evokey forget --actor synthetic erases them.
    """
    with screen.report_errors(as_json), existing(at) as memory:
        latest: list[SeedReport] = []
        try:
            with screen.bar("writing questions", as_json) as advance:

                def show(report: SeedReport) -> None:
                    if not latest and not as_json:
                        screen.errors.print(_estimate(report), highlight=False, soft_wrap=True)
                    latest.append(report)
                    advance(report.asked + report.failed, report.estimate.passages)

                most, among = limit or None, filter_of(where)
                model = None if llm is None else component(llm)
                report = memory.seed(model, per_passage, most, dry_run, confirm, k, among, progress=show)
        except KeyboardInterrupt:
            done = latest[-1].asked if latest else 0
            screen.exit_after_interrupt(
                f"what is done is kept (at least {screen.several(done, 'passage')}); the same command continues",
                as_json,
            )
        screen.emit(report.to_dict()) if as_json else _show(report)


def _estimate(report: SeedReport) -> str:
    one = report.estimate
    money = "" if one.money is None else f", about {one.money:.2f} $"
    apart = f"; {one.restricted} passages are of restricted documents" if one.restricted else ""
    return (
        f"{screen.several(one.passages, 'passage')}, at most {screen.several(one.calls, 'call')} of "
        f"{escape(one.model)}, about {one.prompt_tokens + one.answer_tokens:,} tokens{money}{apart}"
    )


def _show(report: SeedReport) -> None:
    if report.dry_run:
        screen.say("dry run: no model was called")
        return
    first = f" ({report.found_first} of them already found first)" if report.found_first else ""
    screen.say(f"kept {screen.several(report.kept, 'question')}{first}, for {screen.several(report.asked, 'passage')}")
    for reason, count in sorted(report.dropped.items(), key=lambda one: -one[1]):
        screen.say(f"[dim]dropped {count:>6}  {escape(reason)}[/]")
    if report.failed:
        screen.say(f"[yellow]{screen.several(report.failed, 'passage')} failed[/]; the next run asks again")
    if report.stopped is not None:
        screen.say(f"[yellow]stopped[/]: {escape(report.stopped)}")
    if report.kept:
        screen.say("next: evokey evolve, and evokey bench --at DIR; to erase them: evokey forget --actor synthetic")


COMMANDS = (seed,)
