"""What the engine returned for the taught questions: kept in the ledger, so that evolve asks it nothing.

The ledger knows documents by number. A document of an engine is a row with an id and no text; beside it stands the hash
of the text that was taught, where the engine gave one.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from evokey.errors import InvalidResults, ServiceFailed
from evokey.layer.engine import DEPTH, Engine
from evokey.layer.learned import content
from evokey.ledger.ledger import Ledger
from evokey.ledger.pools import Pool
from evokey.types import Document, Hit, Numbers, Ranking

log = logging.getLogger("evokey")
NAME = "engine"
"""What the pools are stored under."""
CONTENT = "content"
"""The name of a text's hash among the metadata of its row."""
RECENT = 100
"""Searches whose results are remembered, for the feedback that may follow."""


class PoolEntry(NamedTuple):
    """A result of the engine, as far as it is kept."""

    id: str
    score: float
    content: str
    """The hash of its text; empty where that is not known."""


Filters = Mapping[str, Any]


class Recent(NamedTuple):
    """What a search returned lately."""

    filters: Filters
    hits: Sequence[Hit]
    whole: bool
    """Whether the engine was asked for as many results as a pool has."""


@dataclass
class EnginePools:
    engine: Engine
    ledger: Ledger
    _recent: OrderedDict[str, Recent] = field(default_factory=OrderedDict, init=False)
    _noting: threading.Lock = field(default_factory=threading.Lock, init=False)

    def note(self, query: str, filters: Filters, hits: Sequence[Hit], *, whole: bool) -> None:
        """A search returned this: if feedback follows, the engine need not be asked again."""
        with self._noting:
            self._recent[query] = Recent(filters, hits, whole)
            self._recent.move_to_end(query)
            while len(self._recent) > RECENT:
                self._recent.popitem(last=False)

    def recall(self, query: str) -> list[PoolEntry] | None:
        """The pool of a question that was searched lately; None: the engine must be asked."""
        known = self._recent.get(query)
        return _entries(known.hits) if known is not None and known.whole else None

    def recall_documents(self, query: str) -> dict[str, Document]:
        """The documents that a question found lately, by id."""
        known = self._recent.get(query)
        return {} if known is None else {hit.id: hit.document for hit in known.hits}

    def remember(self) -> None:
        """Lessons are gone: what is remembered of recent searches may be of their questions."""
        with self._noting:
            self._recent.clear()

    def catch_up(self) -> None:
        """Nothing is read ahead."""

    def take(self, asked: Sequence[tuple[str, Filters]]) -> list[list[PoolEntry] | None]:
        """The engine's results for some questions; None from where it fails: evolve asks for these."""
        found: list[list[PoolEntry] | None] = []
        works = self.engine.search is not None
        for query, filters in asked:
            known = self._recent.get(query)
            if known is not None and known.whole and known.filters == filters:
                found.append(_entries(known.hits))
                continue
            found.append(self._ask(query, filters) if works else None)
            works = works and found[-1] is not None
        return found

    def _ask(self, query: str, filters: Filters) -> list[PoolEntry] | None:
        try:
            return _entries(self.engine.ask(query, DEPTH, filters))
        except InvalidResults:
            raise
        except Exception as error:  # noqa: BLE001  (whatever it raises, the lesson must not be lost)
            log.warning("the search function failed (%s); evolve will ask it again for what was taught", error)
            return None

    def put(self, pools: Mapping[str, Sequence[PoolEntry]]) -> None:
        numbers = self.number([hit.id for hits in pools.values() for hit in hits])
        made = {}
        for query, hits in pools.items():
            ids, scores = [numbers[hit.id] for hit in hits], [hit.score for hit in hits]
            made[query] = Pool(Ranking(np.array(ids, np.int64), np.array(scores, np.float64)), 0, 0)
        self.ledger.pools.put(NAME, made)

    def number(self, ids: Sequence[str]) -> dict[str, int]:
        """Numbers of documents; those that are new get one."""
        found = self.ledger.documents.find(ids)
        new = [Document(id, "") for id in dict.fromkeys(ids) if id not in found]
        if new:
            entries, _ = self.ledger.documents.put(new, None)
            found |= {entry.document.id: entry.number for entry in entries}
        return found

    def note_texts(self, hits: Sequence[PoolEntry], ids: Iterable[str]) -> None:
        """Documents were judged: their texts as they are now are those that lessons are about."""
        texts = {hit.id: hit.content for hit in hits if hit.content}
        known = [Document(id, "", metadata={CONTENT: texts[id]}) for id in ids if id in texts]
        self.ledger.documents.put(known, None)

    def find(self, queries: Sequence[str]) -> dict[str, Ranking]:
        """Of those questions for which the engine's results are kept: the engine is not asked."""
        stored, live = self.ledger.pools.get(NAME), self.ledger.documents.live()
        return {query: _only(stored[query].ranking, live) for query in queries if query in stored}

    def fetch(self, queries: Sequence[str]) -> Iterator[tuple[str, list[PoolEntry]]]:
        """Ask the engine: each question with its results."""
        for at, query in enumerate(queries):
            try:
                hits = self.engine.ask(query, DEPTH, {})
            except Exception as error:
                raise ServiceFailed(
                    f"evolve needs the engine's results for {len(queries) - at} questions, and the search function "
                    f"failed ({type(error).__name__}: {error}). No lesson is lost; run evolve again when it answers"
                ) from error
            yield query, _entries(hits)


def _only(ranking: Ranking, live: Numbers) -> Ranking:
    """Without documents that were deleted."""
    there = np.isin(ranking.numbers, live)
    return Ranking(ranking.numbers[there], ranking.scores[there])


def _entries(hits: Sequence[Hit]) -> list[PoolEntry]:
    return [PoolEntry(hit.id, hit.score, content(hit.document)) for hit in hits[:DEPTH]]
