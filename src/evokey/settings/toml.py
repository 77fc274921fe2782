"""Settings ↔ TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evokey.errors import InvalidSettings, NewerFormat, NotAMemory
from evokey.registry import Options
from evokey.settings.values import FORMAT, PARTS, PLAIN, RetrieverSettings, Settings, check, spell

FILE = "evokey.toml"
KNOWN = {*PARTS, *PLAIN, "format", "retriever", "at", "policy_options"}
OWN_KEYS = frozenset({"encoder", "keys", "store", "keys_options"})
"""What a [[retriever]] says of itself; the rest are options of its encoder."""


def place(path: Path) -> Path:
    """The directory of the memory that a path means: itself, or what a TOML file says."""
    if not describes(path):
        return path.parent if path.name == FILE else path
    at = load(path).get("at", path.stem)
    if not isinstance(at, str):
        raise InvalidSettings(f"{path}: at must be the name of a directory, not {at!r}")
    return path.parent / at


def describes(path: Path) -> bool:
    """Whether a path is a TOML file that describes a memory elsewhere."""
    return path.suffix == ".toml" and path.name != FILE and not path.is_dir()


def load(path: Path) -> Mapping[str, Any]:
    """What a TOML file says."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise NotAMemory(f"{path} does not exist; give a directory, or write that file first") from None
    except OSError as error:  # a directory in its place, no right to read it, a disk that fails
        raise InvalidSettings(f"{path} cannot be read ({error.strerror}); it must be a file of settings") from error
    except RecursionError as error:
        raise InvalidSettings(f"{path} has lists or tables nested too deeply; use fewer levels") from error
    except ValueError as error:  # no TOML, no UTF-8, or a number of too many digits
        raise InvalidSettings(f"{path} is not valid TOML: {error}") from error


def read(path: Path) -> Settings:
    """The settings in a file, checked as far as no code must be imported that they name by its place."""
    found = load(path)
    unknown = set(found) - KNOWN
    if unknown:
        raise InvalidSettings(
            f"{path} has unknown settings: {', '.join(sorted(unknown))}. Check their spelling, or remove them"
        )
    _check_format(path, found.get("format", FORMAT))
    default, tables = Settings(), found.get("retriever", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InvalidSettings(f"{path}: a retriever is written as [[retriever]], with double brackets")
    parts: dict[str, Any] = {part: _component(path, part, found[part]) for part in PARTS if part in found}
    if "policy_options" in found:  # once they stood apart
        parts["policy"] = {**parts.get("policy", default.policy), **found["policy_options"]}
    return check(
        Settings(
            tuple(_table(path, table) for table in tables) or default.retrievers,
            traffic=found.get("traffic", default.traffic),
            restricted=found.get("restricted"),
            shared_feedback=found.get("shared_feedback", default.shared_feedback),
            beside=found.get("beside", default.beside),
            format=found.get("format", FORMAT),
            **parts,
        )
    )


def _component(path: Path, kind: str, value: Any) -> Options:
    if not isinstance(value, str | Mapping):
        raise InvalidSettings(f"{path}: {kind} is a name, or a table with a name and options, not {value!r}")
    return spell(kind, value)


def _check_format(path: Path, number: Any) -> None:
    if not isinstance(number, int):
        raise InvalidSettings(f"{path}: format must be a whole number, not {number!r}")
    if number < 1:
        raise InvalidSettings(f"{path}: formats begin at 1, not {number}")
    if number > FORMAT:
        raise NewerFormat(
            f"{path} has format {number}, this evokey reads up to {FORMAT}; upgrade with: pip install -U evokey"
        )


def _table(path: Path, table: Mapping[str, Any]) -> RetrieverSettings:
    if "encoder" not in table:
        raise InvalidSettings(f"{path} has a [[retriever]] without an encoder")
    found = {kind: _component(path, kind, table[kind]) for kind in ("encoder", "keys", "store") if kind in table}
    beside = {key: value for key, value in table.items() if key not in OWN_KEYS}
    found["encoder"] = {**found["encoder"], **beside, "name": found["encoder"]["name"]}
    if "keys_options" in table:  # once they stood apart
        if not isinstance(table["keys_options"], Mapping):
            raise InvalidSettings(f"{path}: keys_options must be a table, not {table['keys_options']!r}")
        found["keys"] = {**found.get("keys", {"name": "full"}), **table["keys_options"]}
    return RetrieverSettings(**found)


def to_toml(settings: Settings) -> str:
    default = Settings()
    top: dict[str, Any] = {"format": settings.format}
    for part in PARTS:
        said = getattr(settings, part)
        if said != getattr(default, part) or part in ("policy", "expander"):
            top[part] = _short(said)
    if settings.traffic != default.traffic:
        top["traffic"] = settings.traffic
    top["restricted"] = settings.restricted
    top["shared_feedback"] = settings.shared_feedback or None
    top["beside"] = settings.beside or None
    lines = _lines(top)
    for one in settings.retrievers:
        # Options stand beside the encoder's name, or with it where their names would clash.
        options = {key: value for key, value in one.encoder.items() if key != "name"}
        clash = not OWN_KEYS.isdisjoint(options)
        table = {"encoder": one.encoder if clash else one.encoder["name"], "keys": _short(one.keys)}
        table |= {"store": _short(one.store), **({} if clash else options)}
        lines += ["", "[[retriever]]", *_lines(table)]
    return "\n".join(lines) + "\n"


def _short(component: Options | None) -> Any:
    """A component without options by its name alone."""
    return component["name"] if component is not None and len(component) == 1 else component


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_toml(value)}" for key, value in table.items() if value is not None]


def _toml(value: Any) -> str:
    """A value in TOML: JSON's spelling of strings, numbers and booleans is TOML's too."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(_lines(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if not isinstance(value, str | bool | int | float):
        raise InvalidSettings(
            f"an option must be a string, a number, true, false, or a list or table of these: {value!r}"
        )
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
