"""What a memory finds and chooses, to the last bit: untaught, taught, and after a part was forgotten.

python tests/equality/record.py            what the small set of the tests gives (recorded.json) is recorded anew
python tests/equality/record.py SET…       prints the same of data sets, for compare.py
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import evokey
from evokey import Choice

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.json"
RETRIEVERS: dict[str, dict[str, Any]] = {
    "bm25": {"encoder": "bm25"},
    "wordllama": {"encoder": "wordllama"},
    "hybrid": {},
    "bm25 chunks": {"encoder": "bm25", "keys": "chunks"},
}
DOCUMENTS, TAUGHT, ASKED = 1_500, 120, 24

Lesson = tuple[str, dict[str, float]]


def load(folder: Path) -> tuple[list[dict[str, Any]], list[Lesson]]:
    """Some documents of a set in BEIR layout, and the questions about them, always in the same order."""
    lines = (folder / "qrels" / "test.tsv").read_text("utf-8").splitlines()[1:]
    relevant: dict[str, dict[str, float]] = {}
    for line in lines:
        query, document, grade = line.split("\t")
        if float(grade) > 0:
            relevant.setdefault(query, {})[document] = float(grade)
    texts = {one["_id"]: one["text"] for one in _rows(folder / "queries.jsonl")}
    chosen = sorted(query for query in relevant if query in texts)[: 3 * TAUGHT // 2]
    wanted = {document for query in chosen for document in relevant[query]}
    rows = sorted(_rows(folder / "corpus.jsonl"), key=lambda one: (one["_id"] not in wanted, one["_id"]))[:DOCUMENTS]
    documents = [{"id": one["_id"], "text": one["text"], "title": one.get("title", "")} for one in rows]
    known = {one["id"] for one in documents}
    lessons = [(texts[query], {id: grade for id, grade in relevant[query].items() if id in known}) for query in chosen]
    return documents, [(query, right) for query, right in lessons if right]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def small() -> tuple[list[dict[str, Any]], list[Lesson]]:
    """A set that needs no file: pages of a handbook that people ask about in other words."""
    chance = np.random.default_rng(7)
    subjects = "engine kettle ladder orchard compass saddle harbour mirror lantern anchor violin basket".split()
    verbs = {"repair": "mend", "paint": "colour", "borrow": "lend", "clean": "wash", "measure": "gauge"}
    documents, lessons = [], list[Lesson]()
    for subject in subjects:
        for verb, other in verbs.items():
            id = f"{verb}-{subject}"
            days = int(chance.integers(2, 30))
            documents.append({"id": id, "title": f"On the {subject}", "text": f"How to {verb} it in {days} days."})
            asked = [f"who can {other} my {subject}", f"{subject} {other}", f"{other} an old {subject} by hand"]
            lessons += [(query, {id: grade}) for query, grade in zip(asked, (1.0, 2.0, 1.0), strict=True)]
    return documents, [lessons[at] for at in chance.permutation(len(lessons))]


def record(documents: list[dict[str, Any]], lessons: list[Lesson], settings: dict[str, Any]) -> dict[str, Any]:
    half = 2 * len(lessons) // 3
    with tempfile.TemporaryDirectory() as folder, evokey.open(f"{folder}/kb", now=lambda: 0.0, **settings) as memory:
        memory.add(documents)
        asked = [query for query, _ in (*lessons[half:][:ASKED], *lessons[:10])]
        found = {"untaught": _search(memory, asked)}
        taught = [{"query": q, "relevant": r, "actor": f"person{n % 3}"} for n, (q, r) in enumerate(lessons[:half])]
        memory.feedback_many(taught)
        report = memory.evolve()
        found |= {"report": _report(report), "taught": _search(memory, asked)}
        memory.forget(actor="person1")
        return found | {"forgotten": _search(memory, asked)}


def _search(memory: evokey.Memory, queries: list[str]) -> list[list[Any]]:
    return [[[hit.id, hit.score] for hit in memory.search(query)] for query in queries]


def _report(report: evokey.EpochReport) -> dict[str, Any]:
    """What is chosen, and what comes of it."""
    told = report.to_dict()
    usual = asdict(Choice())  # what is as usual is left out, so that a new option changes nothing
    choice = {name: {k: v for k, v in one.items() if v != usual[k]} for name, one in told["choice"].items()}
    return {key: told.get(key) for key in ("published", "weights", "held_out", "taught", "documents")} | {
        "choice": choice
    }


def main(arguments: list[str]) -> None:
    logging.getLogger("evokey").setLevel(logging.ERROR)
    sets = {Path(one).name: load(Path(one)) for one in arguments} or {"small": small()}
    found = {
        f"{name} {retriever}": record(*content, settings)
        for name, content in sets.items()
        for retriever, settings in RETRIEVERS.items()
    }
    if arguments:
        json.dump(found, sys.stdout)
    else:
        RECORDED.write_text(
            json.dumps(json.loads(json.dumps(found), parse_float=lambda one: round(float(one), 9))) + "\n"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
