"""A memory that is opened: where it is, which settings it has or gets, and whether these agree with what is asked."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evokey.errors import InvalidSettings, NotAMemory
from evokey.ledger.shared import Shared
from evokey.registry import OBJECT, Described, Options, encoder_cost, name_and_options
from evokey.settings import trust
from evokey.settings.toml import FILE, describes, load, place, read, to_toml
from evokey.settings.values import (
    ENCODERS,
    FORMAT,
    PARTS,
    PLAIN,
    Settings,
    check,
    check_objects,
    collect_objects,
    encoder_kind,
    list_encoders,
    settings_of,
    spell,
)
from evokey.stores.segments import write_synced

log = logging.getLogger("evokey")
EMBEDDED = ("flat", "sparse", "late", "ann")
"""Stores that keep their keys in a folder of one machine."""
OTHERWISE = "Open it without settings, or make a new memory in another directory."
OWN = re.compile(
    r"ledger\.(commits|sum|sqlite(-wal|-shm|-journal)?)|writer\.(lock|json)|keys(\.lost)?|models|evokey\.\d+\.tmp"
)
"""What a memory may hold whose making was interrupted before its settings were kept."""


def resolve(path: Path, said: Mapping[str, Any], allow: Sequence[str] = ()) -> tuple[Path, Settings]:
    """The folder a path means, and the settings of the memory there: its own, or those of a new one.

    What files say reaches nothing outside the folder that is not allowed; what is said here is the user's own word.
    """
    folder = place(path)
    own = _reach(_spell_all(said), folder)
    known = [*allow, *(one.allowance for one in own), *trust.allowances(folder)]
    described = None
    if describes(path):
        trust.check(trust.outside("at", folder, path.parent), known, path)
        described = read(path)
        if said:
            raise InvalidSettings(f"{path} already says how the memory is made; leave out {', '.join(said)}")
        trust.check(needs(described, folder), known, path)
        described = check(described, trusted=True)
    if not (folder / FILE).exists():
        _refuse_foreign(folder)
        return folder, replace(described, format=FORMAT) if described else settings_of(**said)
    stored = read_trusted(folder, known)
    check_kind(folder, stored, beside=bool(said.get("beside")))
    if described is not None and described != stored:
        raise InvalidSettings(
            f"{folder} was made with {describe(stored)}; {path} now says {describe(described)}. {OTHERWISE}"
        )
    return folder, _compare(folder, stored, said)


def resolve_shared(database: Shared, said: Mapping[str, Any], allow: Sequence[str] = ()) -> tuple[Path, Settings]:
    """The folder on this machine for what is derived from a shared memory, and the settings of the memory: its own, or
    those of a new one. What the database says reaches nothing here that is not allowed."""
    folder = shared_folder(database)
    stored = (folder / FILE).exists()
    settings = resolve(folder, said if stored else _share_keys(said), allow)[1]
    if stored:
        return folder, settings
    _check_shared(settings)
    if database.keep_settings(to_toml(settings)) == to_toml(settings):
        shared_folder(database)
        trust.record(folder, required_allowances(settings, folder))
        return folder, settings
    return resolve_shared(database, said, allow)  # another process has made it meanwhile


def shared_folder(database: Shared) -> Path:
    """The folder of a shared memory on this machine, with a copy of the settings that the database has."""
    folder = cache_folder() / "shared" / database.id
    folder.mkdir(parents=True, exist_ok=True)
    told, file = database.settings, folder / FILE
    if told is None:
        file.unlink(missing_ok=True)
    elif not file.exists() or file.read_text("utf-8") != told:
        making = folder / f"evokey.{os.getpid()}.tmp"
        write_synced(making, told.encode())
        making.replace(file)
    return folder


def cache_folder() -> Path:
    """Of this user, for what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "evokey"


def _share_keys(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """Dense keys of a shared memory are in its database, unless the user says where. A layer has no keys."""
    if said.get("beside"):
        return said
    objects = collect_objects(said)
    encoders = [spell("encoder", one) for one in list_encoders(said.get("encoder")) or list(ENCODERS)]
    dense = any(encoder_kind(one, objects) == "dense" for one in encoders)
    return {"store": "pgvector", **said} if dense else said


def _check_shared(settings: Settings) -> None:
    """Keys that cost something are made once: not on every machine."""
    for one in settings.retrievers:
        if one.store is None or one.store["name"] not in EMBEDDED or one.encoder["name"] == OBJECT:
            continue
        if encoder_cost(*name_and_options(one.encoder)) != "nothing":
            raise InvalidSettings(
                f"encoder {one.name!r} takes time or money, and store {one.store['name']!r} would make its keys again "
                f"on every machine. In a database, use a dense encoder with store 'pgvector'; or keep this memory in a "
                f"directory"
            )


def check_kind(folder: Path, stored: Settings, *, beside: bool) -> None:
    """A memory has documents; a layer beside another search has none."""
    if stored.beside and not beside:
        raise NotAMemory(
            f"{folder} is a layer beside a search function, not a memory of documents; open it with "
            f"evokey.beside(search, at={str(folder)!r})"
        )
    if beside and not stored.beside:
        raise NotAMemory(
            f"{folder} is a memory of documents, not a layer beside a search function; open it with "
            f"evokey.open({str(folder)!r}), or give evokey.beside another directory"
        )


def _spell_all(said: Mapping[str, Any]) -> list[tuple[str, Options]]:
    """The components among the arguments of open, with their kinds."""
    encoders = [("encoder", one) for one in list_encoders(said.get("encoder"))]
    parts = [(kind, said[kind]) for kind in ("keys", "store", *PARTS) if kind in said]
    return [(kind, spell(kind, one)) for kind, one in (*encoders, *parts)]


def _compare(folder: Path, stored: Settings, said: Mapping[str, Any]) -> Settings:
    """The settings of a memory that is there, with the objects that were passed; an error if others are asked for."""
    objects: dict[tuple[str, str], Any] = {}
    for name, value in said.items():
        if name == "restricted" and stored.restricted is None:
            raise InvalidSettings(
                f"{folder} was made without restricted documents. To set them apart from now on: close the memory "
                f"everywhere, write restricted = {json.dumps(value)} at the top of {folder / FILE}, then run: "
                f"evokey evolve"
            )
        agrees = getattr(stored, name) == value if name in PLAIN else _take(stored, name, value, objects)
        if not agrees:
            raise InvalidSettings(f"{folder} was made with {describe(stored)}, not with {name}={value!r}. {OTHERWISE}")
    found = replace(stored, objects=objects)
    check_objects(found)
    return found


def _take(stored: Settings, kind: str, value: Any, objects: dict[tuple[str, str], Any]) -> bool:
    """Whether the memory was made with these components; objects among them are taken up."""
    made = [one for its, one in stored.components() if its == kind]
    asked = list_encoders(value) if kind == "encoder" else [value] * (len(made) if kind != "store" else 1)
    if kind == "store":  # it may hold the keys of some retrievers, beside other stores
        made = [one for one in made if _is(one, kind, value)][:1]
    if not made or len(asked) != len(made) or not all(map(_is, made, [kind] * len(made), asked)):
        return False
    objects.update(
        {(kind, str(one["class"])): it for one, it in zip(made, asked, strict=True) if one["name"] == OBJECT}
    )
    return True


def _is(made: Options, kind: str, asked: Described) -> bool:
    """Whether a component is what was asked for, by name alone, with its options, or as an object."""
    if asked == made["name"] != OBJECT:
        return True
    spelled = spell(kind, asked)
    if made["name"] == OBJECT == spelled["name"]:
        return spelled.get("identity") == made.get("identity")  # of an encoder; others may be replaced
    return spelled == made


def describe(settings: Settings) -> str:
    parts = " + ".join(f"{one.name}/{one.keys['name']}" for one in settings.retrievers)
    return f"{parts}, policy {settings.policy['name']}, expander {settings.expander['name']}"


def read_trusted(folder: Path, allow: Sequence[str]) -> Settings:
    """The settings in a folder, once all that they and its files reach outside is allowed."""
    links = trust.links(folder)  # first: reading from a pipe would wait for good
    stored = read_whole(folder)
    trust.check([*links, *needs(stored, folder)], allow, folder)
    return check(stored, trusted=True)


def read_whole(folder: Path) -> Settings:
    """The settings of a memory. Those that evokey wrote begin with the format and end with what the memory retrieves
    by: less beside a ledger was cut, and would be filled up with defaults."""
    try:
        found, said = read(folder / FILE), load(folder / FILE)
    except InvalidSettings as error:
        message = str(error).rstrip(".")
        raise type(error)(f"{message}. Correct the file, or restore it from a backup.") from error
    if (folder / "ledger.sqlite").exists() and (not said or ("format" in said and "retriever" not in said)):
        raise InvalidSettings(
            f"{folder / FILE} is cut: it names no [[retriever]], and the memory beside it has one. Restore the file "
            f"from a backup, or name the encoders that the memory was made with"
        )
    return found


def required_allowances(settings: Settings, folder: Path) -> list[str]:
    """What such a memory must be allowed, for whoever opens it on behalf of somebody who may."""
    return [one.allowance for one in (*trust.links(folder), *needs(settings, folder))]


def needs(settings: Settings, folder: Path) -> list[trust.Need]:
    """What a memory with these settings reaches outside its folder."""
    return [*_reach(settings.components(), folder), *trust.models(folder)]


def _reach(components: Iterable[tuple[str, Options]], folder: Path) -> list[trust.Need]:
    return trust.needs((trust.Component(kind, kind, *name_and_options(one)) for kind, one in components), folder)


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


def write_new(folder: Path, settings: Settings) -> None:
    """Write the settings of a new memory, all at once; those of an existing one stay as they are."""
    if not (folder / FILE).exists():
        overwrite(folder, settings)


def overwrite(folder: Path, settings: Settings) -> None:
    """Write settings in place of those that were there, all at once. What is written here was said or allowed by the
    user: it is noted, so that opening the memory again takes no further word."""
    making = folder / f"evokey.{os.getpid()}.tmp"
    write_synced(making, to_toml(settings).encode())
    making.replace(folder / FILE)
    try:
        trust.record(folder, required_allowances(settings, folder))
    except OSError as error:
        log.warning("what %s may reach could not be noted (%s): open it with allow=[…] from now on", folder, error)
