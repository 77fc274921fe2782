"""Settings as values. A component is a mapping with its name and options; an object that was passed is noted by its
class, and lies beside the settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evokey import registry
from evokey.errors import InvalidSettings
from evokey.registry import OBJECT, Described, Options, name_and_options

FORMAT = 2
PARTS = ("policy", "expander", "fusion", "reranker", "llm", "generator", "verifier")
"""Components that a memory has once, or not at all."""
PLAIN = ("traffic", "restricted", "shared_feedback", "beside")
"""What is no component."""
KEYING = ("encoder", "keys", "store")
"""Components of each retriever."""
ENCODERS = ("bm25", "wordllama")
KEYS = "auto"
"""Of a new memory. A file that describes one and names no keys means "full", as it always did."""


def _by_name(name: str) -> Callable[[], Options]:
    return lambda: {"name": name}


@dataclass(frozen=True, slots=True)
class RetrieverSettings:
    encoder: Options
    keys: Options = field(default_factory=_by_name("full"))
    store: Options | None = None
    """None: evokey's own store of the encoder's kind."""

    @property
    def name(self) -> str:
        """Of the retriever and of the folder with its keys: what the encoder is called, in characters of file names."""
        name, options = name_and_options(self.encoder)
        return re.sub(r"[^\w.+-]|^\.", "-", str(options["class"]) if name == OBJECT else name)


@dataclass(frozen=True, slots=True)
class Settings:
    retrievers: tuple[RetrieverSettings, ...] = tuple(RetrieverSettings({"name": name}) for name in ENCODERS)
    policy: Options = field(default_factory=_by_name("guarded"))
    expander: Options = field(default_factory=_by_name("query"))
    fusion: Options = field(default_factory=_by_name("weighted"))
    reranker: Options | None = None
    llm: Options | None = None
    generator: Options = field(default_factory=_by_name("cited"))
    verifier: Options | None = None
    """None: by what is known of a query (see choose_verifier)."""
    traffic: int = 512
    """How many of the queries that are searched are kept, to see what learning does to other questions; 0: none."""
    restricted: str | None = None
    """A field of the metadata: a document that has it, neither empty nor false, is restricted. What is taught about
    it stays its own (docs/permissions.md)."""
    shared_feedback: bool = False
    """Whether feedback without an actor comes from many people: then no more trust is put in it than in a named actor
    (docs/voices.md)."""
    beside: bool = False
    """Whether it is a layer beside a search that is not ours: lessons, and no documents (docs/beside.md). Its encoders
    compare questions."""
    format: int = field(default=FORMAT, compare=False)
    """Of a memory that is there: how it is made stays as it was then, where a later format makes it otherwise."""
    objects: Mapping[tuple[str, str], Any] = field(default_factory=dict, compare=False, repr=False)
    """Components that were passed as objects, by kind and class."""

    def components(self) -> list[tuple[str, Options]]:
        """All of them, with their kinds."""
        of_retrievers = [(kind, getattr(one, kind)) for one in self.retrievers for kind in KEYING]
        return [(kind, one) for kind, one in (*of_retrievers, *((part, getattr(self, part)) for part in PARTS)) if one]


def settings_of(**said: Any) -> Settings:
    """Settings from the arguments of open; what is not said takes the default."""
    encoders = list_encoders(said.get("encoder")) or list(ENCODERS)
    keys, store = spell("keys", said.get("keys") or KEYS), said.get("store")
    retrievers = [RetrieverSettings(spell("encoder", one), keys) for one in encoders]
    objects = collect_objects({**said, "encoder": encoders})
    if store is not None:
        retrievers = _place_store(retrievers, spell("store", store), objects)
    parts: dict[str, Any] = {part: spell(part, said[part]) for part in PARTS if said.get(part) is not None}
    plain = {name: said[name] for name in PLAIN if said.get(name) is not None}
    return check(Settings(tuple(retrievers), objects=objects, **parts, **plain), trusted=True)


def _place_store(
    retrievers: Sequence[RetrieverSettings], store: Options, objects: Mapping[tuple[str, str], Any]
) -> list[RetrieverSettings]:
    """A store holds the keys of the retrievers whose kind it takes; if it takes none, check says so."""
    takes = [encoder_kind(one.encoder, objects) in store_kinds(store, objects) for one in retrievers]
    return [
        replace(one, store=store) if fits or not any(takes) else one
        for one, fits in zip(retrievers, takes, strict=True)
    ]


def list_encoders(encoder: Described | Sequence[Described] | None) -> list[Described]:
    if encoder is None:
        return []
    return list(encoder) if isinstance(encoder, list | tuple) else [encoder]


def spell(kind: str, described: Described) -> Options:
    """A component as a mapping, its name first; of an object, its class, and an encoder's identity."""
    if isinstance(described, str | Mapping):
        name, options = name_and_options(described)
        return {"name": name, **options}
    made = registry.check_object(kind, described)
    source = made if kind == "store" else type(made)
    noted = {"name": OBJECT, "class": f"{source.__module__}.{source.__qualname__}"}
    return {**noted, "identity": made.identity} if kind == "encoder" else noted


def collect_objects(said: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """The objects among the arguments of open, as Settings has them."""
    given = [("encoder", one) for one in list_encoders(said.get("encoder"))]
    given += [(kind, said[kind]) for kind in ("keys", "store", *PARTS) if said.get(kind) is not None]
    return {(kind, spell(kind, one)["class"]): one for kind, one in given if not isinstance(one, str | Mapping)}


def change(settings: Settings, **parts: Described) -> Settings:
    """The same settings with other components; None: without."""
    changed: dict[str, Any] = {kind: one and spell(kind, one) for kind, one in parts.items()}
    changed["objects"] = {**settings.objects, **collect_objects(parts)}
    return check(replace(settings, **changed), trusted=True)


def check_objects(settings: Settings, kinds: Sequence[str] = (*KEYING, *PARTS)) -> None:
    """Raise unless the components that were passed as objects when the memory was made are here again."""
    missing = {
        kind: str(one["class"])
        for kind, one in settings.components()
        if kind in kinds and one["name"] == OBJECT and (kind, one["class"]) not in settings.objects
    }
    if missing:
        made = ", ".join(f"{kind} ({label})" for kind, label in missing.items())
        again = ", ".join(f"{kind}=…" for kind in missing)
        raise InvalidSettings(
            f"this memory was made with objects, which its settings cannot build: {made}. Pass such objects again from "
            f"Python: evokey.open(…, {again})"
        )


def check(settings: Settings, *, trusted: bool = False) -> Settings:
    """The same settings with every store named, or an error that says what is wrong.

    Code that the settings name by its place is imported only where it is trusted: until then, what depends on it is
    left open.
    """
    if not settings.retrievers:
        raise InvalidSettings("a memory needs at least one encoder")
    if type(settings.traffic) is not int or settings.traffic < 0:
        raise InvalidSettings(f"traffic is how many searched queries are kept, 0 or more, not {settings.traffic!r}")
    if type(settings.shared_feedback) is not bool:
        raise InvalidSettings(f"shared_feedback is true or false, not {settings.shared_feedback!r}")
    if type(settings.beside) is not bool:
        raise InvalidSettings(f"beside is true or false, not {settings.beside!r}")
    for kind, one in settings.components():
        if one["name"] != OBJECT:
            registry.component(kind, one["name"])
    names = [one.name for one in settings.retrievers]
    if len(set(names)) != len(names):
        raise InvalidSettings(f"each encoder may be named once, not {', '.join(names)}")
    _check_restricted(settings, trusted)
    return replace(settings, retrievers=tuple(_fit_store(one, settings, trusted) for one in settings.retrievers))


def _check_restricted(settings: Settings, trusted: bool) -> None:
    field = settings.restricted
    if field is None:
        return
    if not isinstance(field, str) or not field:
        raise InvalidSettings(f"restricted names a field of the metadata, such as 'access', not {field!r}")
    policy = settings.policy
    if _may_look_at("policy", policy, settings, trusted) and _of_class("policy", policy, settings, "credits_retrieved"):
        raise InvalidSettings(
            f"policy {policy['name']!r} credits all that was retrieved, restricted or not, so it cannot keep lessons "
            "on restricted documents apart; use policy 'guarded', or leave out restricted"
        )


def _fit_store(one: RetrieverSettings, settings: Settings, trusted: bool) -> RetrieverSettings:
    """The retriever with a store that takes keys of its encoder's kind."""
    if not _may_look_at("encoder", one.encoder, settings, trusted):
        return one
    kind = encoder_kind(one.encoder, settings.objects)
    fitting = next(name for name in registry.COMPONENTS["store"] if kind in registry.load("store", name).kinds)
    if one.store is None:
        return replace(one, store={"name": fitting})
    if _may_look_at("store", one.store, settings, trusted) and kind not in store_kinds(one.store, settings.objects):
        raise InvalidSettings(f"encoder {one.name!r} needs store {fitting!r}, not {one.store['name']!r}")
    return one


def _may_look_at(kind: str, one: Options, settings: Settings, trusted: bool) -> bool:
    """Whether the class of a component may be looked at, or the object is there."""
    if one["name"] == OBJECT:
        return (kind, str(one["class"])) in settings.objects
    inside = one.get(kind)  # an encoder around another
    if isinstance(inside, str | Mapping) and not _may_look_at(kind, spell(kind, inside), settings, trusted):
        return False
    return trusted or bool(registry.component(kind, one["name"]).package)


def _of_class(kind: str, one: Options, settings: Settings, attribute: str) -> Any:
    source = settings.objects.get((kind, str(one.get("class")))) if one["name"] == OBJECT else None
    return getattr(source or registry.load(kind, one["name"]), attribute, None)


def encoder_kind(one: Options, objects: Mapping[tuple[str, str], Any]) -> str:
    name, options = name_and_options(one)
    return str(objects["encoder", options["class"]].kind) if name == OBJECT else registry.encoder_kind(name, options)


def store_kinds(one: Options, objects: Mapping[tuple[str, str], Any]) -> frozenset[str]:
    name, options = name_and_options(one)
    kinds: frozenset[str] = (
        objects["store", options["class"]].kinds if name == OBJECT else registry.load("store", name).kinds
    )
    return kinds
