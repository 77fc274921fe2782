"""Who says what was right: labels, gold answers, or a judge that errs. nDCG@10 before and after, by set and retriever.

    python benchmarks/regimes.py ../shared/data/scifact ../shared/data/nfcorpus ../shared/data/locomo10 --out FILE
        [--encoder bm25 hybrid] [--regime labels …] [--expander query recorded] [--seeds 3]

Half of the judged queries go through memory.learn, then one evolve; the other half is asked before and after.
All regimes see the same ten hits of the same queries:

    labels      the set's judgements, by the verifier as it is: half of a query's right documents must be among the hits
    answers     gold answers alone (answer-match); only sets with answers.jsonl can run it
    judge N %   a scripted judge credits the right ones among the hits. In N % of the queries, dealt by their text, it
                errs: it names a wrong hit right, or (where a right one is there, every other time) sees none

With recorded expansions the query searches, and teaches, together with its units. Rows already in the result file are
not made again.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

import evokey
from evokey.bench import protocols
from evokey.bench.data import Dataset, load
from evokey.bench.lab import Lab
from evokey.bench.measures import quality
from evokey.bench.protocols import Question
from evokey.bench.runs import write_json
from evokey.bench.significance import compare
from evokey.bench.systems import Plain
from evokey.types import Attempt, Ruling

ENCODERS = ("bm25", "hybrid")
MOST_TAUGHT_ASKED = 600
RECORDED = "gemini-flash-100"
"""The one recorder that both sets with expansions have."""
REGIMES: dict[str, dict[str, Any] | None] = {
    "labels": None,
    "answers": None,
    "judge 0 %": {"name": "custom", "function": "regimes:judge"},
    "judge 10 %": {"name": "custom", "function": "regimes:judge"},
    "judge 30 %": {"name": "custom", "function": "regimes:judge"},
}
ERRS = {"judge 0 %": 0.0, "judge 10 %": 0.1, "judge 30 %": 0.3}


@dataclass(frozen=True)
class Judge:
    """Sees what was found, knows what is right, and errs in a share of the queries."""

    right: Mapping[str, frozenset[str]]
    """By the text of a query."""
    errs: float = 0.0
    seed: int = 0

    def credit(self, query: str, found: list[str]) -> list[str]:
        right = [id for id in found if id in self.right.get(query, ())]
        chance = random.Random(f"{self.seed} {query}")
        if chance.random() >= self.errs:
            return right
        wrong = [id for id in found if id not in right]
        misses = bool(right) and chance.random() < 0.5
        return [] if misses or not wrong else [chance.choice(wrong)]


JUDGE = Judge({})


def judge(attempt: Attempt) -> Ruling:
    """The verifier that memories name: regimes:judge."""
    credited = JUDGE.credit(attempt.query, [hit.id for hit in attempt.hits])
    return Ruling(bool(credited), float(bool(credited)), dict.fromkeys(credited, 1.0), "the scripted judge")


def learn(memory: evokey.Memory, data: Dataset, regime: str, taught: Sequence[Question], seed: int) -> dict[str, Any]:
    """Queries through the loop: how many became lessons, and what share of the credited documents is not right."""
    global JUDGE
    JUDGE = Judge({one.text: one.right for one in taught}, ERRS.get(regime, 0.0), seed)
    lessons, credited = 0, list[bool]()
    for one in taught:
        given: dict[str, Any] = {}
        if regime == "answers":
            if one.id not in data.answers:
                continue
            given = {"expected": data.answers[one.id]}
        elif regime == "labels":
            given = {"relevant": {id: grade for id, grade in one.grades.items() if grade > 0}}
        report = memory.learn(one.text, **given)
        if report.lesson is not None:
            lessons += 1
            credited += [verdict.document in one.right for verdict in report.lesson.verdicts if verdict.grade > 0]
    return {"lessons": lessons, "credited": len(credited), "wrong": 1 - float(np.mean(credited or [1]))}


def once(lab: Lab, regime: str, changed: dict[str, Any], seed: int) -> dict[str, Any]:
    """One seed: the same split before and after."""
    dealt = protocols.split(lab.data, "holdout", seed=seed)
    groups = (dealt.tested, dealt.taught[:MOST_TAUGHT_ASKED])
    with lab.memory() as memory:
        before = [quality(Plain(memory).rank, some) for some in groups]
    with lab.memory(verifier=REGIMES[regime], **changed) as memory:
        began = time.perf_counter()
        found = learn(memory, lab.data, regime, dealt.taught, seed)
        learning = time.perf_counter() - began
        report = memory.evolve()
        after = [quality(Plain(memory).rank, some) for some in groups]
    pairs = [[fmean(one.values()), fmean(other.values())] for one, other in zip(before, after, strict=True)]
    return found | {
        "queries": len(dealt.taught),
        "held_out": pairs[0],
        "taught": pairs[1],
        "p": compare(after[0], before[0]).p,
        "published": report.published,
        "learn_ms": 1000 * learning / len(dealt.taught),
    }


def summarise(seeds: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "queries": seeds[0]["queries"],
        "held_out": np.mean([one["held_out"] for one in seeds], 0).tolist(),
        "taught": np.mean([one["taught"] for one in seeds], 0).tolist(),
        "lessons": fmean(one["lessons"] for one in seeds),
        "wrong": fmean(one["wrong"] for one in seeds),
        "significantly_below": sum(one["p"] < 0.05 and one["held_out"][1] < one["held_out"][0] for one in seeds),
        "seeds": seeds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--encoder", nargs="+", default=list(ENCODERS), choices=list(ENCODERS))
    parser.add_argument("--regime", nargs="+", default=list(REGIMES), choices=list(REGIMES))
    parser.add_argument("--expander", nargs="+", default=["query", "recorded"], choices=["query", "recorded"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    results = json.loads(options.out.read_text("utf-8")) if options.out.exists() else []
    for folder, encoder in product(options.folders, options.encoder):
        data = load(folder)
        with tempfile.TemporaryDirectory() as scratch:
            lab = Lab(data, encoder, Path(scratch))
            for expander, regime in product(options.expander, options.regime):
                row = {"dataset": data.name, "encoder": encoder, "expander": expander, "regime": regime}
                if any(row.items() <= one.items() for one in results):
                    continue
                if (expander == "recorded" and RECORDED not in data.expansions) or (
                    regime == "answers" and not data.answers
                ):
                    print(f"left out, for want of data: {row}", flush=True)
                    continue
                recorded = {"name": "recorded", "file": str(data.expansions.get(RECORDED, Path()).resolve())}
                changed = {} if expander == "query" else {"expander": recorded}
                results.append(row | summarise([once(lab, regime, changed, seed) for seed in range(options.seeds)]))
                write_json(options.out, results, indent=1)
                print({name: value for name, value in results[-1].items() if name != "seeds"}, flush=True)


if __name__ == "__main__":
    from regimes import main as start  # the judge's state is that of the module which memories import

    start()
