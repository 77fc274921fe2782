"""What expansion is worth: asked at query time, and taught. nDCG@10 by set, retriever and method.

    python benchmarks/expansion.py ../shared/data/scifact ../shared/data/nfcorpus --out FILE
        [--encoder bm25 wordllama …] [--part asked taught]

Asked: all judged test queries, no teaching; the plain query beside the query with its units, in each way to search.
Taught: half of the queries teach, the other half is tested; the lessons bring the query alone, its
units alone, or both. Methods are the recorded expansions of a set; asked, also the classical ones without a model. A
query that a method has no expansion of goes without. Rows already in the result file are not made again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import evokey
from evokey.bench import protocols
from evokey.bench.ablations import UnitsOnly
from evokey.bench.data import Dataset, load
from evokey.bench.lab import Lab
from evokey.bench.measures import quality
from evokey.bench.protocols import Question
from evokey.bench.runs import write_json
from evokey.bench.significance import compare
from evokey.bench.systems import Plain
from evokey.errors import ExpansionFailed
from evokey.types import Expansion

SEARCHES = ("blend", "concat", "fuse")
LESSONS = ("query", "units", "both")
CLASSICAL: dict[str, dict[str, Any]] = {
    "prf, terms": {"name": "prf", "form": "terms"},
    "prf, passages": {"name": "prf", "form": "passages"},
    "synonyms": {"name": "synonyms"},
}
Expansions = Mapping[str, Expansion]


def methods(data: Dataset) -> dict[str, dict[str, Any]]:
    return {name: {"name": "recorded", "file": str(file)} for name, file in data.expansions.items()} | CLASSICAL


def expand(memory: evokey.Memory, questions: Sequence[Question], expander: Mapping[str, Any]) -> Expansions:
    """By query id; what fails is left out."""
    found = {}
    for one in questions:
        try:
            found[one.id] = memory.expand(one.text, dict(expander))
        except ExpansionFailed:
            continue
    return found


def ask(
    memory: evokey.Memory, questions: Sequence[Question], known: Expansions, search: str | None = None
) -> dict[str, float]:
    """nDCG@10 of queries with their expansions, searched in one of the ways."""

    def rank(one: Question, depth: int) -> list[str]:
        expansion = replace(known[one.id], search=search) if search and one.id in known else None
        return [hit.id for hit in memory.search(one.text, depth, expansion=expansion)]

    return quality(rank, questions)


def compare_searches(
    memory: evokey.Memory, questions: Sequence[Question], known: Expansions, searches: Sequence[str]
) -> dict[str, Any]:
    plain = ask(memory, questions, known)
    found: dict[str, Any] = {"queries": len(questions), "expanded": len(known), "plain": fmean(plain.values())}
    for search in searches:
        scores = ask(memory, questions, known, search)
        found |= {search: fmean(scores.values()), f"p_{search}": compare(scores, plain).p}
    return found


def teach(lab: Lab, known: Expansions, lessons: str, seeds: int) -> dict[str, Any]:
    """Held-out and taught queries before and after, each seed on a copy of the untaught memory."""
    rows = []
    for seed in range(seeds):
        dealt = protocols.split(lab.data, "holdout", seed=seed)
        with lab.memory(UnitsOnly() if lessons == "units" else "guarded") as memory:
            plain = Plain(memory)
            untaught = quality(plain.rank, dealt.tested)
            for one in dealt.taught:
                units = known[one.id].texts if one.id in known and lessons != "query" else None
                memory.feedback(one.text, relevant=dict(one.grades), units=units)
            report = memory.evolve()
            after, own = quality(plain.rank, dealt.tested), quality(plain.rank, dealt.taught)
        pair = [fmean(untaught.values()), fmean(after.values())]
        choices = [asdict(choice) for choice in report.choice.values()]
        rows.append((pair, fmean(own.values()), compare(after, untaught).p, choices))
    return {
        "lessons": lessons,
        "held_out": [fmean(pair[when] for pair, *_ in rows) for when in (0, 1)],
        "taught": fmean(own for _, own, *_ in rows),
        "by_seed": [pair for pair, *_ in rows],
        "p": [p for *_, p, _ in rows],
        "choices": [choice for *_, choices in rows for choice in choices],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--encoder", nargs="+", default=["bm25", "wordllama", "all-MiniLM-L6-v2"])
    parser.add_argument("--part", nargs="+", default=["asked", "taught"], choices=["asked", "taught"])
    parser.add_argument("--method", nargs="+", help="only these")
    parser.add_argument("--lessons", nargs="+", default=list(LESSONS), choices=LESSONS)
    parser.add_argument("--search", nargs="+", default=list(SEARCHES), choices=SEARCHES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    results = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {"asked": [], "taught": []}

    def have(part: str, **said: Any) -> bool:
        return any(said.items() <= row.items() for row in results[part])

    def keep(part: str, row: dict[str, Any]) -> None:
        results[part].append(row)
        print(part, {name: value for name, value in row.items() if name not in ("choices", "by_seed", "p")}, flush=True)
        write_json(options.out, results, indent=1)

    for folder, encoder in product(options.folders, options.encoder):
        data = load(folder)
        questions, row = protocols.questions(data), {"dataset": data.name, "encoder": encoder}
        with tempfile.TemporaryDirectory() as scratch:
            lab = Lab(data, encoder, Path(scratch), encode=True)
            wanted = {name: one for name, one in methods(data).items() if name in (options.method or [name])}
            with lab.memory() as memory:
                known = {name: expand(memory, questions, expander) for name, expander in wanted.items()}
                for name in known if "asked" in options.part else ():
                    if not have("asked", **row, method=name):
                        found = compare_searches(memory, questions, known[name], options.search)
                        keep("asked", row | {"method": name} | found)
            taught = [("", "query"), *product([one for one in known if one not in CLASSICAL], LESSONS[1:])]
            for name, lessons in taught if "taught" in options.part else ():
                if lessons in options.lessons and not have("taught", **row, method=name, lessons=lessons):
                    found = teach(lab, known.get(name, {}), lessons, options.seeds)
                    keep("taught", row | {"method": name} | found)


if __name__ == "__main__":
    main()
