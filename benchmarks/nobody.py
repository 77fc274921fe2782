"""Who gains and who pays: taught, related and unrelated questions on every set, beside the version before.

    python benchmarks/nobody.py [DATA_DIR] [--out FILE] [--now FOLDER] [--before FOLDER]
        [--set NAME …] [--encoder NAME …] [--protocol holdout topic once shown] [--seeds 0 1 …]
    python benchmarks/another.py CHECKOUT benchmarks/nobody.py [DATA_DIR] --now FOLDER …

Measures what the folder `--now` does not hold yet, prints a line for each cell (protocol, set, retriever), and with
`--out` writes the table of all cells that are there, beside those of the folder `--before`; without such a folder the
version before keeps the values of FILE. The second form measures another checkout. Every run is a small file, so an
interrupted command resumes, and several processes with the same folder share the cells.

    holdout     half of the judged queries teach, the others are tested
    topic       half of the queries of one topic teach, all others are tested
    once        half of the intents with several wordings are taught by one wording each; the demo too
    shown       as holdout, but lessons name only documents among the ten hits; the default retriever alone
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pools import Pool
from run import GIVEN, MINILM

from evokey.bench import data as data_
from evokey.bench import protocols
from evokey.bench.data import Dataset
from evokey.bench.protocols import Split
from evokey.bench.runs import Result, Run, execute, write_json

SETS = (
    "cranfield scifact nfcorpus bright_theoremqa_theorems pubmedqa_l climate_fever_evidence locomo10 clinc150"
).split()
"""Those with a corpus, small ones first."""
ONCE = ("demo", "scifact", "clinc150", "locomo10")
USUAL, WITH_MINILM = ("bm25", "wordllama", "hybrid"), (MINILM, f"bm25+{MINILM}")
PROTOCOLS = ("holdout", "topic", "once", "shown")
SHOWN = 10
"""Hits among which feedback names documents, in the protocol shown."""
SEEDS = range(5)
SYSTEMS = ("none", "guarded")
GROUPS = ("tested", "related", "unrelated", "taught", "single")
"""single: taught questions with one right document."""
NOW, BEFORE = Path("bench-output/nobody/now"), Path("bench-output/nobody/before")


@dataclass(frozen=True, order=True)
class Cell:
    protocol: str
    set: str
    encoder: str

    def runs(self, data: Path, seeds: Sequence[int]) -> dict[tuple[int, str], Run]:
        place = self.set if self.set == "demo" else str(data / self.set)
        rate = None if self.protocol == "once" else 0.5
        protocol, shown = ("holdout", SHOWN) if self.protocol == "shown" else (self.protocol, 0)
        return {
            (seed, system): Run(place, self.encoder, protocol, rate, seed, system, shown=shown)
            for seed in seeds
            for system in SYSTEMS
        }


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    for protocol in options.protocol:
        for name in ONCE if protocol == "once" else SETS:
            given = name in GIVEN.split() and protocol != "once"
            encoders = ["hybrid"] if protocol == "shown" else [*USUAL, *(WITH_MINILM if given else ())]
            if name in options.set:
                yield from (Cell(protocol, name, one) for one in encoders if one in options.encoder)


@lru_cache(maxsize=1)
def load(place: str) -> Dataset:
    return data_.load(place)


@lru_cache(maxsize=16)
def split(place: str, protocol: str, seed: int) -> Split:
    return protocols.split(load(place), protocol, seed=seed)


def groups(run: Run, result: Result) -> dict[str, list[str]]:
    """Questions that are reported apart; of the taught ones, those that were asked again."""
    dealt = split(run.data, run.protocol, run.seed)
    known = dealt.groups()
    again = [one for one in dealt.taught if one.id in result["taught_values"]]
    single = [one for one in again if len(one.right) == 1]
    found = (dealt.tested, known["related"], known["unrelated"], again, single)
    return {name: [one.id for one in ones] for name, ones in zip(GROUPS, found, strict=True)}


def summarise(runs: Mapping[tuple[int, str], Run], results: Mapping[Run, Result]) -> dict[str, Any] | None:
    """What a version does in a cell, over the seeds that are there."""
    seeds = [
        seed for seed, system in runs if system == "guarded" and all(runs[seed, one] in results for one in SYSTEMS)
    ]
    if not seeds:
        return None
    pools = {name: Pool() for name in GROUPS}
    for seed in seeds:
        before, after = (results[runs[seed, one]] for one in SYSTEMS)
        for name, ids in groups(runs[seed, "guarded"], after).items():
            values = "taught_values" if name in ("taught", "single") else "values"
            pools[name].add(ids, before[values], after[values])
    taught = [results[runs[seed, "guarded"]] for seed in seeds]
    return {
        "seeds": seeds,
        "lessons": [one["counts"]["taught"] for one in taught],
        "evolve": sum(one["cpu_seconds"]["evolve"] for one in taught) / len(taught),
        **{name: pool.summary() for name, pool in pools.items()},
    }


def read(folder: Path, runs: Mapping[tuple[int, str], Run]) -> dict[Run, Result]:
    """The results that are there."""
    files = {run: folder / "runs" / run.file for run in runs.values()}
    return {run: json.loads(file.read_text("utf-8")) for run, file in files.items() if file.exists()}


def measure(cell: Cell, options: argparse.Namespace) -> None:
    runs = cell.runs(options.data, options.seeds)
    if len(read(options.now, runs)) == len(runs):
        return
    lock = FileLock(options.now / "locks" / f"{cell.protocol}.{cell.set}.{cell.encoder}.lock")
    try:
        with lock.acquire(timeout=0):
            for outcome in execute(list(runs.values()), options.now):
                if outcome.result is None:
                    print(f"failed: {outcome.run.file}: {outcome.error}", flush=True)
    except Timeout:
        return
    if (found := summarise(runs, read(options.now, runs))) is not None:
        print(line(cell, found), flush=True)


def line(cell: Cell, found: Mapping[str, Any]) -> str:
    parts = []
    for name in GROUPS:
        if one := found[name]:
            before, after = one["ndcg"]
            change = "" if one["change"] is None else " ({:+.1%} [{:+.1%} {:+.1%}])".format(*one["change"])
            parts.append(f"{name} {before:.3f} → {after:.3f}{change if name != 'taught' else ''}")
    seeds = " ".join(map(str, found["seeds"]))
    return f"{cell.protocol} {cell.set} {cell.encoder}, seeds {seeds}: {'; '.join(parts)}; {found['evolve']:.1f} s"


def compare(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each cell that was measured: the version now, and the one before."""
    known = json.loads(options.out.read_text("utf-8")) if options.out.exists() else []
    earlier = {Cell(one["protocol"], one["set"], one["encoder"]): one["before"] for one in known}
    rows = []
    for cell in cells(options):
        runs = cell.runs(options.data, options.seeds)
        now = summarise(runs, read(options.now, runs))
        if now is None:
            continue
        same = {place: run for place, run in runs.items() if place[0] in now["seeds"]}
        before = summarise(same, read(options.before, same)) or earlier.get(cell)
        rows.append({"protocol": cell.protocol, "set": cell.set, "encoder": cell.encoder, "now": now, "before": before,
                     "against": against(options, same)})  # fmt: skip
    return rows


def against(options: argparse.Namespace, runs: Mapping[tuple[int, str], Run]) -> dict[str, Any] | None:
    """The tested questions of the version now beside those of the version before."""
    pool, sides = Pool(), [read(folder, runs) for folder in (options.before, options.now)]
    for (_, system), run in runs.items():
        if system == "guarded" and all(run in side for side in sides):
            before, after = (side[run]["values"] for side in sides)
            pool.add(after, before, after)
    return pool.summary()


def show(row: Mapping[str, Any]) -> str:
    """Both versions in a line: the relative changes of groups, taught questions, and seconds."""
    sides, parts = [row[name] for name in ("before", "now")], []
    for name in GROUPS[:3]:
        known = [one[name] for one in sides]
        if all(one and one["change"] for one in known):
            low, high = known[1]["change"][1:]
            parts.append(f"{name} {known[0]['change'][0]:+.1%} | {known[1]['change'][0]:+.1%} [{low:+.1%} {high:+.1%}]")
    parts.append("taught " + " | ".join(f"{one['taught']['ndcg'][1]:.3f}" for one in sides))
    parts.append("evolve " + " | ".join(f"{one['evolve']:.1f} s" for one in sides))
    return f"{row['protocol']} {row['set']} {row['encoder']}: {'; '.join(parts)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--now", type=Path, default=NOW, help="folder of runs")
    parser.add_argument("--before", type=Path, default=BEFORE, help="folder of runs of the version before")
    parser.add_argument("--set", nargs="+", choices=[*SETS, "demo"], default=[*SETS, "demo"])
    parser.add_argument("--encoder", nargs="+", choices=[*USUAL, *WITH_MINILM], default=[*USUAL, *WITH_MINILM])
    parser.add_argument("--protocol", nargs="+", choices=PROTOCOLS, default=PROTOCOLS)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    options = parser.parse_args()
    (options.now / "locks").mkdir(parents=True, exist_ok=True)
    for cell in cells(options):
        measure(cell, options)
    if options.out is not None:
        rows = compare(options)
        write_json(options.out, rows, indent=1)
        print("\n".join(show(one) for one in rows if one["before"]))


if __name__ == "__main__":
    main()
