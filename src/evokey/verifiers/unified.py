"""The paper's success: 1[V_r + V_g ≥ 1], of a retrieval and a generation verifier. Stricter forms by option.

| rule   | yes          | no                             | cannot tell                |
|--------|--------------|--------------------------------|----------------------------|
| either | one says yes | none says yes, at least one no | both abstain               |
| both   | both say yes | one says no                    | none says no, one abstains |

Two controls need more attempts, which the caller makes: `gain` wants success with the expansion and not without it
(the attempt of the plain query); `control` wants an answer that the model did not know anyway (an attempt without
documents): one that it knew says nothing about the documents, and only the retrieval verifier is heard.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from evokey.errors import InvalidSettings
from evokey.protocols import Verifier
from evokey.types import Attempt, Ruling
from evokey.verifiers.rulings import abstain, one_of


class Unified:
    name: ClassVar[str] = "unified"
    looks_at: ClassVar[Literal["both"]] = "both"

    def __init__(
        self,
        retrieval: Verifier,
        generation: Verifier,
        rule: Literal["either", "both"] = "either",
        *,
        gain: bool = False,
        control: bool = False,
    ) -> None:
        """gain, control: demand the attempt of that control; without it there is no success, but an abstention."""
        one_of(self.name, "rule", rule, ("either", "both"))
        for part, verifier in (("retrieval", retrieval), ("generation", generation)):
            if verifier.looks_at not in (part, "both"):
                raise InvalidSettings(
                    f"verifier 'unified': {verifier.identity} looks at {verifier.looks_at}, not at {part}"
                )
        self.retrieval, self.generation, self.rule = retrieval, generation, rule
        self.gain, self.control = gain, control
        demands = "".join(f"+{name}" for name, wanted in (("gain", gain), ("control", control)) if wanted)
        self.identity = f"unified/{rule}{demands}({retrieval.identity}, {generation.identity})"

    def verify(self, attempt: Attempt) -> Ruling:
        return self.verify_against(attempt, None, None)

    def verify_against(self, attempt: Attempt, plain: Attempt | None, closed_book: Attempt | None) -> Ruling:
        """The ruling under those controls whose attempts are given: plain is that of the query without its expansion,
        closed_book that of an answer without documents."""
        known = self.generation.verify(closed_book) if closed_book is not None else None
        ruling = self._both(attempt, known)
        if known is not None:
            ruling = replace(ruling, spent=ruling.spent + known.spent)
        if not ruling.success:
            return ruling
        if self.control and closed_book is None:
            return _unproven(ruling, None, "whether the answer was known without documents was not tried")
        if plain is None:
            return _unproven(ruling, None, "the plain query was not tried") if self.gain else ruling
        before = self._both(plain, known)
        ruling = replace(ruling, spent=ruling.spent + before.spent)
        if before.success is None:
            return _unproven(ruling, None, f"whether the plain query does as well cannot be told: {before.reason}")
        return _unproven(ruling, False, "the plain query does as well") if before.success else ruling

    def _both(self, attempt: Attempt, known: Ruling | None) -> Ruling:
        found, answered = self.retrieval.verify(attempt), self.generation.verify(attempt)
        if known is not None and known.success is not False and answered.success:
            why = "the model knew the answer" if known.success else f"what the model knew is unclear: {known.reason}"
            answered = abstain(why, answered.spent)
        success = _either(found, answered) if self.rule == "either" else _and(found, answered)
        grades = _merge(found, answered)
        if not success:
            grades = {id: grade for id, grade in grades.items() if grade < 0}
        reason = f"retrieval: {found.reason}; generation: {answered.reason}"
        return Ruling(success, None, grades, reason, found.spent + answered.spent)


def _either(one: Ruling, other: Ruling) -> bool | None:
    said = [ruling.success for ruling in (one, other) if ruling.success is not None]
    return any(said) if said else None


def _and(one: Ruling, other: Ruling) -> bool | None:
    said = (one.success, other.success)
    return False if False in said else None if None in said else True


def _merge(one: Ruling, other: Ruling) -> dict[str, float]:
    """Of two that agree on a document the stronger word; where they contradict each other, nothing is said."""
    grades: dict[str, float] = {}
    for id in {**one.grades, **other.grades}:
        said = [ruling.grades[id] for ruling in (one, other) if ruling.grades.get(id)]
        if said and min(said) * max(said) > 0:
            grades[id] = max(said, key=abs)
    return grades


def _unproven(ruling: Ruling, success: bool | None, reason: str) -> Ruling:
    """What is no success vouches for no document; what was wrong stays wrong."""
    wrong = {id: grade for id, grade in ruling.grades.items() if grade < 0}
    return replace(ruling, success=success, grades=wrong, reason=f"{reason} ({ruling.reason})")
