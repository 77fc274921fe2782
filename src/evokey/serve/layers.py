"""A layer beside a search as a collection: the owner names the search in a file, never a request.

    [shop]                                # the collection; with --at, [default]
    search = "shop_search:search"         # module:function
    allowed = "shop_search:allowed"       # which ids exist, and may be seen with a filter
    encoder = ["bm25", "wordllama"]       # compare questions; only when the layer is made

Modules are looked for beside the file, too. A filter, of a request or of its key, reaches both functions as `where=`, a
value of evokey.filters. A function that has no `where` serves nobody who has a filter.
"""

from __future__ import annotations

import inspect
import logging
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, NoReturn

from evokey import checks
from evokey.errors import EvokeyError, InvalidInput, InvalidSettings, ServiceFailed, UnknownDocument
from evokey.filters import Where
from evokey.inspect.stats import OWNERS
from evokey.layer.layer import Layer
from evokey.layer.opening import beside
from evokey.types import (
    Document,
    EpochDiff,
    Explanation,
    Forgotten,
    Hit,
    Lesson,
    Stats,
)

log = logging.getLogger("evokey.serve")
OPTIONS = {"search", "allowed", "encoder"}
NO_DOCUMENTS = "this collection learns beside a search of your own, and has no documents of its own"


@dataclass(frozen=True, slots=True)
class Beside:
    """The search of a collection, as the owner's file names it."""

    search: str
    allowed: str | None = None
    encoder: tuple[Any, ...] | None = None


def read_layers(path: Path | None) -> dict[str, Beside]:
    """The collections of a file that are layers."""
    if path is None:
        return {}
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSettings(f"{path} cannot be read as TOML: {error}") from error
    return {name: _read(path, name, table) for name, table in tables.items()}


def _read(path: Path, name: str, table: Any) -> Beside:
    if not isinstance(table, dict) or set(table) - OPTIONS or not isinstance(table.get("search"), str):
        raise InvalidSettings(
            f'{path}: [{name}] needs search = "module:function", and may have allowed and encoder; '
            f"it has {sorted(table) if isinstance(table, dict) else table!r}"
        )
    encoder = table.get("encoder")
    names = None if encoder is None else tuple(encoder) if isinstance(encoder, list) else (encoder,)
    return Beside(table["search"], table.get("allowed"), names)


def open_layer(folder: Path, said: Beside, file: Path) -> LayerCollection:
    """The layer in a folder, made on first use."""
    search = _load(said.search, file)
    allowed = None if said.allowed is None else _load(said.allowed, file)
    takes = all("where" in _parameters(one) for one in (search, allowed) if one is not None)
    encoder = None if said.encoder is None else list(said.encoder)
    return LayerCollection(beside(search, folder, allowed=allowed, encoder=encoder), allowed, takes_filters=takes)


def _load(name: str, file: Path) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        found = attrgetter(attribute)(import_module(module))
    except Exception as error:
        raise InvalidSettings(
            f"{file}: {name!r} cannot be imported ({type(error).__name__}: {error}); name it as module:function"
        ) from error
    if not callable(found):
        raise InvalidSettings(f"{file}: {name!r} is no function")
    return found  # type: ignore[no-any-return]


def _parameters(function: Callable[..., Any]) -> set[str]:
    """Names that it can be called with; one that takes any keyword takes `where`."""
    found = inspect.signature(function).parameters.values()
    return {one.name for one in found} | {"where" for one in found if one.kind is one.VAR_KEYWORD}


class LayerCollection:
    """A layer with the verbs that routes call. What needs documents is refused."""

    def __init__(self, layer: Layer, allowed: Callable[..., Iterable[Any]] | None, *, takes_filters: bool) -> None:
        self.layer, self._allowed, self._takes_filters = layer, allowed, takes_filters
        self.ledger = layer.ledger
        self.show, self.keep_shown, self.shown = layer.show, layer.keep_shown, layer.shown
        self.rate, self.ratings, self.gaps = layer.rate, layer.ratings, layer.gaps
        self.click, self.clicks, self.reviews = layer.click, layer.clicks, layer.reviews
        self.lessons, self.hold, self.release = layer.lessons, layer.hold, layer.release
        self.epochs, self.protected_queries, self.delete = layer.epochs, layer.protected_queries, layer.delete
        self.evolve, self.rollback, self.close = layer.evolve, layer.rollback, layer.close

    @property
    def epoch(self) -> int:
        return self.layer.epoch

    @property
    def candidate(self) -> None:
        """A layer has none: it proposes and publishes in one step."""

    @property
    def last_lesson(self) -> int:
        return self.ledger.lessons.last

    # ---- answering

    def search(
        self,
        query: str,
        k: int = 10,
        where: Where | None = None,
        epoch: int | None = None,
        vector: Any = None,
        explore: int = 0,
        group: str = "document",
        fold: bool = False,
        operators: bool = False,
    ) -> list[Hit]:
        if vector is not None or explore or group != "document" or fold or operators:
            raise InvalidInput(f"{NO_DOCUMENTS}: it is searched by query, k, where, epoch and compare")
        if epoch is not None:
            checks.epoch(epoch, self.epoch)
        filters = self._filters(where)
        try:
            return self.layer.search(query, k, epoch=epoch, **filters)
        except EvokeyError:
            raise
        except Exception as error:  # whatever the search function raises, the service goes on
            log.error("the search beside a collection failed", exc_info=error)
            raise ServiceFailed("the search beside which this collection learns failed; try again later") from error

    def explain(self, id: str, query: str | None = None, *, where: Where | None = None) -> Explanation:
        self._check_owner(where, "explain")
        return self.layer.explain(id, query)

    def get(self, id: str, where: Where | None = None) -> Document:
        """A document as `allowed` tells of it."""
        filters = self._filters(where)
        found = self.layer.find_allowed([id], **filters).get(id)
        if found is None:
            raise UnknownDocument(f"the search beside this collection has no document {id[:80]!r}, or not for you")
        return found

    # ---- learning

    def feedback(
        self,
        query: str,
        relevant: checks.Graded = (),
        irrelevant: Iterable[str] = (),
        units: Sequence[str] | None = None,
        actor: str | None = None,
        vector: Any = None,
    ) -> Lesson:
        said = {"query": query, "relevant": relevant, "irrelevant": irrelevant, "units": units, "actor": actor}
        return self.feedback_many([{**said, "vector": vector}])[0]

    def feedback_many(self, lessons: Iterable[Mapping[str, Any]]) -> list[Lesson]:
        return self.layer.feedback_many([_without_keys(one) for one in lessons])

    def protect(self, query: str, relevant: checks.Graded) -> None:
        self.layer.protect(query, relevant)

    def forget(
        self, query: str | None = None, actor: str | None = None, document: str | None = None, traffic: bool = False
    ) -> Forgotten:
        """It keeps no sample of the traffic."""
        if traffic and query is actor is document is None:
            return Forgotten(0, True, None)
        return self.layer.forget(query, actor, document)

    def diff(self, a: int, b: int, where: Where | None = None) -> EpochDiff:
        self._check_owner(where, "compare epochs")
        for number in (a, b):
            checks.epoch(number, self.epoch)
        return self.layer.diff(a, b)

    def stats(self, where: Where | None = None) -> Stats:
        """For a caller with a filter: nothing of what others teach."""
        found = self.layer.stats()
        if where is None:
            return found
        return replace(found, documents=0, lessons=0, pending=0, held=0, set_aside=0, documents_touched=0, **OWNERS)

    # ---- what needs documents

    def add(self, documents: Any, vectors: Any = None) -> int:
        self._refuse("add them to the search")

    def documents(self, after: int = 0, count: int = 50, where: Where | None = None) -> list[tuple[int, Document]]:
        self._refuse("browse them where the search has them")

    def ask(self, query: str, k: int = 5, where: Where | None = None) -> Any:
        self._refuse("it searches, and writes no answers")

    def ask_stream(self, query: str, k: int = 5, where: Where | None = None) -> Any:
        self._refuse("it searches, and writes no answers")

    def learn(self, query: str, expected: Any = None, relevant: Any = None, actor: str | None = None) -> Any:
        self._refuse("teach it by feedback")

    def _refuse(self, way: str) -> NoReturn:
        raise InvalidSettings(f"{NO_DOCUMENTS}: {way}")

    def _filters(self, where: Where | None) -> dict[str, Any]:
        if where is None:
            return {}
        if not self._takes_filters:
            raise InvalidSettings("the search beside this collection takes no filter (its functions have no `where`)")
        return {"where": checks.filter(where)}

    def _check_owner(self, where: Where | None, what: str) -> None:
        if where is not None:
            raise InvalidSettings(f"{NO_DOCUMENTS}: a key with a filter cannot {what}")


def _without_keys(lesson: Mapping[str, Any]) -> dict[str, Any]:
    """A lesson as a layer takes it: it has no vectors and no units."""
    if lesson.get("units") or lesson.get("vector") is not None:
        raise InvalidInput(f"{NO_DOCUMENTS}: a lesson has a query, relevant and irrelevant ids, no units and no vector")
    return {name: value for name, value in lesson.items() if name not in ("units", "vector")}
