"""The 13 sets of the paper by name, and what the paper says of each; further names that the hub has.

The figures are the paper's table of data set statistics ("RAG without Forgetting", tab:dataset_stats; lengths in
GPT-2 tokens). They are kept as printed. Where the published files say otherwise the note says so, and
`statistics.beside` puts what was really loaded next to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

SOURCE = "RAG without Forgetting: Continual Query-Infused Key Memory, table of dataset statistics"


@dataclass(frozen=True, slots=True)
class Reported:
    """One row of the paper's table."""

    queries: int
    documents: int
    right_per_query: float
    query_length: float | None
    document_length: float | None
    generation_truth: bool


@dataclass(frozen=True, slots=True)
class Preset:
    name: str
    title: str
    """As the paper spells it."""
    benchmark: str
    """BRIGHT or BEIR"""
    paper: Reported
    note: str = ""
    """Where the paper's row and the published set part ways."""


def _bright(name: str, title: str, *row: float, note: str = "") -> Preset:
    queries, documents, right, query_length, document_length = row
    reported = Reported(int(queries), int(documents), right, query_length, document_length, True)
    return Preset(name, title, "BRIGHT", reported, note)


def _beir(name: str, title: str, queries: int, documents: int, right: float, note: str) -> Preset:
    return Preset(name, title, "BEIR", Reported(queries, documents, right, None, None, False), note)


_NO_ANSWERS = "Copies of BRIGHT seen so far have no gold answers for it, though the paper ticks generation truth."
_CARD = "BRIGHT's dataset card (June 2024) counts {} documents."
_PRESETS = (
    _bright("biology", "Biology", 103, 57_364, 3.6, 83.6, 115.2, note=_CARD.format("57,359")),
    _bright("earth_science", "Earth Science", 118, 122_388, 7.7, 132.4, 113.3, note=_CARD.format("121,249")),
    _bright("economics", "Economics", 103, 50_221, 8.0, 120.2, 181.5, note=_CARD.format("50,220")),
    _bright("psychology", "Psychology", 101, 52_841, 7.3, 118.2, 149.6, note=_CARD.format("52,835")),
    _bright("robotics", "Robotics", 101, 62_198, 5.5, 120.6, 818.9, note=_CARD.format("61,961")),
    _bright("stackoverflow", "StackOverflow", 117, 101_100, 7.0, 704.5, 478.3, note=_CARD.format("107,081")),
    _bright("sustainable_living", "Sust. Living", 108, 60_732, 5.6, 108.0, 148.5, note=_CARD.format("60,792")),
    _bright("leetcode", "LeetCode", 142, 413_932, 1.8, 483.1, 497.5, note=_NO_ANSWERS),
    _bright("pony", "Pony", 112, 7_894, 22.5, 98.3, 102.6, note=_NO_ANSWERS),
    _bright("aops", "AoPS", 111, 188_177, 4.7, 89.0, 250.5, note=_CARD.format("188,002")),
    _bright(
        "theoremqa_theorems", "TheoremQA-T", 206, 188_177, 3.2, 117.1, 250.5,
        note="The paper's row fits theoremqa_questions (206 queries, the corpus of AoPS); "
        "theoremqa_theorems has 76 queries and 23,839 documents.",
    ),
    _beir(
        "nfcorpus", "NFCorpus", 323, 3_129, 38.2,
        "BEIR's NFCorpus has 3,633 documents, of which 3,128 are judged for some test query.",
    ),
    _beir(
        "scidocs", "SciDocs", 1_000, 4_021, 4.9,
        "BEIR's SciDocs has 25,657 documents; right documents per query count grades above 0.",
    ),
)  # fmt: skip
_BY_NAME = MappingProxyType({preset.name: preset for preset in _PRESETS})

BRIGHT = frozenset({preset.name for preset in _PRESETS if preset.benchmark == "BRIGHT"} | {"theoremqa_questions"})
"""Sets that the hub's xlangai/BRIGHT holds."""
BEIR = frozenset(
    "arguana climate-fever dbpedia-entity fever fiqa hotpotqa msmarco nfcorpus nq quora scidocs scifact trec-covid "
    "webis-touche2020".split()
)
"""Sets that the hub holds as BeIR/<name>."""


def presets() -> Mapping[str, Preset]:
    return _BY_NAME


def preset_of(name: str) -> Preset | None:
    """The preset that a set of this name is a copy of: biology and bright_biology are one."""
    return _BY_NAME.get(name.removeprefix("bright_"))
