"""What a memory is made of: TOML ↔ Settings → components. Fixed when the memory is made, kept in its evokey.toml."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evokey import registry
from evokey.errors import InvalidSettings, NewerFormat, NotAMemory
from evokey.evolution.policy import Policy
from evokey.registry import Named as Named
from evokey.registry import named
from evokey.retriever import DenseRetriever, GivenRetriever, Retriever, SparseRetriever
from evokey.stores.segments import write_synced

FILE = "evokey.toml"
FORMAT = 1
STORES = {"dense": "flat", "sparse": "sparse"}
EXPANDERS = ("query",)
OWN_KEYS = frozenset({"encoder", "keys", "store"})
"""What a [[retriever]] says of itself; the rest are options of its encoder."""


@dataclass(frozen=True, slots=True)
class RetrieverSettings:
    encoder: str
    keys: str = "full"
    store: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the encoder."""


@dataclass(frozen=True, slots=True)
class Settings:
    retrievers: tuple[RetrieverSettings, ...] = (RetrieverSettings("bm25"), RetrieverSettings("wordllama"))
    policy: str = "guarded"
    expander: str = "query"
    policy_options: Mapping[str, Any] = field(default_factory=dict)


def settings_of(
    encoder: Named | Sequence[Named] | None = None,
    keys: str | None = None,
    store: str | None = None,
    policy: Named | None = None,
    expander: str | None = None,
) -> Settings:
    """Settings from the arguments of open; what is not said takes the default."""
    default = Settings()
    rule, options = named(policy or default.policy)
    retrievers = tuple(
        RetrieverSettings(name, keys or "full", store or "", given)
        for name, given in map(named, listed(encoder) or [one.encoder for one in default.retrievers])
    )
    return checked(Settings(retrievers, rule, expander or default.expander, options))


def listed(encoder: Named | Sequence[Named] | None) -> list[Named]:
    if encoder is None:
        return []
    return [encoder] if isinstance(encoder, str | Mapping) else list(encoder)


def checked(settings: Settings) -> Settings:
    """The same settings with every store named, or an error that says what is wrong."""
    if not settings.retrievers:
        raise InvalidSettings("a memory needs at least one encoder")
    registry.component("policy", settings.policy)
    if settings.expander not in EXPANDERS:
        known = ", ".join(EXPANDERS)
        raise InvalidSettings(f"there is no expander called {settings.expander!r}; choose one of: {known}")
    names = [one.encoder for one in settings.retrievers]
    if len(set(names)) != len(names):
        raise InvalidSettings(f"each encoder may be named once, not {', '.join(names)}")
    return replace(settings, retrievers=tuple(_stored(one) for one in settings.retrievers))


def _stored(one: RetrieverSettings) -> RetrieverSettings:
    registry.component("keys", one.keys)
    fitting = STORES[registry.encoder_kind(one.encoder, one.options)]
    if one.store:
        registry.component("store", one.store)
    if one.store and one.store != fitting:
        raise InvalidSettings(f"encoder {one.encoder!r} needs store {fitting!r}, not {one.store!r}")
    return RetrieverSettings(one.encoder, one.keys, fitting, one.options)


def resolved(path: Path, said: Mapping[str, Any]) -> tuple[Path, Settings]:
    """The folder a path means, and the settings of the memory there: its own, or those of a new one."""
    folder = place(path)
    described = read(path) if _describes(path) else None
    if described is not None and said:
        raise InvalidSettings(f"{path} already says how the memory is made; leave out {', '.join(said)}")
    file = folder / FILE
    if not file.exists():
        _refuse_foreign(folder)
        return folder, described or settings_of(**said)
    stored = read(file)
    if described is not None and described != stored:
        raise InvalidSettings(f"{folder} was made with {told(stored)}; {path} now says {told(described)}. {OTHERWISE}")
    for name, value in said.items():
        if not _agrees(stored, name, value):
            raise InvalidSettings(f"{folder} was made with {told(stored)}, not with {name}={value!r}. {OTHERWISE}")
    return folder, stored


OTHERWISE = "Open it without settings, or make a new memory in another directory."
OWN = re.compile(r"ledger\.sqlite(-wal|-shm|-journal)?|writer\.(lock|json)|keys(\.lost)?|evokey\.\d+\.tmp")
"""What a memory may hold whose making was interrupted before its settings were kept."""


def place(path: Path) -> Path:
    """The directory of the memory that a path means: itself, or what a TOML file says."""
    if not _describes(path):
        return path.parent if path.name == FILE else path
    at = _toml_of(path).get("at", path.stem)
    if not isinstance(at, str):
        raise InvalidSettings(f"{path}: at must be the name of a directory, not {at!r}")
    return path.parent / at


def _describes(path: Path) -> bool:
    """Whether a path is a TOML file that describes a memory elsewhere."""
    return path.suffix == ".toml" and path.name != FILE and not path.is_dir()


def _toml_of(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise NotAMemory(f"{path} does not exist; give a directory, or write that file first") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSettings(f"{path} is not valid TOML: {error}") from error


def _refuse_foreign(folder: Path) -> None:
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise NotAMemory(f"{path} is a file; a memory is a directory")
    strangers = (
        sorted(path.name for path in folder.iterdir() if not OWN.fullmatch(path.name)) if folder.exists() else []
    )
    if strangers:
        raise NotAMemory(
            f"{folder} is no memory: it has no {FILE}, and holds {', '.join(strangers[:3])}. "
            f"Give an empty or a new directory."
        )


def _agrees(stored: Settings, name: str, value: Any) -> bool:
    if name == "encoder":
        made = [(one.encoder, dict(one.options)) for one in stored.retrievers]
        return all(
            asked in (pair[0], {"name": pair[0], **pair[1]}) for asked, pair in zip(listed(value), made, strict=False)
        ) and len(listed(value)) == len(made)
    if name == "policy":
        return value in (stored.policy, {"name": stored.policy, **stored.policy_options})
    if name in ("keys", "store"):
        return all(getattr(one, name) == value for one in stored.retrievers)
    return bool(getattr(stored, name) == value)


def told(settings: Settings) -> str:
    parts = " + ".join(f"{one.encoder}/{one.keys}" for one in settings.retrievers)
    return f"{parts}, policy {settings.policy}, expander {settings.expander}"


def kept(folder: Path, settings: Settings) -> None:
    """Write the settings of a new memory, all at once; those of an existing one stay as they are."""
    file = folder / FILE
    if not file.exists():
        making = folder / f"evokey.{os.getpid()}.tmp"
        write_synced(making, written(settings).encode())
        making.replace(file)


def retrievers(settings: Settings, folder: Path) -> list[Retriever]:
    return [_retriever(one, folder / "keys" / one.encoder) for one in settings.retrievers]


def policy(settings: Settings) -> Policy:
    made: Policy = registry.made("policy", settings.policy, settings.policy_options)
    return made


def _retriever(one: RetrieverSettings, folder: Path) -> Retriever:
    encoder = registry.made("encoder", one.encoder, one.options)
    keys = registry.load("keys", one.keys)()
    if one.encoder == "given":
        return GivenRetriever(one.encoder, encoder, keys, folder)
    kind = DenseRetriever if encoder.kind == "dense" else SparseRetriever
    return kind(one.encoder, encoder, keys, folder)


def read(path: Path) -> Settings:
    found = _toml_of(path)
    unknown = set(found) - {"format", "policy", "expander", "retriever", "at", "policy_options"}
    if unknown:
        raise InvalidSettings(f"{path} has unknown settings: {', '.join(sorted(unknown))}")
    _check_format(path, found.get("format", FORMAT))
    default, tables = Settings(), found.get("retriever", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InvalidSettings(f"{path}: a retriever is written as [[retriever]], with double brackets")
    return checked(
        Settings(
            tuple(_table(path, table) for table in tables) or default.retrievers,
            _text(path, "policy", found.get("policy", default.policy)),
            _text(path, "expander", found.get("expander", default.expander)),
            found.get("policy_options", {}),
        )
    )


def _check_format(path: Path, number: Any) -> None:
    if not isinstance(number, int):
        raise InvalidSettings(f"{path}: format must be a whole number, not {number!r}")
    if number > FORMAT:
        raise NewerFormat(
            f"{path} has format {number}, this evokey reads up to {FORMAT}; upgrade with: pip install -U evokey"
        )


def _text(path: Path, name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidSettings(f"{path}: {name} must be a string, not {value!r}")
    return value


def _table(path: Path, table: Mapping[str, Any]) -> RetrieverSettings:
    if "encoder" not in table:
        raise InvalidSettings(f"{path} has a [[retriever]] without an encoder")
    encoder = table["encoder"]
    name, inner = named(encoder) if isinstance(encoder, dict) else (_text(path, "encoder", encoder), {})
    said = {key: _text(path, key, table[key]) for key in ("keys", "store") if key in table}
    options = {key: value for key, value in table.items() if key not in OWN_KEYS}
    return RetrieverSettings(name, **said, options={**inner, **options})


def written(settings: Settings) -> str:
    lines = [f"format = {FORMAT}", f"policy = {_toml(settings.policy)}", f"expander = {_toml(settings.expander)}"]
    if settings.policy_options:
        lines += [
            "",
            "[policy_options]",
            *(f"{key} = {_toml(value)}" for key, value in settings.policy_options.items()),
        ]
    for one in settings.retrievers:
        # Options stand beside the encoder's name, or with it where their names would clash.
        clash = not OWN_KEYS.isdisjoint(one.options)
        encoder, beside = ({"name": one.encoder, **one.options}, {}) if clash else (one.encoder, one.options)
        said = {"encoder": encoder, "keys": one.keys, "store": one.store, **beside}
        lines += ["", "[[retriever]]", *(f"{key} = {_toml(value)}" for key, value in said.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value in TOML: JSON's spelling of strings, numbers, booleans and lists is TOML's too; a table is not."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_toml(inner)}' for key, inner in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)
