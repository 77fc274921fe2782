"""`evokey bench`: systems side by side on data sets, resumable; tables and figures from what was measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperGroup

from evokey.cli import screen
from evokey.cli.options import AsJson, place_by_name
from evokey.cli.own_bench import bench_memory
from evokey.errors import InvalidInput

if TYPE_CHECKING:
    from evokey.bench.runs import Outcome, Result, Run

QUALITY, MEMORY = "quality", "memory"
ABLATIONS = "ablations"
HYBRID = "hybrid"
SYSTEMS = ("none", "guarded", "paper")


class Benches(TyperGroup):
    """A first word that names no benchmark is data: then quality is measured; with --at, a memory is."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and (args[0] in self.commands or args[0] in ctx.help_option_names):
            return super().parse_args(ctx, args)
        own = any(one == "--at" or one.startswith("--at=") for one in args)
        return super().parse_args(ctx, [MEMORY if own else QUALITY, *args])


app = typer.Typer(
    cls=Benches,
    help="Measure: your own memory or layer (`evokey bench --at DIR`: would learning help here?), systems side by side "
    "on data sets (`evokey bench DATA…`), or speed (`evokey bench speed`).",
)
app.command(MEMORY)(place_by_name(bench_memory))


@app.command(QUALITY)
def bench(
    data: Annotated[
        list[str] | None, typer.Argument(help="Folders in BEIR, BRIGHT or TREC format, or names of known data sets.")
    ] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            help="Encoders, separated by commas: bm25, wordllama, …, module:Class; with options: bm25:k1=1.5,b=0.6; "
            "a+b fuses two. Default: hybrid. Vectors beside a data set are used."
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Systems, separated by commas: none, guarded, paper, a policy of your own as module:Class; with "
            "options: paper:x=2,capacity=8; nudge-n, nudge-m, fine-tune, adapter (trained on the same lessons), bm25s, "
            "expansion[:NAME] (recorded), live[:EXPANDER] (by a language model, or your own as live:module:Class), "
            "judged, and the guarded policy without one of its parts (no-rows, no-guard, …; all of them: ablations). "
            "Default: none, guarded, paper."
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            help="holdout, official (train → test), same-intent, once (one wording of half of the intents), topic "
            "(lessons from one cluster of queries), stream (batches) or curve (1 to 300 lessons)."
        ),
    ] = "holdout",
    rate: Annotated[
        list[str] | None, typer.Option(help="Share of the questions that teach; the others are tested. Default: 0.5.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(help="Number of random splits into questions that teach and questions that are tested.")
    ] = 3,
    first_seed: Annotated[int, typer.Option(min=0, help="Seed of the first split; the others follow.")] = 0,
    units: Annotated[
        str | None,
        typer.Option(help="Also teach these recorded expansions: a file of DATA/expansions, without .jsonl."),
    ] = None,
    wrong: Annotated[
        int,
        typer.Option(min=0, help="Lessons also name the wrong documents among so many first hits."),
    ] = 0,
    noise: Annotated[float, typer.Option(help="Share of lessons that name a wrong document as right.")] = 0.0,
    shown: Annotated[
        int, typer.Option(min=0, help="Lessons only name documents among so many first hits of the untaught index.")
    ] = 0,
    verifier: Annotated[
        str | None,
        typer.Option(
            help="Teach what this verifier accepts of what is found, in place of judgements: name or module:Class."
        ),
    ] = None,
    batches: Annotated[int, typer.Option(help="Number of batches of a stream.")] = 10,
    most: Annotated[int | None, typer.Option(help="Maximum number of judged queries, drawn at random.")] = None,
    llm: Annotated[str | None, typer.Option(help="Model for live expansion and answers. Default: llamacpp.")] = None,
    answers: Annotated[int, typer.Option(help="Number of tested questions with gold answers to answer.")] = 0,
    judge: Annotated[
        str | None, typer.Option(help="Model that grades answers from 0 to 100. Default: the one that answers.")
    ] = None,
    split: Annotated[
        str, typer.Option(help="Split of the data set whose questions are tested: test, dev, train.")
    ] = "test",
    out: Annotated[Path, typer.Option(help="Folder for results; existing results are not measured again.")] = Path(
        "bench-output"
    ),
    rankings: Annotated[
        Path | None, typer.Option("--runs", help="Folder for the rankings: a TREC run file for every system and seed.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Number of parallel processes.")] = 1,
    tables: Annotated[Path | None, typer.Option(help="Only write tables and figures of this results folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare systems on data sets with judged questions: some questions teach, the others are tested.

    The same as `evokey bench DATA…`. All systems get the same lessons and the same test questions. To measure a memory
    of your own, no data set is needed: `evokey bench --at DIR`.
    """
    with screen.report_errors(as_json):
        from evokey.bench import runs

        if tables is not None:
            paths = _draw(tables)
            screen.emit([str(path) for path in paths]) if as_json else _say_written(paths)
            return
        if not data:
            raise InvalidInput(
                "name what to measure: a memory of yours (evokey bench --at DIR), data sets (evokey bench FOLDER …), "
                "or --tables FOLDER for the tables of earlier results"
            )
        common = runs.Run(
            protocol=protocol, seed=first_seed, units=units, most=most, batches=batches, split=split, llm=llm,
            answers=answers, wrong=wrong, noise=noise, shown=shown, verifier=verifier, judge=judge,
        )  # fmt: skip
        planned, left_out = runs.plan(
            [str(Path(one)) for one in data],
            common,
            encoders=_split(encoder) or [HYBRID],
            policies=_policies(policy) or list(SYSTEMS),
            rates=[_share(one) for one in _split(rate)] or [0.5],
            seeds=seeds,
        )
        if not planned:
            raise InvalidInput("nothing to measure: " + "; ".join(left_out))
        for reason in left_out if not as_json else ():
            screen.say(f"[dim]left out: {escape(reason)}[/]")
        _report(_execute(planned, out, runs.execute(planned, out, jobs=jobs, rankings=rankings), as_json), out, as_json)


def _execute(planned: Sequence[Run], out: Path, outcomes: Iterator[Outcome], as_json: bool) -> list[Outcome]:
    try:
        return list(screen.track(outcomes, "measuring", as_json, len(planned)))
    except KeyboardInterrupt:
        screen.errors.print(f"interrupted; results so far are kept in {out}, and the same command resumes")
        raise typer.Exit(130) from None


@app.command("speed")
def speed(
    parts: Annotated[
        list[str] | None,
        typer.Option(help="dense, bm25, hybrid, growth, rivals, expansion, separated by commas. Default: all."),
    ] = None,
    documents: Annotated[
        int, typer.Option(min=10, help="Number of documents; growth: from a tenth to ten times as many.")
    ] = 100_000,
    data: Annotated[
        Path | None, typer.Option(help="Folder of data sets in BEIR layout for the texts. Default: generated texts.")
    ] = None,
    llm: Annotated[str | None, typer.Option(help="Model for query-time expansion. Default: llamacpp.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Result file; parts measured earlier on this machine are kept.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure speed and cost as ratios in one run, on one thread: search beside faiss, bm25s and tantivy, rates and
    sizes, evolve as the corpus grows and beside NUDGE-N's fit, query-time expansion beside plain search."""
    with screen.report_errors(as_json):
        from evokey.bench import speed as speed_
        from evokey.bench.speed.machine import describe

        chosen = _split(parts) or [part for part in speed_.PARTS if part != "rivals" or data is not None]
        found: dict[str, Any] = {"machine": describe(), "documents": documents, "k": speed_.K}
        found = speed_.read_known(out, found)
        for part, told in screen.track(speed_.measure(chosen, documents, data, llm), "measuring", as_json, len(chosen)):
            found[part] = told
            if out is not None:
                out.parent.mkdir(parents=True, exist_ok=True)
                out.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", "utf-8")
        if as_json:
            screen.emit(found)
            return
        for line in speed_.describe_all(found):
            screen.say(escape(line))


def _report(outcomes: Sequence[Outcome], out: Path, as_json: bool) -> None:
    from evokey.bench import runs

    found = sorted((one for one in outcomes if one.result is not None), key=lambda one: one.run)
    failed = {one.error: one.run for one in outcomes if one.error is not None}
    paths = _draw(out) if found else []
    if as_json and not failed:
        screen.emit([runs.summarise(one.result) for one in found if one.result is not None])
        return
    if not as_json and found:
        _summary([one.result for one in found if one.result is not None])
        known = sum(not one.fresh for one in found)
        screen.say(f"{screen.several(len(found), 'run')}, {known} of them measured before")
        _say_written(paths)
    if failed:
        said = "; ".join(f"{run.dataset}, {run.encoder}, {run.policy}: {error}" for error, run in failed.items())
        raise InvalidInput(f"{screen.several(len(outcomes) - len(found), 'run')} failed: {said}")


def _summary(found: Sequence[Result]) -> None:
    from evokey.bench.grid import Grid

    grid = Grid(found)
    table = screen.plain_table("nDCG@10, tested queries", "encoder", "protocol", *grid.policies)
    for setting in grid.settings:
        means = [grid.mean(setting, policy) for policy in grid.policies]
        best = max((mean for mean in means if mean is not None), default=None)
        shown = ["–" if mean is None else f"[bold]{mean:.3f}[/]" if mean == best else f"{mean:.3f}" for mean in means]
        table.add_row(escape(setting.dataset), escape(setting.encoder), setting.how, *shown)
    screen.console.print(table)


def _draw(folder: Path) -> list[Path]:
    from evokey.bench import tables

    paths = tables.write(folder)
    try:
        from evokey.bench import figures
    except ModuleNotFoundError as error:
        screen.errors.print(f"no figures: {error.name} is missing; pip install 'evokey[bench]'", highlight=False)
        return paths
    return [*paths, *figures.draw(folder)]


def _say_written(paths: Sequence[Path]) -> None:
    screen.say("written: " + escape(", ".join(str(path) for path in paths)))


def _split(said: Sequence[str] | None) -> list[str]:
    """By comma, or the option again."""
    from evokey.bench import naming

    return naming.split(said or ())


def _policies(said: Sequence[str] | None) -> list[str]:
    from evokey.bench.ablations import ABLATIONS as PARTS

    listed = [name for one in _split(said) for name in (PARTS if one == ABLATIONS else (one,))]
    return list(dict.fromkeys(listed))


def _share(said: str) -> float:
    try:
        return float(said)
    except ValueError:
        raise InvalidInput(f"--rate {said}: a rate is the share of queries that teach, such as 0.5") from None
