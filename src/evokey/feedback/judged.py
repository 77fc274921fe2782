"""What an export says of documents, and what of it was left out, by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

GONE = "the document is not in this memory"


@dataclass(frozen=True, slots=True)
class Judgement:
    """One document for one question: above 0 right, below 0 wrong."""

    query: str
    document: str
    grade: float
    actor: str | None = None


@dataclass
class Judged:
    found: list[Judgement] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def only(self, known: Collection[str]) -> Judged:
        """Without documents that a memory does not have."""
        kept = [one for one in self.found if one.document in known]
        missing = len(self.found) - len(kept)
        return Judged(kept, self.left_out + Counter({GONE: missing} if missing else {}))


def lessons(found: Iterable[Judgement], actor: str | None) -> list[dict[str, Any]]:
    """One lesson for each question and actor; of two judgements on one document the later counts."""
    grades: dict[tuple[str, str | None], dict[str, float]] = {}
    for one in found:
        grades.setdefault((one.query, one.actor or actor), {})[one.document] = one.grade
    return [_lesson(query, who, said) for (query, who), said in grades.items()]


def _lesson(query: str, actor: str | None, grades: Mapping[str, float]) -> dict[str, Any]:
    right = {id: grade for id, grade in grades.items() if grade > 0}
    wrong = [id for id, grade in grades.items() if grade < 0]
    return {"query": query, "relevant": right, "irrelevant": wrong, "actor": actor}
