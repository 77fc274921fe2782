"""Every value from outside comes back clean, or is refused by an error of the right class that names the culprit."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from evokey import checks
from evokey.errors import (
    EvokeyError,
    InvalidDocument,
    InvalidFilter,
    InvalidInput,
    InvalidQuery,
    InvalidSettings,
    InvalidVector,
    UnknownComponent,
    UnknownDocument,
)
from evokey.types import Document, Section

LONE = "\ud800"


@pytest.mark.parametrize(
    ("error", "bases"),
    [
        (InvalidInput, (EvokeyError, ValueError)),
        (InvalidDocument, (InvalidInput,)),
        (InvalidQuery, (InvalidInput,)),
        (InvalidVector, (InvalidInput,)),
        (InvalidFilter, (InvalidInput,)),
        (UnknownDocument, (EvokeyError, LookupError)),
        (InvalidSettings, (EvokeyError, ValueError)),
        (UnknownComponent, (InvalidSettings,)),
    ],
)
def test_the_errors_form_the_tree_that_their_module_draws(
    error: type[Exception], bases: tuple[type[Exception], ...]
) -> None:
    assert all(issubclass(error, base) for base in bases)


# ---- documents


@pytest.mark.parametrize(
    ("given", "document"),
    [
        ({"id": "a", "text": "w"}, Document("a", "w")),
        ({"id": "a", "text": "", "title": None, "metadata": None}, Document("a", "")),
        ({"id": "a", "text": "w", "title": "T", "metadata": {"n": 1}}, Document("a", "w", "T", {"n": 1})),
        (MappingProxyType({"id": "é/ß#1", "text": "🦉"}), Document("é/ß#1", "🦉")),
        (Document("a", "w", "T", MappingProxyType({"n": 1})), Document("a", "w", "T", {"n": 1})),
    ],
)
def test_a_good_document_comes_back_as_a_document(given: Any, document: Document) -> None:
    assert checks.document(given) == document


def test_metadata_comes_back_plain_as_a_copy() -> None:
    mine = {"tags": ("x", "y"), "nested": {"deep": [1, 2.5, True, None]}, 7: "seven"}
    clean = checks.document(Document("a", "w", "", mine)).metadata  # type: ignore[arg-type]
    assert clean == {"tags": ["x", "y"], "nested": {"deep": [1, 2.5, True, None]}, "7": "seven"}
    mine["nested"]["deep"].append(3)  # type: ignore[index]
    assert clean["nested"]["deep"] == [1, 2.5, True, None]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("words", "a document is a Document or a mapping with id and text, not str"),
        (("a", "w"), "not tuple"),
        ({}, "needs id and text; this one has nothing"),
        ({"id": "a", "body": "w"}, "needs id and text; this one has id, body"),
        ({"id": "a", "text": "w", "lang": "en", "age": 1}, "'a' has unknown fields: age, lang; put .* into metadata"),
        ({"id": "", "text": "w"}, "id must be a non-empty string, not ''"),
        ({"id": " \n", "text": "w"}, "id must be a non-empty string"),
        ({"id": 7, "text": "w"}, "id must be a non-empty string, not 7"),
        ({"id": None, "text": "w"}, "not None"),
        ({"id": "a", "text": None}, "'a': text must be a string, not NoneType"),
        ({"id": "a", "text": ["w"]}, "'a': text must be a string, not list"),
        ({"id": "a", "text": "w", "title": 5}, "'a': title must be a string, not int"),
        ({"id": f"a{LONE}", "text": "w"}, "id is not valid Unicode"),
        ({"id": "a", "text": LONE}, "'a': text is not valid Unicode"),
        ({"id": "a", "text": "w", "title": LONE}, "'a': title is not valid Unicode"),
        (Document("a", b"w"), "'a': text must be a string, not bytes"),  # type: ignore[arg-type]
    ],
)
def test_a_bad_document_is_named_with_what_is_wrong(given: Any, message: str) -> None:
    with pytest.raises(InvalidDocument, match=message):
        checks.document(given)


@pytest.mark.parametrize(
    "metadata",
    [
        {"seen": {1, 2}},
        {"n": math.nan},
        {"n": math.inf},
        {"n": np.float32(1)},
        {("a", "b"): 1},
        {"raw": b"x"},
        {"text": LONE},
        {LONE: 1},
        [1],
        "ab",
        ["ab"],
    ],
    ids=repr,
)
def test_metadata_that_cannot_be_kept_is_refused_in_the_name_of_its_document(metadata: Any) -> None:
    with pytest.raises(InvalidDocument, match="'a': metadata"):
        checks.document({"id": "a", "text": "w", "metadata": metadata})


def test_sections_come_back_as_values_in_whatever_form_they_are_given() -> None:
    pages = (Section(0, 5, "p. 1"), Section(7, 12, "p. 2"))
    forms: list[Any] = [pages, [[0, 5, "p. 1"], (7, 12, "p. 2")], [{"start": 0, "end": 5, "where": "p. 1"}, pages[1]]]
    for given in forms:
        assert checks.document({"id": "a", "text": "first\n\nsecond", "sections": given}).sections == pages


@pytest.mark.parametrize(
    "sections",
    [
        "p. 1",
        [None],
        [[0, 5]],
        [[0, 5, ""]],
        [[0, True, "p. 1"]],
        [[0, 6, "beyond the text"]],
        [[3, 2, "backwards"]],
        [[0, 3, "p. 1"], [2, 5, "overlapping"]],
        [[0, 3, "same"], [3, 5, "same"]],
        [{"start": 0, "end": 5, "name": "no where"}],
        [[0, 5, LONE]],
    ],
)
def test_sections_that_name_no_part_of_the_text_are_refused(sections: Any) -> None:
    with pytest.raises(InvalidDocument, match="document 'a': sections"):
        checks.document({"id": "a", "text": "words", "sections": sections})


def test_metadata_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    with pytest.raises(InvalidDocument, match="'a': metadata"):
        checks.document(Document("a", "w", "", loop))


# ---- queries, units, actors


@pytest.mark.parametrize(("text", "clean"), [("why?", "why?"), ("  why?\n", "why?"), ("two  words", "two  words")])
def test_a_query_comes_back_without_space_around_it(text: str, clean: str) -> None:
    assert checks.query(text) == clean


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the query is empty; give some text"),
        (" \t\n", "the query is empty"),
        (None, "a query is a string, not NoneType"),
        (["why?"], "a query is a string, not list"),
        (f"why{LONE}", "the query is not valid Unicode"),
    ],
)
def test_a_bad_query_is_refused(text: Any, message: str) -> None:
    with pytest.raises(InvalidQuery, match=message):
        checks.query(text)


def test_units_come_back_as_a_list_without_space_around_each() -> None:
    assert checks.units((" one", "two ")) == ["one", "two"]
    assert checks.units(()) == []


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one", "units is a list of texts, not one string"),
        (["one", ""], "unit"),
        ([5], "unit"),
        (5, "units is a list"),
    ],
)
def test_bad_units_are_refused_by_name(texts: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        checks.units(texts)


def test_an_actor_is_taken_as_written() -> None:
    assert checks.actor("ana@example.org") == "ana@example.org"


@pytest.mark.parametrize("name", ["", "  ", None, 7, LONE])
def test_an_actor_without_a_name_is_refused(name: Any) -> None:
    with pytest.raises(InvalidInput, match="an actor is a non-empty name, not "):
        checks.actor(name)


# ---- numbers


@pytest.mark.parametrize("k", [1, 10, np.int64(3)])
def test_k_comes_back_as_a_plain_whole_number(k: Any) -> None:
    assert (checks.count(k), type(checks.count(k))) == (int(k), int)


@pytest.mark.parametrize("k", [0, -1, 2.0, "3", None, True, np.int32(0)], ids=repr)
def test_a_k_that_counts_nothing_is_refused(k: Any) -> None:
    with pytest.raises(InvalidInput, match=r"k must be a whole number from 1 on, not "):
        checks.count(k)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_epoch_up_to_the_current_one_is_taken(number: int) -> None:
    assert checks.epoch(number, current=2) == number


@pytest.mark.parametrize("number", [-1, 3, 1.0, "1", True], ids=repr)
def test_an_epoch_that_never_was_is_refused_with_the_range(number: Any) -> None:
    with pytest.raises(InvalidInput, match=rf"there is no epoch {number!r}; they run from 0 \(untaught\) to 2"):
        checks.epoch(number, current=2)


# ---- verdicts


def test_ids_come_back_once_each_in_order() -> None:
    assert checks.ids(iter(["b", "a", "b"])) == ["b", "a"]


def test_one_string_for_a_list_of_ids_is_refused_with_the_spelling_that_works() -> None:
    with pytest.raises(InvalidInput, match=r"ids is a list; for a single document give \['d1'\]"):
        checks.ids("d1")


@pytest.mark.parametrize("given", [None, 5, [["d1"]], [{"id": "d1"}]], ids=repr)
def test_what_is_no_list_of_ids_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInput, match="ids is a list"):
        checks.ids(given)


@pytest.mark.parametrize(
    ("relevant", "irrelevant", "grades"),
    [
        (["a", "b", "a"], [], {"a": 1.0, "b": 1.0}),
        ({"a": 2, "b": 0.5, "c": np.float32(3)}, [], {"a": 2.0, "b": 0.5, "c": 3.0}),
        ([], ["w"], {"w": -1.0}),
        (("a",), ("w", "w"), {"a": 1.0, "w": -1.0}),
        ({"a": 0}, [], {"a": 0.0}),
        ({"a": 0}, ["a"], {"a": -1.0}),
    ],
)
def test_verdicts_become_grades_right_ones_positive_wrong_ones_negative(
    relevant: Any, irrelevant: Any, grades: dict[str, float]
) -> None:
    found = checks.grades(relevant, irrelevant)
    assert found == grades
    assert {type(grade) for grade in found.values()} == {float}


@pytest.mark.parametrize(
    ("relevant", "irrelevant", "message"),
    [
        ([], [], r"feedback needs a verdict: relevant=\[…\] or irrelevant=\[…\]"),
        ("a", [], r"give \['a'\]"),
        (["a"], "w", r"give \['w'\]"),
        (["a", "b"], ["b"], "'b' is given as right and as wrong; choose one"),
        ({"a": 2}, ["a"], "'a' is given as right and as wrong"),
        ({"a": -1}, [], r"the grade of 'a' is -1; a wrong document goes into irrelevant"),
        ({"a": 1, "b": math.nan}, [], "the grade of 'b' must be a finite number, not nan"),
        ({"a": math.inf}, [], "the grade of 'a' must be a finite number, not inf"),
        ({"a": True}, [], "the grade of 'a' must be a finite number, not True"),
        ({"a": "2"}, [], "the grade of 'a' must be a finite number, not '2'"),
        ({"a": None}, [], "the grade of 'a' must be a finite number, not None"),
        ({"a": 10**400}, [], "the grade of 'a' must be"),
    ],
)
def test_a_bad_verdict_is_refused_in_the_name_of_its_document(relevant: Any, irrelevant: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        checks.grades(relevant, irrelevant)


# ---- vectors


@pytest.mark.parametrize("make", [list, np.array, lambda rows: np.array(rows, np.int64)])
def test_vectors_come_back_as_unit_rows(make: Callable[[Any], Any]) -> None:
    found = checks.vectors(make([[3, 4], [0, 2]]), 2)
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.0, 1.0]], rtol=1e-6)
    assert found.dtype == np.float32


def test_the_callers_vectors_are_left_as_they_were() -> None:
    mine = np.array([[3.0, 4.0]], np.float32)
    checks.vectors(mine, 1)
    assert mine.tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize(
    ("given", "rows", "message"),
    [
        ([[1.0, 0.0]], 2, r"2 vectors are needed, one per row; these have the shape \(1, 2\)"),
        ([1.0, 0.0], 1, r"1 vectors are needed, one per row; these have the shape \(2,\)"),
        ([[]], 1, r"the shape \(1, 0\)"),
        (5, 1, r"the shape \(\)"),
        ([[1.0, 0.0], [0.0, 0.0]], 2, "vector 1 is zero, infinite or NaN"),
        ([[math.nan, 1.0]], 1, "vector 0 is zero, infinite or NaN"),
        ([[1.0, 0.0], [math.inf, 1.0]], 2, "vector 1 is zero, infinite or NaN"),
        ([[1.0], [1.0, 2.0]], 2, "rows of numbers, all of one length"),
        ([["north", "east"]], 1, "vectors must be rows of numbers"),
        ([[1j, 0]], 1, "vectors must be rows of numbers"),
        (np.array([[1j, 0]]), 1, "rows of numbers"),
    ],
)
def test_bad_vectors_are_refused_by_row_or_shape(given: Any, rows: int, message: str) -> None:
    with pytest.raises(InvalidVector, match=message):
        checks.vectors(given, rows)


@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_a_vector_of_any_size_has_a_direction(size: float) -> None:
    np.testing.assert_allclose(checks.vectors([[3 * size, 4 * size]], 1), [[0.6, 0.8]], rtol=1e-6)


# ---- what is too much


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"id": "a" * 5_000, "text": "w"}, r"id has 5,000 characters, more than 4,096; name it shorter"),
        (
            {"id": "a", "text": "w", "title": "t" * 20_000},
            r"title has 20,000 characters, more than 10,000; put the rest",
        ),
        (
            {"id": "a", "text": "w" * 5_000_001},
            "text has 5,000,001 characters, more than 5,000,000; split the document",
        ),
        ({"id": "a", "text": "w", "metadata": {"n": "m" * 1_000_000}}, "as JSON, more than 1,000,000; put long texts"),
        ({"id": "a", "text": "w", "metadata": {"n": nested(60)}}, "more than 50 deep; use fewer levels"),
        ({"id": "a", "text": "w", "metadata": {"n": nested(100_000)}}, "more than 50 deep; use fewer levels"),
        ({"id": "a", "text": "w", "metadata": {"n": 10**5_000}}, "metadata must be strings, numbers"),
        ({"id": 10**5_000, "text": "w"}, "not something too large to show"),
    ],
)
def test_a_document_that_is_too_much_is_refused_in_a_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidDocument, match=message) as refused:
        checks.document(given)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: checks.units(["u" * 100_001]), "a unit has 100,001 characters, more than 100,000"),
        (lambda: checks.units(["u"] * 1_001), "a unit is one of 1,001; at most 1,000 are taken"),
        (lambda: checks.answers("a" * 100_001), "an expected answer has 100,001 characters"),
        (lambda: checks.answers(5), "an expected answer is a text, or a list of texts, not 5"),  # type: ignore[arg-type]
        (lambda: checks.actor("a" * 1_001), "an actor's name has 1,001 characters, more than 1,000"),
        (lambda: checks.filter({"n": 10**5_000}), "something too large to show"),
        (lambda: checks.filter({"n": nested(100_000)}), "something too large to show"),
        (lambda: checks.filter({"n": {"lt": 10**5_000}}), "something too large to show"),
        (lambda: checks.grades({"a": 10**5_000}, ()), "something too large to show"),
        (lambda: checks.epoch(10**5_000, 3), "something too large to show"),
        (lambda: checks.ids(["i" * 10_000_000 + LONE]), r"… \(10,000,00\d characters\)"),
        (lambda: checks.json_value("9" * 5_000), "has a number of too many digits; write it as a string"),
        (lambda: checks.json_value("[" * 100_000), "more than 50 deep; use fewer levels|is not valid JSON"),
        (lambda: checks.json_value("[" * 60 + "]" * 60), "more than 50 deep; use fewer levels"),
    ],
)
def test_a_value_that_is_too_much_is_refused_in_a_line(check: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        check()
    assert len(str(refused.value)) < 500


def test_whom_to_forget_may_have_any_length() -> None:
    assert checks.actor("a" * 100_000, new=False) == "a" * 100_000
