"""The guarded policy with one of its parts taken away, and the paper's rule that credits right documents alone: what is
each part worth?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial

from evokey.evolution.attribution import Attribution
from evokey.evolution.crossfit import CrossFit
from evokey.evolution.evaluation import Evaluation
from evokey.evolution.grid import NOTHING
from evokey.evolution.guarded import Guarded
from evokey.evolution.judgements import Judgements
from evokey.evolution.pairs import Pairs
from evokey.evolution.paper import Paper
from evokey.evolution.plans import Plan
from evokey.evolution.policy import Log, Policy
from evokey.search.overlay import UNTAUGHT, Overlay
from evokey.search.retriever import Retriever, search
from evokey.types import Choice, Scores

RETRIEVED = 10
"""How many documents a query credits where it credits all it finds."""
STEP = 1.0


class CreditRetrieved(Guarded):
    """A verified query credits all it retrieves, right or wrong, as the paper's rule does."""

    def attribute(self, retriever: Retriever, lessons: Judgements) -> Attribution:
        found = {query: _retrieve(retriever, query) for query in lessons.queries}
        grades = {
            query: dict.fromkeys(numbers, 1.0)
            for query, numbers in found.items()
            if not lessons.grades[query].keys().isdisjoint(numbers)
        }
        return super().attribute(retriever, replace(lessons, grades=grades)) if grades else _nobody(retriever, lessons)


def _retrieve(retriever: Retriever, query: str) -> Sequence[int]:
    found: list[int] = search(retriever, retriever.lesson(query, {}), RETRIEVED, UNTAUGHT).numbers.tolist()
    return found


def _nobody(retriever: Retriever, lessons: Judgements) -> Attribution:
    """No query found any of its documents."""
    return Guarded().attribute(retriever, lessons).only(frozenset())


class CreditRight(Paper):
    """The paper's rule, where a verified query credits the right ones alone among the documents that it retrieved."""

    def overlay(self, retriever: Retriever, log: Log, choice: Choice) -> Overlay:
        right = log.taught.grades
        successes = [
            replace(one, retrieved=tuple(number for number in one.retrieved if number in right.get(one.query, ())))
            for one in log.successes
        ]
        return self.replay(retriever, [one for one in successes if one.retrieved], log.marks, choice)


class Unshrunk(Attribution):
    def shrinkage(self, mass: Scores) -> float:
        return 0.0


class UnitsAlone(Attribution):
    def text_weights(self, pairs: Pairs, units: float) -> Scores:
        return (units or 1.0) * pairs.shares


class NoShrinkage(Guarded):
    """A document seen once moves as far as one that many queries vouch for."""

    def attribute(self, retriever: Retriever, lessons: Judgements) -> Attribution:
        return _as(Unshrunk, super().attribute(retriever, lessons))


class FixedStep(Guarded):
    """Keys move by one step for all, not by one that was chosen."""

    def grid(self, units: bool) -> list[Choice]:
        return [choice for choice in super().grid(units) if choice.step in (0.0, STEP)]


class NoGuard(Guarded):
    """Nobody asks held-out queries: what is best for the taught ones is taken."""

    def options(self, fit: CrossFit) -> Sequence[Choice]:
        own = fit.taught.outcomes(fit.choices())
        return [max(own, key=lambda choice: float(own[choice].mean()))]

    def decide(self, known: Evaluation) -> Plan:
        taught = known.populations.taught
        return max(known.plans, key=lambda plan: float(taught[plan].mean()))


class NoRows(Guarded):
    """Moved keys alone."""

    penalties, few = (), ()

    def grid(self, units: bool) -> list[Choice]:
        return [NOTHING, *(replace(choice, penalty=None) for choice in super().grid(units) if choice.step)]


class NoWords(Guarded):
    """A word that no document has stays unknown."""

    def attribute(self, retriever: Retriever, lessons: Judgements) -> Attribution:
        found = super().attribute(retriever, lessons)
        return replace(found, words=[frozenset()] * len(found.texts))


class QueryOnly(Guarded):
    """Expansion units have no say."""

    def grid(self, units: bool) -> list[Choice]:
        return super().grid(False)


class UnitsOnly(Guarded):
    """Expansion units alone teach; the query itself has no say."""

    def attribute(self, retriever: Retriever, lessons: Judgements) -> Attribution:
        found = _as(UnitsAlone, super().attribute(retriever, lessons))
        return found.restrict(found.pairs.where(found.pairs.shares > 0), found.wrong)

    def grid(self, units: bool) -> list[Choice]:
        return [choice for choice in super().grid(units) if choice == NOTHING or choice.unit_weight]


def _as(kind: type[Attribution], found: Attribution) -> Attribution:
    return kind(**{one.name: getattr(found, one.name) for one in fields(found)})


ABLATIONS: dict[str, Callable[[], Policy]] = {
    "credit-retrieved": CreditRetrieved,
    "no-shrinkage": NoShrinkage,
    "fixed-step": FixedStep,
    "no-guard": NoGuard,
    "no-rows": NoRows,
    "no-words": NoWords,
    "no-negatives": partial(Guarded, negatives=False),
    "query-only": QueryOnly,
    "units-only": UnitsOnly,
    "paper-right": CreditRight,
}
NEEDS_UNITS = ("query-only", "units-only")
NEEDS_WRONG = ("no-negatives",)
