"""What the commands share: common options, and parsing of their values."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from contextlib import closing
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

import evokey
from evokey import checks, registry
from evokey.errors import InvalidFilter, InvalidInput, InvalidSettings, NotAMemory
from evokey.filters import And, Compare, Filter
from evokey.memory import open_shared
from evokey.postgres.address import SCHEMES, Address, find_address
from evokey.registry import Named
from evokey.settings import FILE, load, place, shared_folder


def parse_place(said: str | Path) -> str | Path:
    """A URL stays as it is: a path would lose one of its slashes."""
    return said if isinstance(said, str) and said.startswith(SCHEMES) else Path(said)


At = Annotated[
    Path,
    typer.Option(
        "--at",
        help="Directory of the memory; or the URL of a PostgreSQL database, with --name.",
        envvar="EVOKEY_AT",
        parser=parse_place,
        metavar="DIR|URL",
    ),
]
"""A Path; of a command that is call_at_place, an Address where a URL is given, which typer cannot say."""
Name = Annotated[
    str | None, typer.Option("--name", help="Name of the memory in the database of --at.", envvar="EVOKEY_NAME")
]
Returned = TypeVar("Returned")
Command = TypeVar("Command", bound=Callable[..., Any])


def place_by_name(command: Callable[..., Returned]) -> Callable[..., Returned]:
    """The same command with --name, if it has --at: together they are an Address."""
    taken = inspect.signature(command, eval_str=True)
    if "at" not in taken.parameters or "name" in taken.parameters:
        return command

    @wraps(command)
    def call_at_place(*args: Any, name: str | None = None, **named: Any) -> Returned:
        try:
            named["at"] = find_address(named["at"], name) or named["at"]
        except InvalidSettings as error:
            raise typer.BadParameter(str(error)) from error
        return command(*args, **named)

    more = inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Name)
    vars(call_at_place)["__signature__"] = taken.replace(parameters=[*taken.parameters.values(), more])
    call_at_place.__annotations__ = {**{key: one.annotation for key, one in taken.parameters.items()}, "name": Name}
    return call_at_place


class App(typer.Typer):
    """Commands with --at have --name, too."""

    def command(self, *args: Any, **named: Any) -> Callable[[Command], Command]:
        register = super().command(*args, **named)

        def add(command: Command) -> Command:
            register(place_by_name(command))
            return command

        return add


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        help="Filter: field=value (repeat for alternatives), field!=value, year>=2020, day<2024-05-01, title~part; "
        'or JSON: \'{"author.name": {"exists": true}}\', or Haystack\'s, with AND, OR and NOT.'
    ),
]
Reader = Annotated[
    list[str] | None,
    typer.Option(
        "--where", help="Filter of the reader's documents, as in search. Names and questions of others are not shown."
    ),
]
HERE = Path(".evokey")
CONDITION = re.compile(r"(?P<field>[^<>=!~]+)(?P<sign><=|>=|!=|=|<|>|~)(?P<value>.*)", re.DOTALL)


def existing(at: Path | Address) -> evokey.Memory:
    if isinstance(at, Address):
        return open_shared(at, make=False)
    if not (place(at) / FILE).exists():
        raise not_there(at)
    return evokey.open(at)


def existing_or_layer(at: Path | Address) -> evokey.Memory | evokey.Layer:
    """The memory; or the layer beside a search function, which is not at hand here."""
    file = folder_of(at) / FILE
    return evokey.beside(None, at) if file.exists() and load(file).get("beside") else existing(at)


def reader_of(memory: evokey.Memory | evokey.Layer, said: list[str] | None) -> dict[str, Any]:
    """The filter of a reader who is not the owner, as an argument; a layer has no documents to filter."""
    if said and isinstance(memory, evokey.Layer):
        raise InvalidInput("--where filters documents, and a layer beside a search function has none: leave it out")
    return {"where": filter_of(said)} if said else {}


def folder_of(at: Path | Address) -> Path:
    """The directory of a memory; of one in a database, that of this machine for it."""
    if not isinstance(at, Address):
        return place(at)
    with closing(registry.load("ledger", "postgres")(at, make=False)) as database:
        return shared_folder(database)


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


def filter_of(said: list[str] | None) -> Filter | None:
    """What was said as a filter: field=value (again: one of), field<value and the like, or JSON; None: nothing was."""
    equal: dict[str, list[Any]] = {}
    more: list[Filter] = []
    for one in said or ():
        parts = CONDITION.fullmatch(one)
        if one.lstrip().startswith("{"):
            more.append(_parse_filter(one))
        elif parts is None:
            raise InvalidFilter(
                f"--where {one} is not of the form field=value, with one of = != < <= > >= ~ (contains), nor JSON"
            )
        elif parts["sign"] == "=":
            equal.setdefault(parts["field"], []).extend(_meanings(parts["value"]))
        else:
            more.append(_condition(parts["field"], parts["sign"], parts["value"]))
    several = [Compare(field, "in", tuple(values)) for field, values in equal.items()]
    return checks.filter(And((*several, *more))) if said else None


def _condition(field: str, sign: str, value: str) -> Compare:
    if sign == "!=":
        return Compare(field, "not in", tuple(_meanings(value)))
    return Compare(field, "contains", value) if sign == "~" else Compare(field, sign, _bound(value))


def _parse_filter(said: str) -> Filter:
    try:
        return checks.filter(checks.json_value(said))
    except InvalidInput as error:
        raise InvalidFilter(f"--where {said[:200]}: {error}") from error


def _meanings(value: str) -> list[Any]:
    """A value that reads as a number (or true) may be meant as such, or as a string."""
    try:
        read = checks.json_value(value)
    except InvalidInput:
        return [value]
    return [value, read] if isinstance(read, int | float) else [value]


def _bound(value: str) -> float | str:
    """A number where it reads as one, else a text, such as a date."""
    try:
        return float(value)
    except ValueError:
        return value


def parse_grade(said: str) -> tuple[str, float]:
    """id or id=grade; an id may itself hold an equals sign."""
    id, equals, grade = said.rpartition("=")
    try:
        return (id, float(grade)) if equals else (said, 1.0)
    except ValueError:
        return said, 1.0
