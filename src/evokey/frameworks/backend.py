"""What stands behind a framework's interface: a memory, a layer beside a search, or a client of the service.

Their verbs have the same names, and differ in what they take: a memory and a client filter by `where`, a layer passes
its filters on to the search; a client is given its user when it is made; a layer knows verdicts on documents alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from evokey.checks import Graded
from evokey.client.client import Client
from evokey.errors import InvalidInput, UnknownDocument
from evokey.layer.layer import Layer
from evokey.loop.rating import find_origins
from evokey.memory import Memory
from evokey.types import Document, Hit, Lesson, Rating

PAGE = 500


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What was retrieved for a query, as far as a vote on it needs it."""

    query: str
    texts: Mapping[str, str]
    """What the reader was shown of each document, by id; best first."""
    query_id: str | None = None
    """Of the service."""

    def credit(self, answer: str) -> list[str]:
        """The documents that an answer was made from: for each of its sentences the one that has most of its words."""
        return find_origins(answer, self.texts)


@dataclass(frozen=True, slots=True)
class Backend:
    behind: Memory | Layer | Client

    def __post_init__(self) -> None:
        if not isinstance(self.behind, Memory | Layer | Client):
            raise InvalidInput(
                f"give a memory (evokey.open), a layer (evokey.beside) or a client (evokey.client.Client), not "
                f"{type(self.behind).__name__}"
            )

    # ---- searching

    def search(self, query: str, k: int, where: Mapping[str, Any] | None = None, vector: Any = None) -> list[Hit]:
        """The k best documents; of a query without a word, none."""
        if not query.strip() or k < 1:
            return []
        if isinstance(self.behind, Layer):
            return self.behind.search(query, k, **(where or {}))
        if isinstance(self.behind, Client):
            return self.behind.search(query, k, where or None)
        return self.behind.search(query, k, where or None, vector=vector)

    # ---- documents

    @property
    def stored(self) -> Memory | Client:
        """What holds documents."""
        if isinstance(self.behind, Layer):
            raise InvalidInput(
                "a layer beside a search holds no documents: add and delete them in the engine that it stands beside"
            )
        return self.behind

    def add(self, documents: Iterable[Document], vectors: Any = None) -> None:
        if vectors is None:
            self.stored.add(list(documents))
        elif isinstance(self.stored, Memory):
            self.stored.add(list(documents), vectors)
        else:
            raise InvalidInput("the service makes its own vectors: add documents without embeddings")

    def get(self, ids: Iterable[str]) -> list[Document]:
        """Those of the documents that are here, in this order."""
        found = []
        for id in dict.fromkeys(ids):
            with suppress(UnknownDocument):
                found.append(self.stored.get(id))
        return found

    def delete(self, ids: Iterable[str]) -> int:
        """Remove those of the documents that are here; how many."""
        known = [one.id for one in self.get(ids)]
        return self.stored.delete(known) if known else 0

    def documents(self, where: Mapping[str, Any] | None = None) -> Iterator[Document]:
        """All documents, or those that meet a filter, in the order they came."""
        if isinstance(self.stored, Client):
            if where:
                raise InvalidInput("the service lists documents without a filter; search with one, or use a memory")
            yield from (Document(**{**one, "sections": ()}) for one in self.stored.export())
            return
        after = 0
        while page := self.stored.documents(after, PAGE, where or None):
            yield from (document for _, document in page)
            after = page[-1][0]

    # ---- learning

    def teach(
        self, query: str, relevant: Graded = (), irrelevant: Iterable[str] = (), actor: str | None = None,
        vector: Any = None,
    ) -> Lesson:  # fmt: skip
        """Record a verdict on documents."""
        if isinstance(self.behind, Client):
            self._check_actor(actor)
            return self.behind.feedback(query, relevant, irrelevant)
        if isinstance(self.behind, Layer):
            return self.behind.feedback(query, relevant, irrelevant, actor)
        return self.behind.feedback(query, relevant, irrelevant, actor=actor, vector=vector)

    def rate(
        self, retrieved: Retrieved, up: bool, cited: Iterable[str], reason: str | None = None, actor: str | None = None
    ) -> Rating | None:
        """Record a vote on an answer: up credits what is cited; down asks people, and changes nothing by itself. A
        layer has no queue for people: there, a vote down is not kept."""
        credited = list(cited) if up else None
        if isinstance(self.behind, Layer):
            if credited:
                self.behind.feedback(retrieved.query, credited, actor=actor)
            return None
        if isinstance(self.behind, Client):
            self._check_actor(actor)
            query_id = retrieved.query_id or self.behind.search(retrieved.query, len(retrieved.texts)).query_id
            return None if query_id is None else self.behind.rate(query_id, up, reason, credited)
        shown = [Hit(id, 0.0, Document(id, text)) for id, text in retrieved.texts.items()]
        query_id = self.behind.show(retrieved.query, shown, actor=actor)
        return self.behind.rate(query_id, up, reason, credited, actor)

    def _check_actor(self, actor: str | None) -> None:
        if actor is not None:
            raise InvalidInput("a client teaches in the name of its user: Client(…, user=…), without actor")
