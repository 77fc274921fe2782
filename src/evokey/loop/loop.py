"""The loop: expand → search → answer → verify. What was verified becomes a lesson, and nothing else does.

Thinking reads, remembering writes: a background learner thinks in a process of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from evokey.errors import ExpansionFailed, ServiceFailed
from evokey.protocols import Generator, Verifier
from evokey.types import Answer, Attempt, Expansion, Hit, Ruling, Spent
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

    def credited(self, *, everything: bool) -> dict[str, float]:
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
class Loop:
    known: Callable[[str], Expansion | None]
    expand: Callable[[str], Expansion]
    search: Callable[..., list[Hit]]
    """(query, k, expansion=…)"""
    generator: Callable[[bool], Generator | None]
    """Made when it is first needed: a model may take seconds to load. True: one that answers from what it knows."""
    verifier: Callable[[Attempt], Verifier]
    """Who judges an attempt: that may depend on what is known to be right."""

    def think(self, query: str, expected: Sequence[str] = (), relevant: Mapping[str, float] | None = None) -> Thought:
        """Everything up to the ruling. What fails on the way costs one warning, and the ruling abstains."""
        known = self.known(query)
        try:
            expansion = known or self.expand(query)
        except (ExpansionFailed, ServiceFailed) as error:
            return self._failed(query, error)
        hits = tuple(self.search(query, SHOWN, expansion=expansion if expansion.units else None))
        attempt = Attempt(query, hits, None, tuple(expected), relevant)
        thought = Thought(query, expansion, hits, None, Ruling(None), known=known is not None)
        verifier = self.verifier(attempt)
        try:
            attempt = replace(attempt, answer=self._answer(attempt, verifier))
            thought = replace(thought, answer=attempt.answer, by=verifier.identity)
            return replace(thought, ruling=self._ruling(attempt, verifier))
        except ServiceFailed as error:
            return replace(thought, ruling=Ruling(None, reason=str(error)), trouble=_warned(query, error))

    def _answer(self, attempt: Attempt, verifier: Verifier) -> Answer | None:
        if verifier.looks_at == "retrieval" or not attempt.hits:
            return None
        generator = self.generator(False)
        return None if generator is None else generator.answer(attempt.query, attempt.hits[:READ])

    def _ruling(self, attempt: Attempt, verifier: Verifier) -> Ruling:
        """With the further attempts that a verifier's controls ask for: without the expansion, without documents."""
        if not isinstance(verifier, Unified) or not (verifier.gain or verifier.control):
            return verifier.verify(attempt)
        plain = closed = None
        if verifier.gain:
            plain = replace(attempt, hits=tuple(self.search(attempt.query, SHOWN)), answer=None)
            plain = replace(plain, answer=self._answer(plain, verifier))
        generator = self.generator(True) if verifier.control else None
        if generator is not None:
            closed = replace(attempt, hits=(), answer=generator.answer(attempt.query, ()))
        ruling = verifier.verify_against(attempt, plain, closed)
        further = [one.answer.spent for one in (plain, closed) if one is not None and one.answer is not None]
        return replace(ruling, spent=sum(further, ruling.spent))

    def _failed(self, query: str, error: Exception) -> Thought:
        return Thought(query, None, (), None, Ruling(None, reason=str(error)), trouble=_warned(query, error))


def _warned(query: str, error: Exception) -> str:
    log.warning("nothing is learned from %r: %s", query[:60], str(error))
    return str(error)
