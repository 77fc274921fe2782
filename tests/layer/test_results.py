"""What a search function may return, and what is said where it returns something else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import evokey
from evokey.errors import InvalidResults
from evokey.layer.results import read_results


@dataclass
class Found:
    id: str
    score: float
    text: str = ""


SHAPES: dict[str, Any] = {
    "pairs": [("a", 2.0), ("b", 1.0)],
    "lists": [["a", 2.0], ["b", 1.0]],
    "triples": [("a", 2.0, "an apple"), ("b", 1.0, "a bean")],
    "mappings": [{"id": "a", "score": 2.0, "text": "an apple"}, {"id": "b", "score": 1.0}],
    "objects": [Found("a", 2.0), Found("b", 1.0)],
    "hits": [evokey.Hit(id, score, evokey.Document(id, "text")) for id, score in (("a", 2.0), ("b", 1.0))],
    "a mapping of scores": {"b": 1.0, "a": 2.0},
    "a generator": (pair for pair in [("a", 2.0), ("b", 1.0)]),
    "numpy's numbers": [("a", np.float32(2.0)), ("b", np.float64(1.0))],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_usual_shapes_are_taken(shape: str) -> None:
    assert [(hit.id, hit.score) for hit in read_results(SHAPES[shape], 10)] == [("a", 2.0), ("b", 1.0)]


def test_texts_titles_and_metadata_come_back_with_the_hits() -> None:
    given = {"id": "a", "score": 1, "text": "an apple", "title": "Fruit", "metadata": {"lang": "en"}}
    assert read_results([given], 1)[0].document == evokey.Document("a", "an apple", "Fruit", {"lang": "en"})


def test_ids_without_scores_are_ranked_as_they_come() -> None:
    assert [(hit.id, hit.score) for hit in read_results(["x", "y", "z", "w"], 4)] == [
        ("x", 1.0), ("y", 0.75), ("z", 0.5), ("w", 0.25),
    ]  # fmt: skip


def test_whole_numbers_are_ids_too() -> None:
    assert [hit.id for hit in read_results([(7, 2.0), (np.int64(8), 1.0)], 5)] == ["7", "8"]


def test_of_one_id_the_first_result_counts_and_no_more_than_k_are_taken() -> None:
    found = [("a", 3.0), ("a", 2.5), ("b", 2.0), ("c", 1.0)]
    assert [(hit.id, hit.score) for hit in read_results(found, 2)] == [("a", 3.0), ("b", 2.0)]


async def _search() -> list[str]:
    return []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "must return a list of ids"),
        ("a", "must return a list of ids"),
        (42, "must return a list of ids"),
        ([("a", float("nan"))], "a score is a finite number"),
        ([("a", float("inf"))], "a score is a finite number"),
        ([("a", "high")], "a score is a finite number"),
        ([("a", 1.0), ("b", 2.0)], "of a distance, give its negative"),
        ([("a", 1.0), "b"], "give all of them one, or none"),
        ([("a", 1.0, "text", "more")], r"\(id, score\) or \(id, score, text\)"),
        ([{"_id": "a"}], 'no "id"'),
        ([("", 1.0)], "non-empty string"),
        ([(True, 1.0)], "non-empty string"),
        ([("x" * 5000, 1.0)], "more than 4,096"),
        ([("a\ud800", 1.0)], "non-empty string"),
        ([{"id": "a", "score": 1.0, "text": 7}], "text must be a string"),
        ([object()], "is none of these"),
        (_search(), "asynchronous"),
    ],
)
def test_what_cannot_be_taken_is_named_with_the_way_out(given: Any, message: str) -> None:
    with pytest.raises(InvalidResults, match=message):
        read_results(given, 10)
