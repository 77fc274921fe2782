"""What learning outlives edits: where "still there" begins, and what taught questions keep. Makes results/edits.json.

    python benchmarks/edits.py [DATA_DIR] [--sets NAME …]

Shares: of so many documents of each set, how much of the text is found again, by its signature, after small edits of
seven kinds, and in the most similar other document of the set (BM25's second hit for the text itself). "carried" is the
part that is at least THERE (evokey/ledger/signature.py).

Lessons: a memory is taught all judged queries and evolves. Then 30 % of its documents get a small edit, or are replaced
by the text of another document. nDCG@10 of the taught questions, without another evolve: before, after the edits, after
the same edits with no lesson carried over, and untaught. Verdicts carried over after the replacement must be none.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

import evokey
from evokey.bench import data
from evokey.evolution.ndcg import ndcg
from evokey.ledger import signature
from evokey.ledger.signature import THERE, Signature

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "edits.json"
SETS = ("scifact", "nfcorpus", "cranfield", "pubmedqa_l", "locomo10", "climate_fever_evidence")
DOCUMENTS, QUERIES, EDITED = 500, 300, 0.3


def change_word(words: list[str], chance: random.Random) -> list[str]:
    at = chance.randrange(len(words))
    return [*words[:at], "changed", *words[at + 1 :]]


def misspell(words: list[str], chance: random.Random) -> list[str]:
    at = chance.randrange(len(words))
    return [*words[:at], words[at] + "e", *words[at + 1 :]]


def add_comma(words: list[str], chance: random.Random) -> list[str]:
    at = chance.randrange(len(words))
    return [*words[:at], words[at] + ",", *words[at + 1 :]]


def add_sentence(words: list[str], chance: random.Random) -> list[str]:
    at = chance.randrange(len(words) + 1)
    return [*words[:at], *"This was checked again in the last review of all pages.".split(), *words[at:]]


def remove_words(words: list[str], chance: random.Random) -> list[str]:
    """A tenth of the text, in a row."""
    count = max(1, len(words) // 10)
    at = chance.randrange(max(1, len(words) - count))
    return [*words[:at], *words[at + count :]]


def append_paragraph(words: list[str], chance: random.Random) -> list[str]:
    return [*words, *("New in this version: " + "some more is said about it. " * 8).split()]


def change_twentieth(words: list[str], chance: random.Random) -> list[str]:
    """Every twentieth word, wherever it stands."""
    places = set(chance.sample(range(len(words)), max(1, len(words) // 20)))
    return ["changed" if at in places else word for at, word in enumerate(words)]


Edit = Callable[[list[str], random.Random], list[str]]
EDITS: tuple[Edit, ...] = (
    change_word, misspell, add_comma, add_sentence, remove_words, append_paragraph, change_twentieth
)  # fmt: skip


def edit(document: evokey.Document, how: Edit, chance: random.Random) -> evokey.Document:
    words = document.text.split()
    return replace(document, text=" ".join(how(words, chance))) if words else document


def shares(documents: Sequence[evokey.Document], chance: random.Random) -> dict[str, Any]:
    sample = chance.sample(list(documents), min(DOCUMENTS, len(documents)))
    sample = [one for one in sample if one.text.split()]
    found = {how.__name__: [_share(one, edit(one, how, chance)) for one in sample] for how in EDITS}
    with tempfile.TemporaryDirectory() as folder, evokey.open(folder, encoder="bm25") as memory:
        memory.add(documents)
        other = [_nearest(memory, one) for one in sample]
    found["most_similar_other"] = [_share(one, near) for one, near in zip(sample, other, strict=True) if near]
    return {name: _describe(values) for name, values in found.items()}


def _share(old: evokey.Document, new: evokey.Document) -> float:
    old_text, new_text = f"{old.title}\n{old.text}", f"{new.title}\n{new.text}"
    return Signature.of(old_text).share_in(new_text)


def _nearest(memory: evokey.Memory, document: evokey.Document) -> evokey.Document | None:
    hits = memory.search(f"{document.title} {document.text}"[:5_000], k=5)
    return next((hit.document for hit in hits if hit.document.text != document.text), None)


def _describe(values: Sequence[float]) -> dict[str, float]:
    lowest, first, median, last, highest = np.quantile(values, [0, 0.01, 0.5, 0.99, 1]).round(3).tolist()
    part = fmean(value >= THERE for value in values)
    return {
        "lowest": lowest, "first_percentile": first, "median": median, "last_percentile": last, "highest": highest,
        "carried": round(part, 4),
    }  # fmt: skip


def quality(memory: evokey.Memory, judged: Mapping[str, Mapping[str, float]]) -> float:
    found = []
    for query, right in judged.items():
        numbers = memory.ledger.documents.numbers([*right, *(ids := [hit.id for hit in memory.search(query, k=10)])])
        found.append(ndcg([numbers[id] for id in ids], {numbers[id]: grade for id, grade in right.items()}))
    return fmean(found)


def lessons(documents: Sequence[evokey.Document], judged: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    chance = random.Random(1)
    edited = chance.sample(list(documents), round(EDITED * len(documents)))
    small = [edit(one, EDITS[at % len(EDITS)], chance) for at, one in enumerate(edited)]
    names = {one.id for one in edited}
    other = chance.sample([one for one in documents if one.id not in names], len(edited))
    replaced = [replace(one, text=new.text, title=new.title) for one, new in zip(edited, other, strict=True)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with evokey.open(folder / "taught") as memory:
            memory.add(documents)
            found: dict[str, Any] = {"untaught": quality(memory, judged)}
            memory.feedback_many([{"query": query, "relevant": dict(grades)} for query, grades in judged.items()])
            found["published"] = memory.evolve().published
            found["taught"] = quality(memory, judged)
            for name in ("edited", "edited_nothing_carried", "replaced"):
                memory.backup(folder / name)
        for name, changed, there in (
            ("edited", small, THERE), ("edited_nothing_carried", small, 2.0), ("replaced", replaced, THERE)
        ):  # fmt: skip
            signature.THERE = there
            with evokey.open(folder / name) as memory:
                memory.add(changed)
                stats = memory.stats()
                found[name] = quality(memory, judged)
                found[f"{name}_verdicts"] = {"carried_over": stats.carried_over, "set_aside": stats.set_aside}
        signature.THERE = THERE
    gain = found["taught"] - found["untaught"]
    found["quality_kept"] = found["edited"] / found["taught"]
    found["gain_kept"] = (found["edited"] - found["untaught"]) / gain if gain else None
    return {name: round(one, 4) if isinstance(one, float) else one for name, one in found.items()}


def measure(folder: Path) -> dict[str, Any]:
    loaded = data.load(folder)
    chance = random.Random(0)
    judged: dict[str, Mapping[str, float]] = {}
    for query in sorted(loaded.judged)[:QUERIES]:
        right = {id: float(grade) for id, grade in loaded.judged[query].items() if grade > 0}
        if right:
            judged[loaded.queries[query]] = right
    return {
        "documents": len(loaded.documents), "questions": len(judged),
        "shares": shares(loaded.documents, chance), "lessons": lessons(loaded.documents, judged),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--sets", nargs="*", default=SETS)
    given = parser.parse_args()
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"there": THERE, "sets": {}}
    for name in given.sets:
        if name not in found["sets"]:
            found["sets"][name] = measure(given.data / name)
            RESULTS.write_text(json.dumps(found, indent=1) + "\n")
            print(name, json.dumps(found["sets"][name]["lessons"]))


if __name__ == "__main__":
    main()
