"""The 13 sets of the paper by name, and what the paper says of each; further names that the hub has.

The figures are the paper's table of data set statistics ("RAG without Forgetting", tab:dataset_stats; lengths in
GPT-2 tokens). They are kept as printed. Beside them stands what the published collection has, a note says what else is
odd, and `statistics.beside` puts what was really loaded next to them.
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
class Published:
    """What the collection has by its own account: BRIGHT's card on the hub, BEIR's table of data sets."""

    queries: int
    documents: int


@dataclass(frozen=True, slots=True)
class Preset:
    name: str
    title: str
    """As the paper spells it."""
    benchmark: str
    """BRIGHT or BEIR"""
    paper: Reported
    published: Published
    note: str = ""
    """Where the paper's row and the published set part ways."""


def _bright(name: str, title: str, *row: float, published: tuple[int, int], note: str = "") -> Preset:
    queries, documents, right, query_length, document_length = row
    reported = Reported(int(queries), int(documents), right, query_length, document_length, True)
    return Preset(name, title, "BRIGHT", reported, Published(*published), note)


def _beir(name: str, title: str, queries: int, documents: int, right: float, published: int, note: str) -> Preset:
    reported = Reported(queries, documents, right, None, None, False)
    return Preset(name, title, "BEIR", reported, Published(queries, published), note)


_NO_ANSWERS = "Copies of BRIGHT seen so far have no gold answers for it, though the paper ticks generation truth."
_PRESETS = (
    _bright("biology", "Biology", 103, 57_364, 3.6, 83.6, 115.2, published=(103, 57_359)),
    _bright("earth_science", "Earth Science", 118, 122_388, 7.7, 132.4, 113.3, published=(116, 121_249)),
    _bright("economics", "Economics", 103, 50_221, 8.0, 120.2, 181.5, published=(103, 50_220)),
    _bright("psychology", "Psychology", 101, 52_841, 7.3, 118.2, 149.6, published=(101, 52_835)),
    _bright("robotics", "Robotics", 101, 62_198, 5.5, 120.6, 818.9, published=(101, 61_961)),
    _bright("stackoverflow", "StackOverflow", 117, 101_100, 7.0, 704.5, 478.3, published=(117, 107_081)),
    _bright("sustainable_living", "Sust. Living", 108, 60_732, 5.6, 108.0, 148.5, published=(108, 60_792)),
    _bright("leetcode", "LeetCode", 142, 413_932, 1.8, 483.1, 497.5, published=(142, 413_932), note=_NO_ANSWERS),
    _bright("pony", "Pony", 112, 7_894, 22.5, 98.3, 102.6, published=(112, 7_894), note=_NO_ANSWERS),
    _bright("aops", "AoPS", 111, 188_177, 4.7, 89.0, 250.5, published=(111, 188_002)),
    _bright(
        "theoremqa_theorems", "TheoremQA-T", 206, 188_177, 3.2, 117.1, 250.5, published=(76, 23_839),
        note="The paper's row fits theoremqa_questions (the corpus of AoPS), not theoremqa_theorems.",
    ),
    _beir(
        "nfcorpus", "NFCorpus", 323, 3_129, 38.2, 3_633,
        "3,128 of BEIR's documents are judged for some test query: the paper's corpus is about that.",
    ),
    _beir(
        "scidocs", "SciDocs", 1_000, 4_021, 4.9, 25_657,
        "Less than a sixth of the published corpus; right documents per query count grades above 0.",
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
