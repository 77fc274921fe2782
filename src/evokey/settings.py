"""What a memory is made of: TOML ↔ Settings → components. Fixed when the memory is made, kept in its evokey.toml."""

from __future__ import annotations

import json
import logging
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evokey import registry, trust
from evokey.encoders.earlier import options_of
from evokey.errors import InvalidSettings, NewerFormat, NotAMemory
from evokey.evolution.policy import Policy
from evokey.protocols import LLM, Expander, Generator, Reranker, Verifier
from evokey.registry import Named as Named
from evokey.registry import named
from evokey.search.fusion import Fusion
from evokey.search.retriever import DenseRetriever, GivenRetriever, LateRetriever, Retriever, SparseRetriever
from evokey.stores.segments import write_synced
from evokey.types import Attempt

log = logging.getLogger("evokey")
FILE = "evokey.toml"
FORMAT = 2
HUMAN = "human.sqlite"
"""The queue of what people are asked."""
STORES = {"dense": "flat", "multi": "late", "sparse": "sparse"}
PARTS = ("expander", "fusion", "reranker", "llm", "generator", "verifier")
KNOWN = {*PARTS, "format", "policy", "retriever", "at", "policy_options", "traffic", "restricted"}
OWN_KEYS = frozenset({"encoder", "keys", "store", "keys_options"})
"""What a [[retriever]] says of itself; the rest are options of its encoder."""


@dataclass(frozen=True, slots=True)
class RetrieverSettings:
    encoder: str
    keys: str = "full"
    store: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the encoder."""
    keys_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    retrievers: tuple[RetrieverSettings, ...] = (RetrieverSettings("bm25"), RetrieverSettings("wordllama"))
    policy: str = "guarded"
    expander: Mapping[str, Any] = field(default_factory=lambda: {"name": "query"})
    policy_options: Mapping[str, Any] = field(default_factory=dict)
    fusion: Mapping[str, Any] = field(default_factory=lambda: {"name": "weighted"})
    reranker: Mapping[str, Any] | None = None
    llm: Mapping[str, Any] | None = None
    generator: Mapping[str, Any] = field(default_factory=lambda: {"name": "cited"})
    verifier: Mapping[str, Any] | None = None
    """None: by what is known of a query (see verifier_name)."""
    traffic: int = 512
    """How many of the queries that are searched are kept, to see what learning does to other questions; 0: none."""
    restricted: str | None = None
    """A field of the metadata: a document that has it, neither empty nor false, is restricted. What is taught about
    it stays its own (docs/permissions.md)."""
    format: int = field(default=FORMAT, compare=False)
    """Of a memory that is there: how it is made stays as it was then, where a later format makes it otherwise."""


def settings_of(
    encoder: Named | Sequence[Named] | None = None,
    keys: Named | None = None,
    store: str | None = None,
    policy: Named | None = None,
    expander: Named | None = None,
    fusion: Named | None = None,
    reranker: Named | None = None,
    llm: Named | None = None,
    generator: Named | None = None,
    verifier: Named | None = None,
    traffic: int | None = None,
    restricted: str | None = None,
) -> Settings:
    """Settings from the arguments of open; what is not said takes the default."""
    default = Settings()
    rule, options = named(policy or default.policy)
    builder, keys_options = named(keys or "full")
    retrievers = tuple(
        RetrieverSettings(name, builder, store or "", given, keys_options)
        for name, given in map(named, listed(encoder) or [one.encoder for one in default.retrievers])
    )
    said = {"expander": expander, "fusion": fusion, "reranker": reranker, "llm": llm}
    said |= {"generator": generator, "verifier": verifier}
    parts: dict[str, Any] = {part: spelled(one) for part, one in said.items() if one is not None}
    if traffic is not None:
        parts["traffic"] = traffic
    return checked(Settings(retrievers, rule, policy_options=options, restricted=restricted, **parts))


def listed(encoder: Named | Sequence[Named] | None) -> list[Named]:
    if encoder is None:
        return []
    return [encoder] if isinstance(encoder, str | Mapping) else list(encoder)


def spelled(component: Named) -> dict[str, Any]:
    """A component as a mapping, its name first."""
    name, options = named(component)
    return {"name": name, **options}


def checked(settings: Settings) -> Settings:
    """The same settings with every store named, or an error that says what is wrong."""
    if not settings.retrievers:
        raise InvalidSettings("a memory needs at least one encoder")
    registry.component("policy", settings.policy)
    if type(settings.traffic) is not int or settings.traffic < 0:
        raise InvalidSettings(f"traffic is how many searched queries are kept, 0 or more, not {settings.traffic!r}")
    _check_restricted(settings)
    for kind in PARTS:
        part = getattr(settings, kind)
        if part is not None:
            registry.component(kind, part["name"])
    names = [one.encoder for one in settings.retrievers]
    if len(set(names)) != len(names):
        raise InvalidSettings(f"each encoder may be named once, not {', '.join(names)}")
    return replace(settings, retrievers=tuple(_stored(one) for one in settings.retrievers))


def _check_restricted(settings: Settings) -> None:
    field = settings.restricted
    if field is None:
        return
    if not isinstance(field, str) or not field:
        raise InvalidSettings(f"restricted names a field of the metadata, such as 'access', not {field!r}")
    if settings.policy == "paper":
        raise InvalidSettings(
            "policy 'paper' credits all that was retrieved, restricted or not, so it cannot keep lessons on "
            "restricted documents apart; use policy 'guarded', or leave out restricted"
        )


def _stored(one: RetrieverSettings) -> RetrieverSettings:
    registry.component("keys", one.keys)
    fitting = STORES[registry.encoder_kind(one.encoder, one.options)]
    if one.store:
        registry.component("store", one.store)
    if one.store and one.store != fitting:
        raise InvalidSettings(f"encoder {one.encoder!r} needs store {fitting!r}, not {one.store!r}")
    return replace(one, store=fitting)


def resolved(path: Path, said: Mapping[str, Any], allow: Sequence[str] = ()) -> tuple[Path, Settings]:
    """The folder a path means, and the settings of the memory there: its own, or those of a new one.

    What files say reaches nothing outside the folder that is not allowed; what is said here is the user's own word.
    """
    folder = place(path)
    encoders = [("encoder", one) for one in listed(said.get("encoder"))]
    own = _reached([*encoders, *((part, said[part]) for part in PARTS if part in said)], folder)
    known = [*allow, *(one.allowance for one in own), *trust.allowed(folder)]
    if _describes(path):
        trust.check(trust.outside("at", folder, path.parent), known, path)
    described = read(path) if _describes(path) else None
    if described is not None and said:
        raise InvalidSettings(f"{path} already says how the memory is made; leave out {', '.join(said)}")
    file = folder / FILE
    if not file.exists():
        _refuse_foreign(folder)
        made = replace(described, format=FORMAT) if described else settings_of(**said)
        trust.check(needs(made, folder), known, path)
        return folder, made
    stored = trusted(folder, known)
    if described is not None and described != stored:
        raise InvalidSettings(f"{folder} was made with {told(stored)}; {path} now says {told(described)}. {OTHERWISE}")
    for name, value in said.items():
        if name == "restricted" and stored.restricted is None:
            raise InvalidSettings(
                f"{folder} was made without restricted documents. To set them apart from now on: close the memory "
                f"everywhere, write restricted = {json.dumps(value)} at the top of {file}, then run: evokey evolve"
            )
        if not _agrees(stored, name, value):
            raise InvalidSettings(f"{folder} was made with {told(stored)}, not with {name}={value!r}. {OTHERWISE}")
    return folder, stored


def trusted(folder: Path, allow: Sequence[str]) -> Settings:
    """The settings in a folder, once all that they and its files reach outside is allowed."""
    links = trust.links(folder)  # first: reading from a pipe would wait for good
    stored = whole(folder)
    trust.check([*links, *needs(stored, folder)], allow, folder)
    return stored


def whole(folder: Path) -> Settings:
    """The settings of a memory. Those that evokey wrote begin with the format and end with what the memory retrieves
    by: less beside a ledger was cut, and would be filled up with defaults."""
    try:
        found, said = read(folder / FILE), _toml_of(folder / FILE)
    except InvalidSettings as error:
        told = str(error).rstrip(".")
        raise type(error)(f"{told}. Correct the file, or restore it from a backup.") from error
    if (folder / "ledger.sqlite").exists() and (not said or ("format" in said and "retriever" not in said)):
        raise InvalidSettings(
            f"{folder / FILE} is cut: it names no [[retriever]], and the memory beside it has one. Restore the file "
            f"from a backup, or name the encoders that the memory was made with"
        )
    return found


def allowances(settings: Settings, folder: Path) -> list[str]:
    """What such a memory must be allowed, for whoever opens it on behalf of somebody who may."""
    return [one.allowance for one in (*trust.links(folder), *needs(settings, folder))]


def needs(settings: Settings, folder: Path) -> list[trust.Need]:
    """What a memory with these settings reaches outside its folder."""
    encoders = [("encoder", {"name": one.encoder, **one.options}) for one in settings.retrievers]
    return _reached([*encoders, *((part, getattr(settings, part)) for part in PARTS)], folder)


def _reached(parts: Sequence[tuple[str, Named | None]], folder: Path) -> list[trust.Need]:
    components = [trust.Component(kind, kind, *named(one)) for kind, one in parts if one is not None]
    return trust.needs(components, folder)


OTHERWISE = "Open it without settings, or make a new memory in another directory."
OWN = re.compile(
    r"ledger\.(commits|sum|sqlite(-wal|-shm|-journal)?)|writer\.(lock|json)|keys(\.lost)?|evokey\.\d+\.tmp"
)
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
    except OSError as error:  # a directory in its place, no right to read it, a disk that fails
        raise InvalidSettings(f"{path} cannot be read ({error.strerror}); it must be a file of settings") from error
    except RecursionError as error:
        raise InvalidSettings(f"{path} has lists or tables nested too deeply; make it flatter") from error
    except ValueError as error:  # no TOML, no UTF-8, or a number of too many digits
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
    if name == "keys":
        return all(value in (one.keys, {"name": one.keys, **one.keys_options}) for one in stored.retrievers)
    if name == "store":
        return all(one.store == value for one in stored.retrievers)
    if name in PARTS:
        made = getattr(stored, name)
        return made is not None and (value == made["name"] or spelled(value) == made)
    return bool(getattr(stored, name) == value)


def told(settings: Settings) -> str:
    parts = " + ".join(f"{one.encoder}/{one.keys}" for one in settings.retrievers)
    return f"{parts}, policy {settings.policy}, expander {settings.expander['name']}"


def kept(folder: Path, settings: Settings) -> None:
    """Write the settings of a new memory, all at once; those of an existing one stay as they are."""
    if not (folder / FILE).exists():
        replaced(folder, settings)


def replaced(folder: Path, settings: Settings) -> None:
    """Write settings in place of those that were there, all at once. What is written here was said or allowed by the
    user: it is noted, so that opening the memory again takes no further word."""
    making = folder / f"evokey.{os.getpid()}.tmp"
    write_synced(making, written(settings).encode())
    making.replace(folder / FILE)
    try:
        trust.record(folder, allowances(settings, folder))
    except OSError as error:
        log.warning("what %s may reach could not be noted (%s): open it with allow=[…] from now on", folder, error)


def retrievers(settings: Settings, folder: Path) -> list[Retriever]:
    return [_retriever(one, settings.format, folder / "keys" / one.encoder) for one in settings.retrievers]


def fusion(settings: Settings, retrievers: Sequence[Retriever]) -> Fusion:
    kinds = {one.name: one.kind for one in retrievers}
    made: Fusion = registry.build("fusion", settings.fusion, kinds=kinds)
    return made


def reranker(settings: Settings) -> Reranker | None:
    if settings.reranker is None:
        return None
    made: Reranker = registry.build("reranker", settings.reranker)
    return made


def llm(settings: Settings) -> LLM | None:
    return None if settings.llm is None else registry.build("llm", settings.llm)


def expander(settings: Settings, llm: Callable[[], LLM | None]) -> Expander:
    made: Expander = registry.build("expander", settings.expander, llm=llm())
    return made


def generator(settings: Settings, llm: LLM | None, *, closed: bool = False) -> Generator | None:
    """What answers; closed: from what the model knows, without documents."""
    if llm is None:
        return None
    more = {"closed_book": True} if closed else {}
    made: Generator = registry.build("generator", {**settings.generator, **more}, llm=llm)
    return made


def verifier_name(settings: Settings, attempt: Attempt, *, answering: bool) -> str:
    """The verifier that is set; else judgements where there are some, else gold answers, else a judge or a person."""
    if settings.verifier is not None:
        return str(settings.verifier["name"])
    if attempt.relevant is not None:
        return "labels"
    if attempt.expected:
        return "unified" if answering else "answer-match"
    return "judge" if answering else "human"


def verifier(settings: Settings, name: str, llm: LLM | None, folder: Path) -> Verifier:
    """What a person is asked waits in the memory's folder."""
    options = {} if settings.verifier is None else dict(settings.verifier)
    if name == "human":
        options = {"at": str(folder / HUMAN), **options}
    if name == "unified" and settings.verifier is None:
        options = {"retrieval": "answer-match", "generation": "token-f1"}
    made: Verifier = registry.build("verifier", {**options, "name": name}, llm=llm)
    return made


def policy(settings: Settings) -> Policy:
    made: Policy = registry.build("policy", {"name": settings.policy, **settings.policy_options})
    return made


def _retriever(one: RetrieverSettings, format: int, folder: Path) -> Retriever:
    named_so = {"name": one.encoder, **options_of({"name": one.encoder, **one.options}, format)}
    encoder = registry.build("encoder", named_so)
    keys = registry.build("keys", {"name": one.keys, **one.keys_options})
    if one.encoder == "given":
        return GivenRetriever(one.encoder, encoder, keys, folder)
    kinds = {"dense": DenseRetriever, "multi": LateRetriever, "sparse": SparseRetriever}
    made: Retriever = kinds[encoder.kind](one.encoder, encoder, keys, folder)
    return made


def read(path: Path) -> Settings:
    found = _toml_of(path)
    unknown = set(found) - KNOWN
    if unknown:
        raise InvalidSettings(
            f"{path} has unknown settings: {', '.join(sorted(unknown))}. Check their spelling, or remove them"
        )
    _check_format(path, found.get("format", FORMAT))
    default, tables = Settings(), found.get("retriever", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InvalidSettings(f"{path}: a retriever is written as [[retriever]], with double brackets")
    policy, options = named(_component(path, "policy", found.get("policy", default.policy)))
    return checked(
        Settings(
            tuple(_table(path, table) for table in tables) or default.retrievers,
            policy,
            policy_options={**found.get("policy_options", {}), **options},  # once they stood apart
            traffic=found.get("traffic", default.traffic),
            restricted=found.get("restricted"),
            format=found.get("format", FORMAT),
            **{part: _component(path, part, found[part]) for part in PARTS if part in found},
        )
    )


def _component(path: Path, name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, str | Mapping):
        raise InvalidSettings(f"{path}: {name} is a name, or a table with a name and options, not {value!r}")
    return spelled(value)


def _check_format(path: Path, number: Any) -> None:
    if not isinstance(number, int):
        raise InvalidSettings(f"{path}: format must be a whole number, not {number!r}")
    if number < 1:
        raise InvalidSettings(f"{path}: formats begin at 1, not {number}")
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
    keys_options = table.get("keys_options", {})
    if not isinstance(keys_options, Mapping):
        raise InvalidSettings(f"{path}: keys_options must be a table, not {keys_options!r}")
    options = {key: value for key, value in table.items() if key not in OWN_KEYS}
    return RetrieverSettings(name, **said, options={**inner, **options}, keys_options=keys_options)


def written(settings: Settings) -> str:
    default = Settings()
    options = settings.policy_options
    top: dict[str, Any] = {
        "format": settings.format, "policy": {"name": settings.policy, **options} if options else settings.policy
    }  # fmt: skip
    for part in PARTS:
        said = getattr(settings, part)
        if said != getattr(default, part) or part == "expander":
            top[part] = said["name"] if len(said) == 1 else said
    if settings.traffic != default.traffic:
        top["traffic"] = settings.traffic
    top["restricted"] = settings.restricted
    lines = _lines(top)
    for one in settings.retrievers:
        # Options stand beside the encoder's name, or with it where their names would clash.
        clash = not OWN_KEYS.isdisjoint(one.options)
        encoder, beside = ({"name": one.encoder, **one.options}, {}) if clash else (one.encoder, one.options)
        more = {"keys_options": one.keys_options} if one.keys_options else {}
        table = {"encoder": encoder, "keys": one.keys, "store": one.store, **more, **beside}
        lines += ["", "[[retriever]]", *_lines(table)]
    return "\n".join(lines) + "\n"


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
