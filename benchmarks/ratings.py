"""What ratings alone teach, as a share of what labels teach; and the threshold by which sentences match a passage.

    python benchmarks/ratings.py ../shared/data/scifact … --out benchmarks/results/ratings.json

Half of the test queries teach, the others are held out. *Labels*: feedback names every right document. *Ratings*: each
teaching query is asked by three of thirty users. Five documents are shown; an answer cites the right ones among them,
or else the first. A user votes up if the citations are right, down if not; one in five users always votes the other
way. Nobody reviews. Then the memory evolves once. Measured is nDCG@10 of plain search, before and after.

The threshold: gold answers of PubMedQA and LoCoMo (which cite nothing) against what their question finds. Each sentence
of an answer credits what has most of its words, if that is so many of them.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import evokey
from evokey.bench.data import Dataset, load
from evokey.bench.runs import write_json
from evokey.loop.rating import MATCH, find_origins
from evokey.types import Answer

USERS, WRONG, ASKED = 30, 0.2, 3
SHOWN = 5
ANSWERED, ANSWERS = ("pubmedqa_l", "locomo10"), 1_000
"""Sets with gold answers, by which the threshold is chosen; and how many of them are taken."""
PARTS = ("passages", "documents")
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
Questions = Mapping[str, Mapping[str, int]]
"""Text of a query → right documents with their grades."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=1)
    said = parser.parse_args()
    found: dict[str, Any] = json.loads(said.out.read_text()) if said.out.exists() else {}
    for folder in said.sets:
        name = folder.name
        if name in ANSWERED:
            known = found.setdefault("threshold", {"chosen": MATCH})
            known[name] = known.get(name) or threshold(load(folder))
        if name != "pubmedqa_l" and name not in found.setdefault("sets", {}):
            rows = [measure(load(folder), seed) for seed in range(said.seeds)]
            found["sets"][name] = mean(rows)
        found["settings"] = {"users": USERS, "wrong": WRONG, "asked": ASKED, "shown": SHOWN, "seeds": said.seeds}
        write_json(said.out, found)
        print(name, json.dumps(found["sets"].get(name) if name in found.get("sets", {}) else found.get("threshold")))


def mean(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: round(fmean(row[name] for row in rows), 4) for name in rows[0]}


def measure(data: Dataset, seed: int) -> dict[str, float]:
    texts = sorted({data.queries[id] for id in data.judged})
    random.Random(seed).shuffle(texts)
    right = {
        data.queries[id]: {doc: grade for doc, grade in one.items() if grade > 0} for id, one in data.judged.items()
    }
    half = len(texts) // 2
    taught, held = ({text: right[text] for text in part} for part in (texts[:half], texts[half:]))
    told: dict[str, float] = {"taught queries": len(taught), "held-out queries": len(held)}
    for way in ("labels", "ratings"):
        with tempfile.TemporaryDirectory() as folder, evokey.open(Path(folder) / "kb") as memory:
            memory.add(data.documents)
            if way == "labels":
                told |= {"untaught, taught": score(memory, taught), "untaught, held out": score(memory, held)}
                memory.feedback_many({"query": text, "relevant": dict(one)} for text, one in taught.items())
            else:
                told |= rate(memory, taught, seed)
            memory.evolve()
            told |= {f"{way}, taught": score(memory, taught), f"{way}, held out": score(memory, held)}
    for part in ("taught", "held out"):
        gains = [told[f"{way}, {part}"] - told[f"untaught, {part}"] for way in ("ratings", "labels")]
        told[f"share, {part}"] = gains[0] / gains[1] if abs(gains[1]) > 1e-9 else 0.0
    return told


def rate(memory: evokey.Memory, taught: Questions, seed: int) -> dict[str, float]:
    """Users ask and vote."""
    chance = random.Random(f"votes {seed}")
    liars = set(range(round(USERS * WRONG)))
    ups = wrong_ups = downs = 0
    for text, right in taught.items():
        hits = memory.search(text, SHOWN)
        if not hits:
            continue
        cited = tuple(hit.id for hit in hits if hit.id in right) or (hits[0].id,)
        found = cited[0] in right
        answer = Answer(text, "an answer", cited, tuple(hits), "simulated")
        for user in chance.sample(range(USERS), ASKED):
            up = found != (user in liars)
            memory.rate(memory.show(text, hits, answer, f"user{user}"), up, actor=f"user{user}")
            ups, wrong_ups, downs = ups + up, wrong_ups + (up and not found), downs + (not up)
    return {"upvotes": ups, "wrong upvotes": wrong_ups, "downvotes": downs}


def score(memory: evokey.Memory, questions: Questions) -> float:
    from evokey.evolution.ndcg import ndcg

    values = []
    for text, right in questions.items():
        number = {id: place for place, id in enumerate(right)}
        ranking = [number.get(hit.id, len(number) + place) for place, hit in enumerate(memory.search(text, 10))]
        values.append(float(ndcg(ranking, {number[id]: float(grade) for id, grade in right.items()})))
    return fmean(values)


def threshold(data: Dataset) -> dict[str, list[dict[str, float]]]:
    """Of what answers without citations credit, how much is right; and of the answers, how many credit a right
    document: by the passages that were found, as the service does, and by whole documents, as frameworks do."""
    asked = [id for id in data.judged if data.answers.get(id)][:ANSWERS]
    counts = {(part, one): [0, 0, 0] for part in PARTS for one in THRESHOLDS}
    with tempfile.TemporaryDirectory() as folder, evokey.open(Path(folder) / "kb") as memory:
        memory.add(data.documents)
        for id in asked:
            right = {doc for doc, grade in data.judged[id].items() if grade > 0}
            hits = memory.search(data.queries[id], SHOWN)
            for (part, one), found in counts.items():
                texts = {hit.id: hit.passage.text if part == "passages" else hit.document.text for hit in hits}
                credited = set(find_origins(data.answers[id][0], texts, one))
                own = credited & right
                found[:] = [found[0] + len(credited), found[1] + len(own), found[2] + bool(own)]
    return {part: [_row(one, len(asked), counts[part, one]) for one in THRESHOLDS] for part in PARTS}


def _row(threshold: float, answers: int, counts: Sequence[int]) -> dict[str, float]:
    credited, right, own = counts
    share = round(right / credited, 4) if credited else 1.0
    return {
        "threshold": threshold, "answers": answers, "credited": credited, "right": share,
        "credits its own": round(own / answers, 4),
    }  # fmt: skip


if __name__ == "__main__":
    main()
