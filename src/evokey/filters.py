"""Filters on metadata, as values: And, Or, Not and Compare. Their JSON is Haystack's.

    {"operator": "AND", "conditions": [{"field": "meta.lang", "operator": "==", "value": "en"}, …]}

A field that holds a list is met by any of its items; a null, an object, an empty list and a missing field hold nothing.
Fields inside objects, and inside objects in a list, have a dot between their names: {"author": {"name": …}} is
author.name. Dates are ISO texts, which sort as they should.

| operator               | is met by                                                                            |
|------------------------|--------------------------------------------------------------------------------------|
| ==, in                 | an item that equals the value, or one of them; None: a field that holds nothing       |
| >, >=, <, <=           | a number beyond a number, or a text beyond a text; a text beside a number never, and  |
|                        | a field that holds nothing never                                                      |
| contains               | a text that has the value as a part of it, letter by letter                           |
| !=, not in,            | all that the same with ==, in or contains is not met by, fields that hold nothing     |
| not contains           | included; so != None is met by every field that holds something                       |

Several bounds on one field in one AND are a range: one and the same item must meet them all.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Value = str | int | float | None
ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le
}  # fmt: skip
LISTS, PARTS, NEGATED = ("in", "not in"), ("contains", "not contains"), ("!=", "not in", "not contains")
OPERATORS = ("==", "!=", *ORDERS, *LISTS, *PARTS)


@dataclass(frozen=True, slots=True)
class Compare:
    field: str
    operator: str
    value: Value | tuple[Value, ...]
    """A tuple for `in` and `not in`."""

    @property
    def values(self) -> tuple[Value, ...]:
        return self.value if isinstance(self.value, tuple) else (self.value,)

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        found = values_of(metadata, self.field)
        if self.operator in ORDERS:
            return any(self.meets(item) for item in found)
        if self.operator in PARTS:
            part = any(isinstance(item, str) and str(self.value) in item for item in found)
            return part != (self.operator in NEGATED)
        equal = any(item in self.values for item in found) or (not found and None in self.values)
        return equal != (self.operator in NEGATED)

    def meets(self, item: Any) -> bool:
        """Whether an item lies on the right side of a bound."""
        alike = isinstance(item, str) == isinstance(self.value, str)
        return alike and ORDERS[self.operator](item, self.value)

    def to_dict(self) -> dict[str, Any]:
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return {"field": f"meta.{self.field}", "operator": self.operator, "value": value}


@dataclass(frozen=True, slots=True)
class And:
    conditions: tuple[Filter, ...] = ()
    """None: every document meets it."""

    def parts(self) -> tuple[list[Filter], list[tuple[Compare, ...]]]:
        """The conditions that stand alone, and the ranges: bounds on one field."""
        ranges: dict[str, tuple[Compare, ...]] = {}
        alone: list[Filter] = []
        for one in self.conditions:
            if isinstance(one, Compare) and one.operator in ORDERS:
                ranges[one.field] = (*ranges.get(one.field, ()), one)
            else:
                alone.append(one)
        return alone, list(ranges.values())

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        alone, ranges = self.parts()
        return all(one.matches(metadata) for one in alone) and all(
            any(all(bound.meets(item) for bound in bounds) for item in values_of(metadata, bounds[0].field))
            for bounds in ranges
        )

    def to_dict(self) -> dict[str, Any]:
        return {"operator": "AND", "conditions": [one.to_dict() for one in self.conditions]}


@dataclass(frozen=True, slots=True)
class Or:
    conditions: tuple[Filter, ...]

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        return any(one.matches(metadata) for one in self.conditions)

    def to_dict(self) -> dict[str, Any]:
        return {"operator": "OR", "conditions": [one.to_dict() for one in self.conditions]}


@dataclass(frozen=True, slots=True)
class Not:
    condition: Filter

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        return not self.condition.matches(metadata)

    def to_dict(self) -> dict[str, Any]:
        return {"operator": "NOT", "conditions": [self.condition.to_dict()]}


Filter = And | Or | Not | Compare
Where = Filter | Mapping[str, Any]
"""What callers pass: a filter, its JSON, or the shorthand {"lang": "en", "year": {"gte": 2020}}."""


def values_of(metadata: Mapping[str, Any], field: str) -> list[str | int | float]:
    """What a field holds."""
    return [value for name, value in facts(metadata) if name == field]


def facts(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str | int | float]]:
    """What filters see of metadata: fields, with a value that each holds."""
    for field, item in entries(metadata):
        if isinstance(item, str | int | float):
            yield field, item


def entries(metadata: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Everything in metadata under the name of its field, each item of a list by itself; of an object, the object and
    then what is in it."""
    for name, value in metadata.items():
        for item in value if isinstance(value, list | tuple) else [value]:
            yield f"{above}{name}", item
            if isinstance(item, Mapping):
                yield from entries(item, f"{above}{name}.")
