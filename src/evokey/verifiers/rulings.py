"""How a figure becomes a ruling: it reaches the threshold, it does not, or it cannot tell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evokey.errors import InvalidSettings
from evokey.passages.reading import excerpt
from evokey.types import Attempt, Hit, Ruling, Spent

NOTHING = Spent()


def abstain(reason: str, spent: Spent = NOTHING, grades: Mapping[str, float] | None = None) -> Ruling:
    """It cannot tell, for this reason."""
    return Ruling(None, None, grades or {}, reason, spent)


def rule(score: float, threshold: float, what: str, grades: Mapping[str, float] | None = None) -> Ruling:
    """Success is a score that reaches the threshold, but for rounding; NaN is none."""
    if math.isnan(score):
        return abstain(f"{what} is not a number", grades=grades)
    success = score >= threshold or math.isclose(score, threshold)
    side = "reaches" if success else "is below"
    return Ruling(success, score, grades or {}, f"{what} {score:.4g} {side} {threshold:g}")


def credit_citations(ruling: Ruling, attempt: Attempt) -> Ruling:
    """The same ruling, vouching for what the answer cites where the answer is right. A wrong answer tells nothing."""
    if not ruling.success or attempt.answer is None:
        return ruling
    shown = {hit.id for hit in (*attempt.hits, *attempt.answer.hits)}
    return replace(ruling, grades={id: 1.0 for id in attempt.answer.citations if id in shown})


def abstain_unanswered(attempt: Attempt) -> Ruling | None:
    """The abstention of those that compare an answer with gold ones, where one of the two is missing."""
    if attempt.answer is None:
        return abstain("nothing was answered")
    if not any(gold.strip() for gold in attempt.expected):
        return abstain("no expected answer is known")
    return None


def first(hits: Sequence[Hit], count: int) -> list[Hit]:
    """The best hits, each document once."""
    return list({hit.id: hit for hit in reversed(hits[:count])}.values())[::-1]


def whole(text: str) -> str:
    """A text that every file and model takes: halves of characters become "?"."""
    return text.encode("utf-8", "replace").decode()


def number_passages(hits: Sequence[Hit], longest: int) -> str:
    """Documents as a model reads them, numbered; of a long one its passage, and what stands around it."""
    read = [excerpt(hit, longest) for hit in hits]
    texts = [f"{one.title}\n{one.text}".strip()[:longest] for one in read]
    return whole("\n\n".join(f"[{number}] {text}" for number, text in enumerate(texts, 1)))


def check(name: str, **numbers: float | None) -> None:
    """Options that are numbers are finite ones; None stands for not said."""
    for option, number in numbers.items():
        if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
            raise InvalidSettings(f"verifier {name!r} needs a number for {option}, not {number!r}")
        if number is not None and not math.isfinite(number):
            raise InvalidSettings(f"verifier {name!r} needs a finite {option}, not {number}")


def count(name: str, **counts: int) -> None:
    for option, number in counts.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise InvalidSettings(f"verifier {name!r} needs {option} ≥ 1, not {number!r}")


def one_of(name: str, option: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise InvalidSettings(f"verifier {name!r} knows no {option} {value!r}; choose one of: {', '.join(known)}")
