"""Units that the caller supplies: an agent that has already thought about the query need not pay for another model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from evokey.errors import ExpansionFailed
from evokey.expanders.units import normal, tidy
from evokey.protocols import Look
from evokey.types import Expansion, Unit

Supplied = Iterable[str | Unit]


class Given:
    name: ClassVar[str] = "given"
    search: ClassVar[str] = "blend"
    needs: ClassVar[str] = ""

    def __init__(self, units: Mapping[str, Supplied] | None = None, *, most: int = 64, longest: int = 2_000) -> None:
        self.identity = self.name
        self._most, self._longest = most, longest
        self._known: dict[str, tuple[Unit, ...]] = {}
        for query, supplied in (units or {}).items():
            self.supply(query, supplied)

    def supply(self, query: str, units: Supplied) -> None:
        """The units of a query, in place of those it had."""
        self._known[normal(query)] = tuple(Unit(unit) if isinstance(unit, str) else unit for unit in units)

    def expand(self, query: str, look: Look) -> Expansion:
        if normal(query) not in self._known:
            raise ExpansionFailed(
                f"no units were given for {query[:60]!r}; supply them first: given.supply(query, units)"
            )
        kept = tidy(self._known[normal(query)], query, most=self._most, longest=self._longest)
        return Expansion(query, kept, self.name, self.search)
