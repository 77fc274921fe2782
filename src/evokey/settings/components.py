"""Settings → the components of a memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evokey import registry
from evokey.encoders.earlier import options_of
from evokey.ledger.shared import Shared
from evokey.protocols import LLM, Generator, Space, Store, Verifier
from evokey.registry import OBJECT, Options
from evokey.search.retriever import DenseRetriever, GivenRetriever, LateRetriever, Retriever, SparseRetriever
from evokey.settings.values import RetrieverSettings, Settings, check_objects
from evokey.types import Attempt

HUMAN = "human.sqlite"
"""The queue of what people are asked."""
RETRIEVERS: dict[str, type[Retriever]] = {"dense": DenseRetriever, "multi": LateRetriever, "sparse": SparseRetriever}


def build(settings: Settings, kind: str, **around: Any) -> Any:
    """A component that a memory has once; None if it has none. around: what it may use (registry.build)."""
    described = getattr(settings, kind)
    return None if described is None else _build(settings, kind, described, **around)


def _build(settings: Settings, kind: str, described: Options, **around: Any) -> Any:
    if described["name"] != OBJECT:
        return registry.build(kind, described, **around)
    check_objects(settings, (kind,))
    return settings.objects[kind, str(described["class"])]


def build_retrievers(settings: Settings, folder: Path, database: Shared | None = None) -> list[Retriever]:
    """database: the one that the memory is in, if it is in one."""
    return [_build_retriever(settings, one, folder / "keys" / one.name, database) for one in settings.retrievers]


def build_encoder(settings: Settings, one: RetrieverSettings) -> Any:
    described = one.encoder if one.encoder["name"] == OBJECT else options_of(one.encoder, settings.format)
    return _build(settings, "encoder", {**described, "name": one.encoder["name"]})


def _build_retriever(settings: Settings, one: RetrieverSettings, folder: Path, database: Shared | None) -> Retriever:
    return assemble(settings, one, build_encoder(settings, one), folder, database)


def assemble(
    settings: Settings, one: RetrieverSettings, encoder: Any, folder: Path | None, database: Shared | None = None
) -> Retriever:
    """A retriever with this encoder, and its keys in this folder; in memory alone, without one."""
    keys, store = _build(settings, "keys", one.keys), _build_store(settings, one, Space(folder, encoder, database))
    kind = GivenRetriever if one.encoder["name"] == "given" else RETRIEVERS[encoder.kind]
    retriever = kind(one.name, encoder, keys, folder, store)
    if database is not None:
        retriever.keep_taught_in(database.encoded)
    return retriever


def describe_encoders(settings: Settings, retrievers: Sequence[Retriever]) -> list[tuple[Retriever, Options]]:
    """Retrievers whose encoder another process can make again and use, and what it is made of: not those that were
    tuned."""
    named = {one.name: one.encoder for one in settings.retrievers}
    plain = [one for one in retrievers if not one.revision and named[one.name]["name"] != OBJECT]
    local = [one for one in plain if one.cost != "money" and one.reads_text]
    return [(one, {**options_of(named[one.name], settings.format), "name": named[one.name]["name"]}) for one in local]


def _build_store(settings: Settings, one: RetrieverSettings, space: Space) -> Store:
    """Of a store, the object that is passed is its class: a store is made for one space."""
    assert one.store is not None, "the settings were checked"
    made = _build(settings, "store", one.store, space=space)
    store: Store = made(space) if one.store["name"] == OBJECT else made
    return store


def build_generator(settings: Settings, llm: LLM | None, *, closed: bool = False) -> Generator | None:
    """What answers; closed: from what the model knows, without documents."""
    if settings.generator["name"] == "cited" and llm is None:
        return None
    described = {**settings.generator, "closed_book": True} if closed else settings.generator
    made: Generator = _build(settings, "generator", described, llm=llm)
    return made


def choose_verifier(settings: Settings, attempt: Attempt, *, answering: bool) -> str:
    """The verifier that is set; else judgements where there are some, else gold answers, else a judge or a person."""
    if settings.verifier is not None:
        return str(settings.verifier["name"])
    if attempt.relevant is not None:
        return "labels"
    if attempt.expected:
        return "unified" if answering else "answer-match"
    return "judge" if answering else "human"


def build_verifier(settings: Settings, name: str, llm: LLM | None, folder: Path) -> Verifier:
    """What a person is asked waits in the memory's folder."""
    options = {} if settings.verifier is None else dict(settings.verifier)
    if name == "human":
        options = {"at": str(folder / HUMAN), **options}
    if name == "unified" and settings.verifier is None:
        options = {"retrieval": "answer-match", "generation": "token-f1"}
    made: Verifier = _build(settings, "verifier", {**options, "name": name}, llm=llm)
    return made
