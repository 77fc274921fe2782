"""What tools answer: short, because an agent reads every word of it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from evokey.types import Answer, EpochReport, Explanation, Hit, Quality

LONGEST = 2_000
"""Characters of a passage that a search shows; the resource has the rest."""
SCHEME = "evokey://document/"


def uri_of(id: str) -> str:
    return f"{SCHEME}{quote(id, safe='')}"


@dataclass(frozen=True)
class Found:
    id: str
    """What to cite, and to name in `used` and `teach`."""
    title: str
    where: str
    """Headings or page of the passage in its document."""
    text: str
    uri: str
    """The whole document, as a resource."""
    score: float

    @classmethod
    def of(cls, hit: Hit) -> Found:
        passage = hit.passage
        id = f"{hit.id}#{passage.anchor}" if passage.anchor else hit.id
        return cls(id, hit.document.title, passage.where, cut(passage.text), uri_of(hit.id), round(hit.score, 4))


@dataclass(frozen=True)
class Results:
    query_id: str
    """Names this search in `used`."""
    hits: list[Found]


@dataclass(frozen=True)
class Answered:
    query_id: str
    text: str
    """Empty where the documents do not answer."""
    cited: list[str]
    hits: list[Found]

    @classmethod
    def of(cls, answer: Answer, query_id: str) -> Answered:
        return cls(query_id, answer.text, list(answer.citations), [Found.of(hit) for hit in answer.hits])


@dataclass(frozen=True)
class Recorded:
    lesson: int | None
    """Number of the lesson; null: nothing was named, so nothing is learned."""
    pending: int
    """Lessons that the next evolve learns from."""


@dataclass(frozen=True)
class Explained:
    document: str
    lessons: int
    queries: list[str]
    """Questions it was taught for; none for a key with a filter."""
    rank_before: int | None
    rank_after: int | None
    passage: str

    @classmethod
    def of(cls, found: Explanation) -> Explained:
        queries = list(dict.fromkeys(one.query for one in found.lessons))
        text = "" if found.passage is None else cut(found.passage.text)
        return cls(found.document, found.lesson_count, queries[-20:], found.rank_before, found.rank_after, text)


@dataclass(frozen=True)
class Counts:
    documents: int
    lessons: int
    pending: int
    epoch: int
    documents_touched: int


@dataclass(frozen=True)
class Evolved:
    published: bool
    reason: str
    epoch: int
    lessons: int
    documents: int
    """Documents that have learned."""
    taught: list[float] | None
    """nDCG@10 of the taught questions before and after."""
    held_out: list[float] | None
    """The same of questions that were held out."""

    @classmethod
    def of(cls, report: EpochReport) -> Evolved:
        taught, held_out = _pair(report.taught), _pair(report.held_out)
        return cls(
            report.published, report.reason, report.epoch, report.lessons, report.documents, taught, held_out
        )  # fmt: skip


def _pair(quality: Quality | None) -> list[float] | None:
    return None if quality is None else [round(quality.before, 4), round(quality.after, 4)]


@dataclass(frozen=True)
class Erased:
    lessons: int
    preview: bool
    """Whether nothing was erased: this is what would be."""
    epoch: int


def cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
