"""What a loaded set really has, in numbers; and beside it what the paper says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from evokey.bench.data.dataset import Dataset
from evokey.bench.data.presets import Preset


@dataclass(frozen=True, slots=True)
class Statistics:
    name: str
    split: str
    queries: int
    """Queries of the split that can be scored."""
    documents: int
    right_per_query: float
    """Mean number of documents with a grade above 0."""
    judged_per_query: float
    shared: float
    """Share of the queries with a right document that is right for another query too: what one can teach another."""
    query_length: float
    document_length: float
    """Mean, of title and text."""
    unit: str
    """What lengths count."""
    answered: int
    """Queries of the split with a gold answer."""
    generation_truth: bool
    """Every query of the split has a gold answer."""
    splits: Mapping[str, int]
    """Judged queries of each split."""
    problems: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Beside:
    """One figure of the paper, and what was found."""

    what: str
    paper: float | bool | None
    found: float | bool

    @property
    def agrees(self) -> bool | None:
        """Equal as far as the paper prints it; None where the paper says nothing."""
        return None if self.paper is None else round(self.found, 1) == self.paper


def words(text: str) -> int:
    return len(text.split())


def statistics(dataset: Dataset, length: Callable[[str], int] = words, unit: str = "words") -> Statistics:
    """Pass a tokenizer's count as `length`, with its `unit`, to compare lengths with a table that counts tokens."""
    right = {query: [id for id, grade in grades.items() if grade > 0] for query, grades in dataset.judged.items()}
    times = Counter(id for ids in right.values() for id in ids)
    answered = sum(query in dataset.answers for query in dataset.judged)
    return Statistics(
        name=dataset.name,
        split=dataset.split,
        queries=len(dataset.judged),
        documents=len(dataset.documents),
        right_per_query=_mean(len(ids) for ids in right.values()),
        judged_per_query=_mean(len(grades) for grades in dataset.judged.values()),
        shared=_mean(any(times[id] > 1 for id in ids) for ids in right.values()),
        query_length=_mean(length(dataset.queries[query]) for query in dataset.judged),
        document_length=_mean(length(f"{document.title} {document.text}".strip()) for document in dataset.documents),
        unit=unit,
        answered=answered,
        generation_truth=answered == len(dataset.judged) > 0,
        splits={name: len(judged) for name, judged in dataset.splits.items()},
        problems=len(dataset.problems),
    )


def beside(preset: Preset, found: Statistics) -> list[Beside]:
    """The paper's row and the loaded set, figure by figure; lengths only when both count the same thing."""
    names = ["queries", "documents", "right_per_query"]
    names += ["query_length", "document_length"] if found.unit == "GPT-2 tokens" else []
    return [Beside(name, getattr(preset.paper, name), getattr(found, name)) for name in [*names, "generation_truth"]]


def _mean(numbers: Iterable[float]) -> float:
    listed = list(numbers)
    return sum(listed) / len(listed) if listed else 0.0
