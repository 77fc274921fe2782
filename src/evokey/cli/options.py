"""What the commands share: common options, and parsing of their values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

import evokey
from evokey import checks
from evokey.errors import InvalidFilter, InvalidInput, InvalidSettings, NotAMemory
from evokey.registry import Named
from evokey.settings import FILE, place

At = Annotated[Path, typer.Option("--at", help="Directory of the memory.", envvar="EVOKEY_AT")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value.")]
Where = Annotated[
    list[str] | None, typer.Option(help="Filter: field=value (repeat for alternatives), year>=2020, year<2024.")
]
Reader = Annotated[
    list[str] | None,
    typer.Option(
        "--where", help="Filter of the reader's documents, as in search. Names and questions of others are not shown."
    ),
]
HERE = Path(".evokey")
CONDITION = re.compile(r"(?P<field>[^<>=]+)(?P<sign><=|>=|=|<|>)(?P<value>.*)", re.DOTALL)
BOUND = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}


def existing(at: Path) -> evokey.Memory:
    if not (place(at) / FILE).exists():
        raise not_there(at)
    return evokey.open(at)


def not_there(at: Path) -> NotAMemory:
    return NotAMemory(f"there is no memory at {at}; create one with: evokey init --at {at}")


def component(said: str) -> Named:
    """A component as it is typed: its name, or JSON with its name and options."""
    if not said.lstrip().startswith("{"):
        return said
    try:
        found: dict[str, Any] = checks.json_value(said)
    except InvalidInput as error:
        raise InvalidSettings(f'{said[:200]} {error}; write {{"name": "bm25", "k1": 1.2}}') from error
    return found


def conditions(said: list[str]) -> dict[str, Any]:
    """field=value (again: one of), field<n, field<=n, field>n, field>=n."""
    found: dict[str, Any] = {}
    for one in said:
        parts = CONDITION.fullmatch(one)
        if parts is None:
            raise InvalidFilter(f"--where {one} is not of the form field=value, field<number or field>=number")
        field, sign, value = parts["field"], parts["sign"], parts["value"]
        known = found.setdefault(field, [] if sign == "=" else {})
        if isinstance(known, list) != (sign == "="):
            raise InvalidFilter(f"--where {one}: {field} is compared by = and by a range; choose one")
        if sign == "=":
            known.extend(_meanings(value))
        else:
            known[BOUND[sign]] = _number(one, value)
    return found


def filter_of(said: list[str] | None) -> dict[str, Any] | None:
    """What was said as a filter; None if nothing was."""
    return conditions(said or []) or None


def _meanings(value: str) -> list[Any]:
    """A value that reads as a number (or true) may be meant as such, or as a string."""
    try:
        read = checks.json_value(value)
    except InvalidInput:
        return [value]
    return [value, read] if isinstance(read, int | float) else [value]


def _number(said: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InvalidFilter(f"--where {said}: {value!r} is not a number") from None


def graded(said: str) -> tuple[str, float]:
    """id or id=grade; an id may itself hold an equals sign."""
    id, equals, grade = said.rpartition("=")
    try:
        return (id, float(grade)) if equals else (said, 1.0)
    except ValueError:
        return said, 1.0
