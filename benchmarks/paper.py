"""The paper's rule beside ours, as fairly as we can: with its gate, with expansions, and as a whole pipeline.

    python benchmarks/paper.py [DATA_DIR] --out FILE [--part fair gates pipeline ablations] [--set NAME …] [--jobs N]
        [--runs FOLDER] [--again guarded …] [--rates 0.3 …] [--verifier judge …] [--expander hyde …] [--llm NAME]

Repeated holdout by `evokey bench`: a share of the judged queries teaches, the others are tested. Parts:

    fair        half teaches. The rule without its gate, with it, with it where right documents alone are credited,
                and with recorded expansions; the guarded policy on the same lessons; NUDGE on dense vectors
    gates       the rule under other thresholds
    pipeline    expander → search with units → verifier → the rule, and the guarded policy on the same evidence, at the
                paper's rates. Scores are averaged over expansion methods, as in the paper. Judgements verify, and gold
                answers where a set has them; further verifiers, and expanders that ask a model, by option
    ablations   the rule's parameters, its accumulating and its online form, and plain inner products

Every run is a file in the folder of runs: an interrupted command resumes. When a policy was changed, `--again guarded`
deletes its runs, so that it alone is measured again. A query's scores are averaged over seeds and
expansion methods before anything is compared; intervals (95 %) are of the difference to the untaught index.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from run import MINILM, SETS

from evokey.bench import data as data_
from evokey.bench.data import Dataset
from evokey.bench.measures import MAIN
from evokey.bench.runs import FOLDER, Result, Run, execute, write_json
from evokey.bench.significance import average, compare
from evokey.bench.systems import fits

USUAL = ("bm25", "wordllama")
UNGATED = "paper:gate=0"
RATES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
GATES = (UNGATED, "paper:gate=0.1", "paper", "paper:gate=1")
ABLATED = ("scifact", "cranfield")
CHANGES = (
    "x=1", "x=2", "x=10", "capacity=5", "capacity=128", "retrieved=1", "retrieved=3", "normalise=false", "online=true",
    "online=true,batch=8", "online=true,batch=128", "online=true,patience=1", "online=true,patience=10",
    "online=true,margin=0", "online=true,margin=0.3", "online=true,accumulate=true",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A row of a table: what was taught to what, over all seeds and expansion methods."""

    part: str
    set: str
    encoder: str
    rate: float
    system: str
    verifier: str | None = None
    expanded: bool = False


Plan = list[tuple[Cell, Run]]


@lru_cache(maxsize=1)
def load(folder: Path) -> Dataset:
    return data_.load(str(folder))


def encoders(folder: Path) -> list[str]:
    return [*USUAL, *([MINILM] if MINILM in load(folder).embeddings else [])]


def plan_systems(part: str, folder: Path, systems: Iterable[str], kinds: Iterable[str], seeds: int) -> Iterator[Any]:
    """The same lessons for each system."""
    for encoder, system, seed in product(kinds, systems, range(seeds)):
        if fits(system, encoder, None) is None:
            run = Run(str(folder), encoder, rate=0.5, seed=seed, policy=system)
            yield Cell(part, folder.name, encoder, 0.5, system), run


def plan_fair(folder: Path, seeds: int) -> Iterator[Any]:
    kinds, recorded = encoders(folder), sorted(load(folder).expansions)
    systems = ("none", UNGATED, "paper", "paper-right", "guarded", "nudge-n")
    yield from plan_systems("fair", folder, systems, kinds, seeds)
    for encoder, system, units, seed in product(USUAL, ("paper", "guarded"), recorded, range(seeds)):
        run = Run(str(folder), encoder, rate=0.5, seed=seed, policy=system, units=units)
        yield Cell("fair", folder.name, encoder, 0.5, system, expanded=True), run


def plan_pipeline(folder: Path, options: argparse.Namespace) -> Iterator[Any]:
    verifiers = ["labels", *(["answer-match"] if load(folder).answers else []), *options.verifier]
    recorded = sorted(load(folder).expansions)
    for encoder, rate, seed in product(USUAL, options.rates, range(options.seeds)):
        common = {"data": str(folder), "encoder": encoder, "rate": rate, "seed": seed}
        if not recorded:
            return
        yield Cell("pipeline", folder.name, encoder, rate, "none"), Run(**common, policy="none")
        for verifier, system, units in product(verifiers, ("paper", "guarded"), [*recorded, *options.expander]):
            cell = Cell("pipeline", folder.name, encoder, rate, system, verifier, expanded=True)
            yield cell, Run(**common, policy=system, units=units, verifier=verifier, llm=options.llm)


def plan(options: argparse.Namespace) -> Plan:
    found: Plan = []
    for name in options.set:
        folder = options.data / name
        kinds = encoders(folder)
        if "fair" in options.part:
            found += plan_fair(folder, options.seeds)
        if "gates" in options.part:
            found += plan_systems("gates", folder, ("none", *GATES), kinds, options.seeds)
        if "ablations" in options.part and name in ABLATED:
            systems = ("none", "paper", *(f"paper:{change}" for change in CHANGES))
            found += plan_systems("ablations", folder, systems, kinds, options.seeds)
        if "pipeline" in options.part:
            found += plan_pipeline(folder, options)
    return found


def summarise(planned: Plan, results: Mapping[Run, Result]) -> list[dict[str, Any]]:
    """A row for each cell all of whose runs are there."""
    runs: dict[Cell, list[Run]] = defaultdict(list)
    for cell, run in planned:
        runs[cell].append(run)
    whole = {cell: [results[one] for one in ones] for cell, ones in runs.items() if all(one in results for one in ones)}
    return [row(cell, found, whole) for cell, found in whole.items()]


def row(cell: Cell, found: Sequence[Result], whole: Mapping[Cell, Sequence[Result]]) -> dict[str, Any]:
    values = average(one["values"] for one in found)
    untaught = whole.get(Cell(cell.part, cell.set, cell.encoder, cell.rate, "none"), ())
    before = average(one["values"] for one in untaught)
    said = compare(values, before) if before and cell.system != "none" else None
    reports = [one["report"] for one in found]
    return {
        **asdict(cell),
        "queries": len(values),
        "runs": len(found),
        "methods": len({one["units"] for one in found}) if cell.expanded else 0,
        "ndcg": fmean(values.values()),
        "difference": None if said is None else [said.difference, said.low, said.high],
        "p": None if said is None else said.p,
        **{group: _group(found, group) for group in ("related", "unrelated")},
        "taught": fmean(one["counts"]["taught"] for one in found),
        "lessons": _mean(reports, "lessons"),
        "passed": _mean(reports, "passed"),
    }


def _group(found: Sequence[Result], group: str) -> float | None:
    """nDCG@10 of the tested queries that share a right document with a lesson, or of those that do not."""
    known = [one[group][MAIN] for one in found if one[group] is not None]
    return fmean(known) if known else None


def _mean(reports: Sequence[Mapping[str, Any]], name: str) -> float | None:
    known = [one[name] for one in reports if name in one]
    return fmean(known) if known else None


def keep(file: Path, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a file that were not made anew."""
    names = [one.name for one in fields(Cell)]
    made = {tuple(one[name] for name in names) for one in rows}
    known: list[dict[str, Any]] = json.loads(file.read_text("utf-8")) if file.exists() else []
    return [one for one in known if tuple(one[name] for name in names) not in made]


def delete(planned: Plan, folder: Path, systems: Sequence[str]) -> None:
    """The runs of these systems, to be measured again."""
    for _, run in planned:
        if run.policy in systems:
            (folder / FOLDER / run.file).unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("bench-output/paper"))
    parts = ["fair", "gates", "ablations", "pipeline"]
    parser.add_argument("--part", nargs="+", choices=parts, default=parts)
    parser.add_argument("--set", nargs="+", choices=SETS.split(), default=SETS.split())
    parser.add_argument("--rates", type=float, nargs="+", default=RATES)
    parser.add_argument("--verifier", nargs="*", default=[], help="further verifiers of the pipeline")
    parser.add_argument("--expander", nargs="*", default=[], help="further expanders of the pipeline")
    parser.add_argument("--llm", help="the model that these ask")
    parser.add_argument("--again", nargs="*", default=[], help="systems to measure again")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    planned = plan(options)
    delete(planned, options.runs, options.again)
    results: dict[Run, Result] = {}
    for outcome in execute(list(dict.fromkeys(run for _, run in planned)), options.runs, jobs=options.jobs):
        if outcome.result is None:
            print(f"failed: {outcome.run.file}: {outcome.error}", flush=True)
        else:
            results[outcome.run] = outcome.result
        if outcome.fresh:
            print(f"{len(results)}: {outcome.run.file}", flush=True)
    rows = summarise(planned, results)
    write_json(options.out, [*keep(options.out, rows), *rows], indent=1)


if __name__ == "__main__":
    main()
