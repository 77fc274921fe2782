"""Pay once per intent: a query that asks what an earlier one asked takes over its expansion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from evokey.ledger.expansions import Bill, Expansions
from evokey.loop.novelty import Novelty
from evokey.protocols import Expander, Look
from evokey.types import Expansion, Spent


class Expanding:
    """Expands queries for a memory. What a model was paid for is kept; what is known is not asked again."""

    def __init__(
        self,
        expander: Callable[[], Expander],
        kept: Expansions,
        right: Callable[[str], set[str]],
        now: Callable[[], float],
    ) -> None:
        """right: the documents (ids) that were verified right for a query."""
        self._make, self._kept, self._right, self._now = expander, kept, right, now
        self._made: Expander | None = None
        self._novelty, self._known = Novelty(), list[str]()
        """The queries that were expanded: another process may expand some too, or forget some."""

    @property
    def expander(self) -> Expander:
        """Made when it is first asked: a model may take seconds to load."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def known(self, query: str) -> Expansion | None:
        """The expansion of a query, or of an earlier one with the same intent."""
        found = self._kept.get(query, self.expander.identity)
        if found is not None:
            return found
        match = self._familiar().known(query)
        earlier = None if match is None else self._kept.get(match.query, self.expander.identity)
        return None if earlier is None else replace(earlier, query=query, like=earlier.query)

    def ask(self, query: str, look: Look) -> Expansion:
        return self.expander.expand(query, look)

    def keep(self, expansion: Expansion, *, asked: bool) -> None:
        """Keep what was paid for, and count it. Expansions without a model cost nothing and follow the documents."""
        if expansion.model is None:
            return
        self._kept.put(expansion, self.expander.identity, self._now())
        self._kept.count(expansion.spent if asked else Spent(), saved=0 if asked else 1)

    def check_intent(self, query: str, right: Sequence[str]) -> None:
        """What was verified tells whether an intent was really known: if not, the query gets its own expansion."""
        like = self._kept.alike(query)
        if like is None or not right:
            return
        before = self._right(like)
        if before and not before & set(right):
            self._kept.count(false_hits=1)
            self._kept.drop(query)

    def bill(self) -> Bill:
        return self._kept.bill()

    def _familiar(self) -> Novelty:
        queries = self._kept.queries(self.expander.identity)
        if queries != self._known:
            forgotten = not set(self._known) <= set(queries)
            fresh = Novelty(self._novelty.encoder) if forgotten or not self._known else self._novelty
            fresh.add_many(queries)
            self._novelty, self._known = fresh, queries
        return self._novelty
