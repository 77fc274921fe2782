"""evokey: an evolving retrieval memory. An index whose document keys learn from verified answers."""

from evokey.errors import EvokeyError
from evokey.memory import Memory, open
from evokey.types import (
    Choice,
    Document,
    EpochReport,
    Explanation,
    Forgotten,
    Hit,
    Lesson,
    Quality,
    Section,
    Stats,
    Verdict,
)

__version__ = "0.1.0"
__all__ = [
    "Choice",
    "Document",
    "EpochReport",
    "EvokeyError",
    "Explanation",
    "Forgotten",
    "Hit",
    "Lesson",
    "Memory",
    "Quality",
    "Section",
    "Stats",
    "Verdict",
    "open",
]
