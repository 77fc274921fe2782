"""A memory in which training helps: people ask in words that the documents never use."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import evokey

SPOKEN = (
    "river stone candle winter garden mirror pencil basket feather thunder island pepper wagon hammer blanket ladder "
    "bottle orchard lantern copper velvet anchor meadow whistle barrel cotton harbor pillow saddle ribbon"
).split()
WRITTEN = (
    "voltage enzyme treaty algebra sonnet glacier merger protein orbit verdict tariff neuron gospel ballet dividend "
    "isotope senate cipher fossil tenor mortgage plasma syntax embargo quartz lyric census reactor statute photon"
).split()
DOCUMENTS, QUESTIONS = 310, 255


def deal(count: int, seed: int) -> list[tuple[int, ...]]:
    """Different sets of three words, by their places."""
    chance, found = np.random.default_rng(seed), dict[tuple[int, ...], None]()
    while len(found) < count:
        found[tuple(sorted(chance.choice(len(SPOKEN), 3, replace=False).tolist()))] = None
    return list(found)


DEALT = deal(DOCUMENTS, 7)
TEXTS = {f"d{at}": " ".join(WRITTEN[word] for word in words) for at, words in enumerate(DEALT)}
ASKED = {" ".join(SPOKEN[word] for word in words): f"d{at}" for at, words in enumerate(DEALT[:QUESTIONS])}
UNASKED = {" ".join(SPOKEN[word] for word in words): f"d{QUESTIONS + at}" for at, words in enumerate(DEALT[QUESTIONS:])}
"""Questions that nobody teaches."""


def teach(memory: evokey.Memory, **lesson: object) -> None:
    memory.feedback_many([{"query": query, "relevant": [id], **lesson} for query, id in ASKED.items()])


def make_memory(folder: Path, **settings: object) -> evokey.Memory:
    memory = evokey.open(folder, **{"encoder": "wordllama", **settings})
    memory.add([{"id": id, "text": text} for id, text in TEXTS.items()])
    return memory


def count_found(memory: evokey.Memory, epoch: int | None = None) -> int:
    """Of the questions that nobody taught, how many find their document among the first ten."""
    return sum(id in {hit.id for hit in memory.search(query, 10, epoch=epoch)} for query, id in UNASKED.items())


def rank_all(memory: evokey.Memory, epoch: int | None = None) -> list[list[tuple[str, float]]]:
    """What some questions find, with scores."""
    some = [*list(ASKED)[:15], *list(UNASKED)[:15]]
    return [[(hit.id, hit.score) for hit in memory.search(query, 10, epoch=epoch)] for query in some]
