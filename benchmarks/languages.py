"""What the default retrievers find in other languages: the same twelve questions and answers, written in each of them.

    python benchmarks/languages.py [--out FILE]

Each language has a memory of its own with its twelve answers (benchmarks/data/languages.tsv: language, question,
answer). Counted is how many of the twelve questions find their answer first: by BM25 with the analyser of before (1)
and of now, by WordLlama, and by both fused as in a new memory. "together": the fused one again, with the answers of all
languages in one memory. "decomposed": WordLlama with the questions in NFD. "in English": WordLlama with the questions
in English. Trust is the part of its weight that BM25 keeps in the fusion, on the mean. Twelve is few: one more or less
is chance.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import unicodedata
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

import evokey
from evokey.encoders.bm25 import BM25
from evokey.keys.full import Full
from evokey.protocols import Space
from evokey.scoring.block import Keys
from evokey.scoring.sparse import SparseBlock
from evokey.search.retriever import SparseRetriever
from evokey.stores.sparse import SparseStore

HERE = Path(__file__).parent
PAIRS = HERE / "data" / "languages.tsv"
RESULTS = HERE / "results" / "languages.json"
NAMES = {
    "en": "English", "de": "German", "es": "Spanish", "tr": "Turkish", "ru": "Russian", "el": "Greek", "ar": "Arabic",
    "he": "Hebrew", "hi": "Hindi", "th": "Thai", "zh": "Chinese", "ja": "Japanese", "ko": "Korean",
}  # fmt: skip
SYSTEMS: dict[str, Any] = {
    "bm25, analyser 1": {"name": "bm25", "analyser": 1},
    "bm25": "bm25",
    "wordllama": "wordllama",
    "hybrid": ["bm25", "wordllama"],
}
Pair = tuple[str, str]


def pairs() -> dict[str, list[Pair]]:
    found: dict[str, list[Pair]] = {}
    for line in PAIRS.read_text("utf-8").splitlines():
        language, question, answer = line.split("\t")
        found.setdefault(language, []).append((question, answer))
    return found


def first_hits(encoder: Any, questions: list[str], answers: list[str]) -> int:
    """How many questions find their answer, which stands at the same place, first."""
    with tempfile.TemporaryDirectory() as folder, evokey.open(folder, encoder=encoder) as memory:
        memory.add([evokey.Document(str(at), answer) for at, answer in enumerate(answers)])
        found = [memory.search(question, k=1) for question in questions]
    return sum(bool(hits) and hits[0].id == str(at) for at, hits in enumerate(found))


def trust(questions: list[str], answers: list[str]) -> float:
    encoder = BM25()
    store = SparseStore(Space(None, encoder))
    numbers = np.arange(len(answers))
    store.write(Keys(numbers, numbers, SparseBlock.of(encoder.documents(answers))))
    retriever = SparseRetriever("bm25", encoder, Full(), None, store)
    return fmean(retriever.weigh(bag, {}).trust for bag in encoder.queries(questions))


def measure(language: str, known: dict[str, list[Pair]]) -> dict[str, Any]:
    questions, answers = map(list, zip(*known[language], strict=True))
    others = [answer for other in known if other != language for _, answer in known[other]]
    decomposed = [unicodedata.normalize("NFD", question) for question in questions]
    found = {name: first_hits(encoder, questions, answers) for name, encoder in SYSTEMS.items()}
    found["together"] = first_hits(SYSTEMS["hybrid"], questions, answers + others)
    found["decomposed"] = first_hits("wordllama", decomposed, answers)
    found["in English"] = first_hits("wordllama", [question for question, _ in known["en"]], answers)
    return {
        "language": NAMES[language], "questions": len(questions), "first": found,
        "trust": round(trust(questions, answers), 2),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    known = pairs()
    rows = [measure(language, known) for language in NAMES]
    given.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
