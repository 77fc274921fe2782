"""Haystack's filters are evokey's own, but for a few rules: every condition names its operator, a bound that is a text
is an ISO date, and nothing lies beyond None."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from haystack.errors import FilterError

LOGIC, BOUNDS, LISTS = ("AND", "OR", "NOT"), (">", ">=", "<", "<="), ("in", "not in")


def check_filters(filters: dict[str, Any] | None) -> dict[str, Any] | None:
    """As evokey takes them; FilterError where Haystack wants one."""
    return _check(filters) if filters else None


def _check(one: Any) -> dict[str, Any]:
    if not isinstance(one, dict) or "operator" not in one:
        raise FilterError(f"a filter is a dictionary with an operator, not {one!r:.80}")
    if one["operator"] in LOGIC:
        if not isinstance(one.get("conditions"), list):
            raise FilterError(f"a filter with {one['operator']} needs its conditions, a list")
        return {**one, "conditions": [_check(inner) for inner in one["conditions"]]}
    if "field" not in one or "value" not in one:
        raise FilterError(f"a filter with {one['operator']} needs a field and a value; it has {', '.join(one)}")
    if one["operator"] in LISTS and not isinstance(one["value"], list):
        raise FilterError(f"{one['operator']} takes a list, not {type(one['value']).__name__}")
    return _check_bound(one) if one["operator"] in BOUNDS else one


def _check_bound(one: dict[str, Any]) -> dict[str, Any]:
    if one["value"] is None:
        return {"field": one["field"], "operator": "in", "value": []}
    if isinstance(one["value"], str):
        try:
            datetime.fromisoformat(one["value"])
        except ValueError as error:
            raise FilterError(f"{one['operator']} compares numbers and ISO dates, not {one['value']!r:.80}") from error
    return one
