"""Who says what was right: labels, gold answers, or a judge that errs. nDCG@10 before and after, by set and retriever.

    python benchmarks/regimes.py ../shared/data/scifact ../shared/data/nfcorpus ../shared/data/locomo10 --out FILE
        [--encoder bm25 hybrid] [--regime labels …] [--expander query recorded] [--seeds 3]

Half of the judged queries go through memory.learn, then one evolve; the other half is asked before and after, as in
holdout.py. All regimes see the same ten hits of the same queries:

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
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from holdout import MOST_TAUGHT_ASKED, Collection, lines, paired_p, quality

import evokey
from evokey import settings
from evokey.types import Attempt, Ruling

ENCODERS = {"bm25": "bm25", "hybrid": None}
RECORDED = "gemini-flash-100"
"""The one recorder that both sets with expansions have."""
REGIMES: dict[str, dict[str, Any] | None] = {
    "labels": None,
    "answers": None,
    "judge 0 %": {"name": "custom", "function": "regimes:judged"},
    "judge 10 %": {"name": "custom", "function": "regimes:judged"},
    "judge 30 %": {"name": "custom", "function": "regimes:judged"},
}
ERRS = {"judge 0 %": 0.0, "judge 10 %": 0.1, "judge 30 %": 0.3}


@dataclass(frozen=True)
class Judge:
    """Sees what was found, knows what is right, and errs in a share of the queries."""

    right: Mapping[str, Mapping[str, float]]
    """By the text of a query."""
    errs: float = 0.0
    seed: int = 0

    def credited(self, query: str, found: list[str]) -> list[str]:
        right = [id for id in found if id in self.right.get(query, {})]
        chance = random.Random(f"{self.seed} {query}")
        if chance.random() >= self.errs:
            return right
        wrong = [id for id in found if id not in right]
        misses = bool(right) and chance.random() < 0.5
        return [] if misses or not wrong else [chance.choice(wrong)]


JUDGE = Judge({})


def judged(attempt: Attempt) -> Ruling:
    """The verifier that memories name: regimes:judged."""
    credited = JUDGE.credited(attempt.query, [hit.id for hit in attempt.hits])
    return Ruling(bool(credited), float(bool(credited)), dict.fromkeys(credited, 1.0), "the scripted judge")


@contextmanager
def copied(base: Path, **changed: Any) -> Iterator[evokey.Memory]:
    """A copy of an untaught memory with some of its settings changed."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(base, folder, dirs_exist_ok=True)
        settings.replaced(Path(folder), replace(settings.read(Path(folder) / settings.FILE), **changed))
        with evokey.open(folder) as memory:
            yield memory


def halves(data: Collection, seed: int) -> tuple[list[str], list[str]]:
    queries = sorted(data.test)
    random.Random(seed).shuffle(queries)
    return queries[: len(queries) // 2], queries[len(queries) // 2 :]


def learned(
    memory: evokey.Memory, data: Collection, answers: Mapping[str, str], regime: str, taught: list[str], seed: int
) -> dict[str, Any]:
    """Queries through the loop: how many became lessons, and what share of the credited documents is not right."""
    global JUDGE
    JUDGE = Judge({data.queries[query]: grades for query, grades in data.judged.items()}, ERRS.get(regime, 0.0), seed)
    lessons, credited = 0, list[bool]()
    for query in taught:
        text = data.queries[query]
        if regime == "answers":
            if query not in answers:
                continue
            report = memory.learn(text, expected=answers[query])
        elif regime.startswith("labels"):
            report = memory.learn(text, relevant=data.judged[query])
        else:
            report = memory.learn(text)
        if report.lesson is not None:
            lessons += 1
            credited += [one.document in data.judged[query] for one in report.lesson.verdicts if one.grade > 0]
    return {"lessons": lessons, "credited": len(credited), "wrong": 1 - float(np.mean(credited or [1]))}


def run(
    base: Path, data: Collection, answers: Mapping[str, str], regime: str, changed: dict[str, Any], before: list[Any]
) -> dict[str, Any]:
    seeds = []
    for seed, (untaught, own_untaught) in enumerate(before):
        taught, tested = halves(data, seed)
        with copied(base, verifier=REGIMES[regime], **changed) as memory:
            began = time.perf_counter()
            told = learned(memory, data, answers, regime, taught, seed)
            learning = time.perf_counter() - began
            report = memory.evolve()
            held_out, own = quality(memory, data, tested), quality(memory, data, taught[:MOST_TAUGHT_ASKED])
        seeds.append(
            told
            | {
                "held_out": [float(untaught.mean()), float(held_out.mean())],
                "taught": [float(own_untaught.mean()), float(own.mean())],
                "p": paired_p(untaught, held_out),
                "published": report.published,
                "learn_ms": 1000 * learning / len(taught),
            }
        )
    below = sum(one["p"] < 0.05 and one["held_out"][1] < one["held_out"][0] for one in seeds)
    return {
        "queries": len(halves(data, 0)[0]),
        "held_out": np.mean([one["held_out"] for one in seeds], 0).tolist(),
        "taught": np.mean([one["taught"] for one in seeds], 0).tolist(),
        "lessons": float(np.mean([one["lessons"] for one in seeds])),
        "wrong": float(np.mean([one["wrong"] for one in seeds])),
        "significantly_below": below,
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
    for folder in options.folders:
        data = Collection(folder)
        file = folder / "answers.jsonl"
        answers = {row["_id"]: row["answer"] for row in lines(file)} if file.exists() else {}
        recorded = folder / "expansions" / f"{RECORDED}.jsonl"
        for encoder in options.encoder:
            with tempfile.TemporaryDirectory() as base:
                with evokey.open(base, encoder=ENCODERS[encoder]) as memory:
                    memory.add(data.documents)
                    before = []
                    for seed in range(options.seeds):
                        taught, tested = halves(data, seed)
                        own = quality(memory, data, taught[:MOST_TAUGHT_ASKED])
                        before.append((quality(memory, data, tested), own))
                for expander in options.expander:
                    for regime in options.regime:
                        row = {"dataset": data.name, "encoder": encoder, "expander": expander, "regime": regime}
                        if any(row.items() <= one.items() for one in results):
                            continue
                        if expander == "recorded" and not recorded.exists():
                            continue
                        if regime == "answers" and not answers:
                            print(f"{data.name}: no gold answers, so the regime 'answers' cannot run", flush=True)
                            continue
                        named = {"name": "recorded", "file": str(recorded.resolve())}
                        changed = {} if expander == "query" else {"expander": named}
                        row |= run(Path(base), data, answers, regime, changed, before)
                        results.append(row)
                        options.out.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
                        print({name: value for name, value in row.items() if name != "seeds"}, flush=True)


if __name__ == "__main__":
    from regimes import main as start  # the judge's state is that of the module which memories import

    start()
