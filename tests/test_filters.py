"""Filters: one value for shorthand, JSON and Python; the ledger and plain Python agree on what meets them."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from conftest import Opener
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evokey
from evokey import checks
from evokey.cli.options import filter_of
from evokey.errors import InvalidFilter
from evokey.filters import OPERATORS, And, Compare, Filter, Not, Or

EN = Compare("lang", "==", "en")
FIELDS = st.sampled_from(["lang", "year", "day", "tags", "none", "tags.lang", "day.tags.lang"])
ITEMS = st.sampled_from(
    ["en", "de", "", "1", "2024-05-01", "2024-11", 0, 1, 2, -1.5, 2**53 + 1, float(2**53), True, False]
)
VALUES = ITEMS | st.none()
COMPARISONS: st.SearchStrategy[Filter] = st.one_of(
    st.builds(Compare, FIELDS, st.sampled_from(["==", "!="]), VALUES),
    st.builds(Compare, FIELDS, st.sampled_from(["contains", "not contains"]), st.sampled_from(["e", "1", "2024-"])),
    st.builds(Compare, FIELDS, st.sampled_from(["in", "not in"]), st.lists(VALUES, max_size=3).map(tuple)),
    st.builds(
        Compare, FIELDS, st.sampled_from([">", ">=", "<", "<="]), ITEMS.filter(lambda one: not isinstance(one, bool))
    ),
)
FILTERS = st.recursive(
    COMPARISONS,
    lambda inside: st.one_of(
        st.builds(And, st.lists(inside, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inside, max_size=3).map(tuple)),
        st.builds(Not, inside),
    ),
    max_leaves=6,
)
METADATA = st.dictionaries(
    FIELDS,
    st.recursive(
        VALUES,
        lambda inside: st.lists(inside, max_size=3) | st.dictionaries(FIELDS, inside, max_size=2),
        max_leaves=5,
    ),
    max_size=4,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(METADATA, min_size=1, max_size=4), st.lists(FILTERS, min_size=1, max_size=6))
def test_the_ledger_and_plain_python_agree(
    opened: Opener, metadata: list[dict[str, Any]], filters: list[Filter]
) -> None:
    memory = opened(encoder="bm25")
    memory.delete([id for id in map(str, range(4)) if memory.ledger.documents.has(id)])
    memory.add({"id": str(place), "text": "tea", "metadata": one} for place, one in enumerate(metadata))
    for one in filters:
        found = {hit.id for hit in memory.search("tea", where=one)}
        assert found == {str(place) for place, known in enumerate(metadata) if one.matches(known)}
    memory.close()


@given(FILTERS)
def test_a_filter_survives_its_json(one: Filter) -> None:
    assert checks.filter(json.loads(json.dumps(one.to_dict()))) == one


@pytest.mark.parametrize(
    ("where", "meant"),
    [
        ({}, And()),
        ({"lang": "en"}, And((EN,))),
        ({"lang": ["en", "de"], "year": 2020}, And((Compare("lang", "in", ("en", "de")), Compare("year", "==", 2020)))),
        ({"year": {"gte": 2000, "lt": 2010}}, And((Compare("year", ">=", 2000), Compare("year", "<", 2010)))),
        ({"field": "meta.lang", "operator": "==", "value": "en"}, EN),
        ({"field": "lang", "operator": "not in", "value": ["en"]}, Compare("lang", "not in", ("en",))),
        ({"operator": "AND", "conditions": [EN.to_dict(), {"lang": "en"}]}, And((EN, And((EN,))))),
        ({"operator": "OR", "conditions": [EN.to_dict()]}, Or((EN,))),
        ({"operator": "NOT", "conditions": [EN.to_dict(), EN.to_dict()]}, Not(And((EN, EN)))),
        ({"operator": "Smith"}, And((Compare("operator", "==", "Smith"),))),
        (Not(EN), Not(EN)),
        (
            {"lang": {"exists": True}, "a.b": {"exists": False}},
            And((Compare("lang", "!=", None), Compare("a.b", "==", None))),
        ),
        (
            {"title": {"contains": "war", "ne": "war"}},
            And((Compare("title", "contains", "war"), Compare("title", "!=", "war"))),
        ),
        ({"day": date(2024, 5, 1)}, And((Compare("day", "==", "2024-05-01"),))),
        (
            {"day": {"lt": datetime(2024, 5, 1, 2, tzinfo=timezone(timedelta(hours=2)))}},
            And((Compare("day", "<", "2024-05-01T00:00:00+00:00"),)),
        ),
        ({"day": [date(2024, 5, 1), "never"]}, And((Compare("day", "in", ("2024-05-01", "never")),))),
    ],
)
def test_shorthand_and_json_are_the_same_values(where: Any, meant: Filter) -> None:
    assert checks.filter(where) == meant
    assert hash(checks.filter(where)) == hash(meant)


@pytest.mark.parametrize("where", ["lang=en", ["lang", "en"], {1: "en"}, {("a", "b"): 1}], ids=repr)
def test_what_is_no_filter_is_refused_with_one_that_is(where: Any) -> None:
    with pytest.raises(InvalidFilter, match=r'where is a mapping .*like \{"lang": "en"\}, not '):
        checks.filter(where)


def deep(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"lang": "en"}
    for _ in range(depth):
        found = {"operator": "NOT", "conditions": [found]}
    return found


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"operator": "and", "conditions": []}, "there is no operator 'and': AND, OR, NOT, =="),
        ({"operator": "=", "field": "lang", "value": "en"}, "there is no operator '=': AND, OR, NOT, =="),
        ({"operator": "AND", "condition": []}, "with AND has conditions, operator, not operator, condition"),
        ({"operator": "==", "field": "lang"}, "with == has field, operator, value, not operator, field"),
        ({"operator": "OR", "conditions": {"lang": "en"}}, "the conditions of OR are a list, not {"),
        ({"field": 5, "operator": "==", "value": 5}, "a field is a name, such as meta.lang, not 5"),
        ({"field": "lang", "operator": "in", "value": "en"}, r"where\['lang'\]: in takes a list of values, not 'en'"),
        ({"field": "year", "operator": ">", "value": [1]}, r"where\['year'\]: the bounds of a range .* not \[1\]"),
        ({"field": "year", "operator": ">", "value": None}, r"bounds of a range .* not None"),
        ({"year": {"above": 3}}, r"where\['year'\] has some of eq, ne, lt, lte, gt, gte, in, .* exists, not"),
        ({"year": {"exists": 1}}, r"where\['year'\]: exists is true or false, not 1"),
        ({"title": {"contains": ""}}, r"where\['title'\]: contains takes a text that is not empty, not ''"),
        ({"year": {"gt": True}}, "bounds of a range are finite numbers, or texts such as ISO dates, not True"),
        ({"year": {"gt": math.inf}}, "numbers are finite, not inf"),
        ({"lang": {"en"} | {2**70}}, "beyond 64 bits"),
        ({"lang": "\ud800"}, "not valid Unicode"),
        ({"lang": [["en"]]}, r"is compared with \['en'\]; give a string, a number, true/false or null"),
        (Compare("lang", "like", "e%"), r"where\['lang'\]: there is no operator 'like': ==, !=, >"),
        (deep(60), "conditions more than 50 deep; use fewer levels"),
        (deep(5_000), "conditions more than 50 deep; use fewer levels"),
        (Or((EN,) * 1_001), "where has 1,002 conditions; at most 1,000 are taken"),
    ],
)
def test_a_wrong_filter_is_named_with_what_is_wrong(where: Any, message: str) -> None:
    with pytest.raises(InvalidFilter, match=message) as refused:
        checks.filter(where)
    assert len(str(refused.value)) < 500


def test_missing_fields_null_and_unlike_types_are_as_documented() -> None:
    def met(operator: str, value: Any, metadata: dict[str, Any]) -> bool:
        return Compare("year", operator, value).matches(metadata)

    for nothing in ({}, {"year": None}, {"year": []}, {"year": {"of": 5}}):
        assert [operator for operator in OPERATORS[:6] if met(operator, 5, nothing)] == ["!="]
        assert met("==", None, nothing) and not met("!=", None, nothing) and met("in", (None, 5), nothing)
    assert not met("==", None, {"year": 5}) and met("not in", (6, None), {"year": 5})
    assert not met(">", "4", {"year": 5}) and not met("<", 5, {"year": "4"})
    assert met(">=", "2024-02-29", {"year": "2024-03-01"})


def test_the_bounds_of_a_range_are_met_by_one_item_of_a_list() -> None:
    within = And((Compare("years", ">=", 2000), Compare("years", "<", 2010)))
    assert not within.matches({"years": [1990, 2030]}) and within.matches({"years": [1990, 2005]})


def test_every_reader_takes_json_and_values(opened: Opener, tmp_path: Path) -> None:
    memory = opened(encoder="bm25")
    memory.add({"id": lang, "text": "tea", "metadata": {"lang": lang}} for lang in ("en", "de", "fr"))
    told = {"operator": "NOT", "conditions": [{"field": "meta.lang", "operator": "in", "value": ["en", "de"]}]}
    for where in (told, checks.filter(told)):
        assert [hit.id for hit in memory.search("tea", where=where)] == ["fr"]
        assert memory.stats(where).documents == 1
        with pytest.raises(evokey.EvokeyError, match="no document has the id"):
            memory.explain("en", "tea", where=where)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (None, None),
        (["lang=en", "lang=de"], And((Compare("lang", "in", ("en", "de")),))),
        (["n=1"], And((Compare("n", "in", ("1", 1)),))),
        (["year>=2020", "day<2024-05-01"], And((Compare("year", ">=", 2020.0), Compare("day", "<", "2024-05-01")))),
        (["n!=1", "title~a=b"], And((Compare("n", "not in", ("1", 1)), Compare("title", "contains", "a=b")))),
        (['{"author.name": {"exists": true}}'], And((And((Compare("author.name", "!=", None),)),))),
        (["a=b", json.dumps(EN.to_dict())], And((Compare("a", "in", ("b",)), EN))),
    ],
)
def test_the_command_line_says_the_same(said: list[str] | None, meant: Filter | None) -> None:
    assert filter_of(said) == meant


@pytest.mark.parametrize("said", ["lang", '{"lang": ', '{"operator": "AND"}'])
def test_a_wrong_condition_on_the_command_line_is_named(said: str) -> None:
    with pytest.raises(InvalidFilter, match="--where"):
        filter_of([said])


def test_a_field_inside_of_objects_is_named_with_dots(opened: Opener) -> None:
    memory = opened(encoder="bm25")
    books = [
        {"author": {"name": "Ada", "born": 1815}},
        {"author": [{"name": "Ada"}, {"name": "Bo"}]},
        {"author": "Ada"},
    ]
    memory.add({"id": str(place), "text": "tea", "metadata": one} for place, one in enumerate(books))

    def found(where: Any) -> set[str]:
        return {hit.id for hit in memory.search("tea", where=where)}

    assert found({"author.name": "Ada"}) == {"0", "1"}
    assert found({"author.name": "Bo"}) == {"1"}
    assert found({"author.born": {"gte": 1800}}) == {"0"}
    assert found({"author.born": {"exists": False}}) == {"1", "2"}
    assert found({"author": "Ada"}) == {"2"}


def test_a_filter_is_resolved_anew_when_a_document_has_changed(opened: Opener) -> None:
    memory, other = opened(encoder="bm25"), opened()
    memory.add([{"id": "a", "text": "tea", "metadata": {"lang": "en"}}])
    for one in (memory, other, memory):
        assert [hit.id for hit in one.search("tea", where={"lang": "en"})] == ["a"]
    memory.add([{"id": "a", "text": "tea", "metadata": {"lang": "de"}}])
    assert memory.search("tea", where={"lang": "en"}) == other.search("tea", where={"lang": "en"}) == []


def test_dates_in_metadata_are_kept_as_texts_that_sort(opened: Opener) -> None:
    memory = opened(encoder="bm25")
    zone = timezone(timedelta(hours=5))
    memory.add(
        [{"id": "a", "text": "tea", "metadata": {"day": date(2024, 5, 1), "at": datetime(2024, 5, 1, tzinfo=zone)}}]
    )
    assert memory.get("a").metadata == {"day": "2024-05-01", "at": "2024-04-30T19:00:00+00:00"}
    assert memory.search("tea", where={"day": {"gte": date(2024, 5, 1), "lt": "2024-05-02"}})


def test_facts_of_an_earlier_ledger_are_completed_with_fields_inside_of_objects(opened: Opener, tmp_path: Path) -> None:
    metadata = [{"a": {"b": [1, {"c": "x"}, [2]], "d": None}, "e": [{"f": True}, "y"], "g": 1.5}, {"a": "{"}, {"h": 1}]
    with opened(encoder="bm25") as memory:
        memory.add({"id": str(place), "text": "tea", "metadata": one} for place, one in enumerate(metadata))
    with closing(sqlite3.connect(next(tmp_path.rglob("ledger.sqlite")))) as ledger, ledger:
        expected = ledger.execute("SELECT number, field, value FROM facts ORDER BY 1, 2, 3").fetchall()
        ledger.execute("DELETE FROM facts WHERE field LIKE '%.%'")
        ledger.execute("DELETE FROM migrations WHERE name = '0012_nested_facts'")
    with opened() as memory:
        assert memory.search("tea", where={"a.b.c": "x"})
    with closing(sqlite3.connect(next(tmp_path.rglob("ledger.sqlite")))) as ledger:
        assert ledger.execute("SELECT number, field, value FROM facts ORDER BY 1, 2, 3").fetchall() == expected
        assert ("a.b.c", "x") in {row[1:] for row in expected}
