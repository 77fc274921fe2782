"""evokey: an evolving retrieval memory. An index whose document keys learn from verified answers."""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from evokey.layer.layer import Layer
    from evokey.layer.opening import beside

__version__ = "0.1.0"
__all__ = [
    "Choice",
    "Document",
    "EpochReport",
    "EvokeyError",
    "Explanation",
    "Forgotten",
    "Hit",
    "Layer",
    "Lesson",
    "Memory",
    "Quality",
    "Section",
    "Stats",
    "Verdict",
    "beside",
    "open",
]


def __getattr__(name: str) -> Any:
    """Imported when first asked for: who opens a memory does not pay for it."""
    if name not in ("Layer", "beside"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from evokey.layer import opening

    return getattr(opening, name)
