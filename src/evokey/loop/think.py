"""Think about a query: expand → search → answer → verify. Writes nothing: a background learner does it in a process of
its own, and remember.py makes a lesson of what was verified."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from evokey.errors import ExpansionFailed, ServiceFailed
from evokey.loop.components import Components
from evokey.protocols import Look, Verifier
from evokey.types import Answer, Attempt, Expansion, Hit, Passage, Ruling, Spent
from evokey.verifiers.unified import Unified

log = logging.getLogger("evokey")
SHOWN = 10
"""Hits that a verifier sees."""
READ = 5
"""Hits that a generator reads."""


@dataclass(frozen=True, slots=True)
class Thought:
    """What came of a query, before anything is remembered."""

    query: str
    expansion: Expansion | None
    hits: tuple[Hit, ...]
    answer: Answer | None
    ruling: Ruling
    by: str = ""
    """The verifier."""
    known: bool = False
    """Whether the expansion was known, and nothing paid for it."""
    trouble: str | None = None
    """What went wrong on the way, in words."""
    forgets: int = 0
    """How many forgets there had been when it began."""

    @property
    def spent(self) -> Spent:
        parts = [self.ruling.spent]
        parts += [self.answer.spent] if self.answer else []
        parts += [self.expansion.spent] if self.expansion and not self.known else []
        return sum(parts, Spent())

    @property
    def passages(self) -> dict[str, list[Passage]]:
        """The passages that the answer cites, by document."""
        found: dict[str, list[Passage]] = {}
        for one in self.answer.sources if self.answer else ():
            found.setdefault(one.document, []).append(one.passage)
        return found

    def credits(self, *, everything: bool) -> dict[str, float]:
        """Documents that the success is owed to: those the verifier named, else those the answer cites.

        With `everything` (the paper's rule), else all that were found.
        """
        if not self.ruling.success:
            return {}
        if any(grade > 0 for grade in self.ruling.grades.values()):
            return dict(self.ruling.grades)
        if self.answer is not None and self.answer.citations:
            return dict.fromkeys(self.answer.citations, 1.0)
        return dict.fromkeys((hit.id for hit in self.hits), 1.0) if everything else {}


@dataclass(frozen=True, slots=True)
class Steps:
    """What a query goes through."""

    components: Components
    search: Callable[..., list[Hit]]
    """(query, k, expansion=…)"""
    look: Look
    """What an expander reads."""

    def think(self, query: str, expected: Sequence[str] = (), relevant: Mapping[str, float] | None = None) -> Thought:
        """Everything up to the ruling. What fails on the way costs one warning, and the ruling abstains."""
        expanding, forgets = self.components.expanding(), self.components.forgets
        known = expanding.known(query)
        try:
            expansion = known or expanding.ask(query, self.look)
        except (ExpansionFailed, ServiceFailed) as error:
            return _fail(query, error, forgets)
        hits = tuple(self.search(query, SHOWN, expansion=expansion if expansion.units else None))
        attempt = Attempt(query, hits, None, tuple(expected), relevant)
        thought = Thought(query, expansion, hits, None, Ruling(None), known=known is not None, forgets=forgets)
        verifier = self.components.verifier(attempt)
        try:
            attempt = replace(attempt, answer=self._answer(attempt, verifier))
            thought = replace(thought, answer=attempt.answer, by=verifier.identity)
            return replace(thought, ruling=self._judge(attempt, verifier))
        except ServiceFailed as error:
            return replace(thought, ruling=Ruling(None, reason=str(error)), trouble=_warn(query, error))

    def _answer(self, attempt: Attempt, verifier: Verifier) -> Answer | None:
        if verifier.looks_at == "retrieval" or not attempt.hits:
            return None
        generator = self.components.generator
        return None if generator is None else generator.answer(attempt.query, attempt.hits[:READ])

    def _judge(self, attempt: Attempt, verifier: Verifier) -> Ruling:
        """With the further attempts that a verifier's controls ask for: without the expansion, without documents."""
        if not isinstance(verifier, Unified) or not (verifier.gain or verifier.control):
            return verifier.verify(attempt)
        plain = closed = None
        if verifier.gain:
            plain = replace(attempt, hits=tuple(self.search(attempt.query, SHOWN)), answer=None)
            plain = replace(plain, answer=self._answer(plain, verifier))
        generator = self.components.closed_generator if verifier.control else None
        if generator is not None:
            closed = replace(attempt, hits=(), answer=generator.answer(attempt.query, ()))
        ruling = verifier.verify_against(attempt, plain, closed)
        further = [one.answer.spent for one in (plain, closed) if one is not None and one.answer is not None]
        return replace(ruling, spent=sum(further, ruling.spent))


def _fail(query: str, error: Exception, forgets: int) -> Thought:
    ruling = Ruling(None, reason=str(error))
    return Thought(query, None, (), None, ruling, trouble=_warn(query, error), forgets=forgets)


def _warn(query: str, error: Exception) -> str:
    log.warning("nothing is learned from %r: %s", query[:60], str(error))
    return str(error)
