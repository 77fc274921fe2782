"""What seeding would cost, what it did, and why questions were dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from evokey.types import Spent

NOTHING = Spent()


class Drop(StrEnum):
    """Why a line of a reply became no lesson."""

    NO_QUESTION = "not a question"
    LENGTH = "too short or too long"
    UNCLEAR = "speaks of the passage itself"
    COPY = "copies the passage"
    ECHO = "repeats the instructions"
    LANGUAGE = "another language than the passage"
    DUPLICATE = "asked already for this document"
    SURPLUS = "more than were asked for"
    NOT_FOUND = "its document is not among the first hits"
    NOT_VERIFIED = "not verified by the judge"


@dataclass(frozen=True, slots=True)
class SeedEstimate:
    """What seeding is going to cost, told before it begins."""

    model: str
    passages: int
    restricted: int
    """Of these passages, those of restricted documents: their text is sent to the model, too."""
    calls: int
    """Calls of the model, at most."""
    prompt_tokens: int
    answer_tokens: int
    money: float | None
    """In US dollars; None where the model has no price."""


@dataclass(frozen=True, slots=True)
class SeedReport:
    estimate: SeedEstimate
    dry_run: bool = False
    asked: int = 0
    """Passages for which the model answered; the next run leaves them out."""
    failed: int = 0
    """Passages for which it did not; the next run asks again."""
    kept: int = 0
    """Questions that became lessons of the actor 'synthetic'."""
    found_first: int = 0
    """Of these, those whose document the untaught index finds first."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Lines of the replies that became no lesson, by reason."""
    spent: Spent = NOTHING
    stopped: str | None = None
    """Why it ended early; None: it did not."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
