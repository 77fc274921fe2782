"""Whether a query's intent is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Match:
    query: str


class Novelty:
    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    @property
    def queries(self) -> list[str]:
        return list(self._known.values())

    def known(self, query: str) -> Match | None:
        found = self._known.get(" ".join(query.lower().split()))
        return None if found is None else Match(found)

    def add(self, query: str) -> None:
        self._known[" ".join(query.lower().split())] = query

    def add_many(self, queries: Iterable[str]) -> None:
        for query in queries:
            self.add(query)
