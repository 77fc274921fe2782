"""Filters from outside: shorthand, Haystack's JSON or values become one value, or an error says what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

from evokey.checks.limits import DEEPEST, LARGEST, SMALLEST, storable
from evokey.checks.showing import list_names, shown
from evokey.errors import InvalidFilter
from evokey.filters import LISTS, OPERATORS, ORDERS, PARTS, And, Compare, Filter, Not, Or, Where

SHORT = {
    "eq": "==", "ne": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=",
    "in": "in", "not_in": "not in", "contains": "contains", "not_contains": "not contains",
}  # fmt: skip
"""Operators of the shorthand."""
LOGIC = ("AND", "OR", "NOT")
MOST_CONDITIONS = 1_000
"""Conditions of a filter; a list of values for one field may be longer."""


def iso(value: date) -> str:
    """A date, or a date with a time, as a text that sorts as it should: with a time zone, in UTC."""
    aware = isinstance(value, datetime) and value.tzinfo is not None
    return value.astimezone(UTC).isoformat() if aware and isinstance(value, datetime) else value.isoformat()


def filter(where: Where) -> Filter:
    """A filter, from its shorthand ({"lang": "en"}), from Haystack's JSON, or as it is."""
    found = _filter(where, DEEPEST)
    count = _conditions(found)
    if count > MOST_CONDITIONS:
        raise InvalidFilter(f"where has {count:,} conditions; at most {MOST_CONDITIONS:,} are taken: use in")
    return found


def _conditions(found: Filter) -> int:
    inside = (found.condition,) if isinstance(found, Not) else getattr(found, "conditions", ())
    return 1 + sum(map(_conditions, inside))


def _filter(where: Any, depth: int) -> Filter:
    if depth < 1:
        raise InvalidFilter(f"where has conditions more than {DEEPEST} deep; use fewer levels")
    if isinstance(where, Compare):
        return _compare(where.field, where.operator, where.value)
    if isinstance(where, And | Or):
        return type(where)(tuple(_filter(one, depth - 1) for one in where.conditions))
    if isinstance(where, Not):
        return Not(_filter(where.condition, depth - 1))
    if not isinstance(where, Mapping) or not all(isinstance(field, str) for field in where):
        raise InvalidFilter(f'where is a mapping of field names to values, like {{"lang": "en"}}, not {shown(where)}')
    if where.get("operator") in (*LOGIC, *OPERATORS) or (
        "operator" in where and where.keys() & {"conditions", "field"}
    ):
        return _from_json(where, depth)
    return And(tuple(one for field, wanted in where.items() for one in _shorthand(field, wanted)))


def _from_json(where: Mapping[str, Any], depth: int) -> Filter:
    operator = where["operator"]
    if operator not in (*LOGIC, *OPERATORS):
        raise InvalidFilter(f"where: there is no operator {shown(operator)}: {', '.join((*LOGIC, *OPERATORS))}")
    wanted = {"operator", "conditions"} if operator in LOGIC else {"operator", "field", "value"}
    if set(where) != wanted:
        raise InvalidFilter(
            f"where: a condition with {operator} has {', '.join(sorted(wanted))}, not {list_names(where)}"
        )
    if operator in LOGIC:
        if not isinstance(where["conditions"], list | tuple):
            raise InvalidFilter(f"where: the conditions of {operator} are a list, not {shown(where['conditions'])}")
        inside = tuple(_filter(one, depth - 1) for one in where["conditions"])
        if operator == "NOT":
            return Not(inside[0] if len(inside) == 1 else And(inside))
        return Or(inside) if operator == "OR" else And(inside)
    field = where["field"]
    if not isinstance(field, str):
        raise InvalidFilter(f"where: a field is a name, such as meta.lang, not {shown(field)}")
    return _compare(field.removeprefix("meta."), operator, where["value"])


def _shorthand(field: str, wanted: Any) -> Iterator[Compare]:
    if isinstance(wanted, Mapping):
        if not wanted or set(wanted) - {*SHORT, "exists"}:
            raise InvalidFilter(
                f"where[{shown(field)}] has some of {', '.join((*SHORT, 'exists'))}, not {shown(dict(wanted))}"
            )
        for name, value in wanted.items():
            yield _exists(field, value) if name == "exists" else _compare(field, SHORT[name], value)
    else:
        several = isinstance(wanted, list | tuple | set | frozenset)
        yield _compare(field, "in" if several else "==", wanted)


def _exists(field: str, value: Any) -> Compare:
    if not isinstance(value, bool):
        raise InvalidFilter(f"where[{shown(field)}]: exists is true or false, not {shown(value)}")
    return Compare(field, "!=" if value else "==", None)


def _compare(field: str, operator: str, value: Any) -> Compare:
    if operator not in OPERATORS:
        raise InvalidFilter(f"where[{shown(field)}]: there is no operator {shown(operator)}: {', '.join(OPERATORS)}")
    if operator in LISTS:
        if not isinstance(value, list | tuple | set | frozenset):
            raise InvalidFilter(f"where[{shown(field)}]: {operator} takes a list of values, not {shown(value)}")
        value = tuple(iso(one) if isinstance(one, date) else one for one in value)
    elif isinstance(value, date):
        value = iso(value)
    if operator in PARTS and (not isinstance(value, str) or not value):
        raise InvalidFilter(f"where[{shown(field)}]: {operator} takes a text that is not empty, not {shown(value)}")
    if operator in ORDERS and (isinstance(value, bool) or not isinstance(value, str | int | float)):
        raise InvalidFilter(
            f"where[{shown(field)}]: the bounds of a range are finite numbers, or texts such as ISO dates, "
            f"not {shown(value)}"
        )
    for one in value if isinstance(value, tuple) else (value,):
        _check_value(field, one)
    return Compare(field, operator, value)


def _check_value(field: str, value: Any) -> None:
    if not isinstance(value, str | int | float | None):
        raise InvalidFilter(
            f"where[{shown(field)}] is compared with {shown(value)}; give a string, a number, true/false or null, "
            f"or a list of these for 'one of'"
        )
    if not storable(field) or (isinstance(value, str) and not storable(value)):
        raise InvalidFilter(f"where[{shown(field)}] = {shown(value)} is not valid Unicode")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidFilter(f"where[{shown(field)}]: numbers are finite, not {shown(value)}")
    if isinstance(value, int) and not SMALLEST <= value <= LARGEST:
        raise InvalidFilter(f"where[{shown(field)}] is compared with {shown(value)}, beyond 64 bits")
