"""A language model grades the answer from 0 to 100, as BRIGHT has it, with the gold answer where there is one.

It is asked twice, the documents in reverse the second time, because models mind what comes first; if the two grades
fall on different sides of the threshold, that is an abstention. With fewer than two documents there is no other order,
and it is asked once. All it is shown is data: no text can close its tag, and two different scores in one verdict, such
as one quoted from a document, are none.
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from evokey.errors import ServiceFailed
from evokey.llm.prompts import load_packaged
from evokey.protocols import LLM
from evokey.types import Answer, Attempt, Completion, Hit, Ruling, Spent
from evokey.verifiers.rulings import abstain, check, count, credit_citations, first, number_passages, rule, whole

NOT_GIVEN = "(not given)"


class Judge:
    name: ClassVar[str] = "judge"
    looks_at: ClassVar[Literal["generation"]] = "generation"

    def __init__(
        self, llm: LLM, threshold: float = 50, *, k: int = 10, longest: int = 1500, max_tokens: int = 512
    ) -> None:
        """longest: characters of a document; an answer may have four times as many."""
        count(self.name, k=k, longest=longest, max_tokens=max_tokens)
        check(self.name, threshold=threshold)
        self.llm, self.threshold = llm, threshold
        self.k, self.longest, self.max_tokens = k, longest, max_tokens
        self.prompt = load_packaged(self.name, "verifiers")
        self.identity = f"judge/{threshold:g}/{llm.identity}/{self.prompt.hash[:12]}"

    def verify(self, attempt: Attempt) -> Ruling:
        if attempt.answer is None or not attempt.answer.text.strip():
            return abstain("nothing was answered")
        if not attempt.query.strip():
            return abstain("nothing was asked")
        hits = first(attempt.hits, self.k)
        spent, scores = Spent(), list[float]()
        for order in (hits, hits[::-1])[: min(len(hits), 2) or 1]:
            try:
                completion = self._ask(attempt, attempt.answer, order)
            except ServiceFailed as error:
                return abstain(f"{self.llm.identity} did not answer: {error}", spent)
            spent += completion.spent
            score = parse_grade(completion.text, finished=completion.finished)
            if score is None:
                return abstain(f"{self.llm.identity} gave no grade: {' '.join(completion.text.split())[:80]!r}", spent)
            scores.append(score)
        if len({score >= self.threshold for score in scores}) > 1:
            return abstain(f"{self.llm.identity} minds the order of the documents: {scores[0]:g}, {scores[1]:g}", spent)
        ruling = rule(sum(scores) / len(scores), self.threshold, "the grade")
        return credit_citations(Ruling(ruling.success, ruling.score, {}, ruling.reason, spent), attempt)

    def _ask(self, attempt: Attempt, answer: Answer, hits: list[Hit]) -> Completion:
        golds = [whole(gold)[: 4 * self.longest] for gold in attempt.expected if gold.strip()]
        messages = self.prompt.fill(
            query=whole(attempt.query)[: 4 * self.longest],
            answer=whole(answer.text)[: 4 * self.longest],
            gold="\nor: ".join(golds) or NOT_GIVEN,
            documents=number_passages(hits, self.longest) or NOT_GIVEN,
        )
        return self.llm.complete(messages, max_tokens=self.max_tokens, temperature=0.0)


_THOUGHT = re.compile(r"<\s*think(?:ing)?\s*>.*?(?:<\s*/\s*think(?:ing)?\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_NUMBER = r"([-−–]?\d{1,6}(?:\.\d{1,4})?)(?![\d.]*\d)(?:\s*(?:/|out of)\s*(\d{1,4}))?"
_IN_TAG = re.compile(rf"<\s*score\s*>[\s*`\"'\[(]*{_NUMBER}[^<>\d]{{0,20}}<\s*/\s*score\s*>", re.IGNORECASE)
_TAGGED = re.compile(r"<\s*score\s*>", re.IGNORECASE)
_LABELLED = re.compile(
    rf"\b(?:score|grade|rating|mark)\b[\"'*_`\])]{{0,4}}\s*(?:is|of|as|[:=])[\s\"'*_`\[(<]{{0,6}}{_NUMBER}"
    rf"(?!\s*(?:-|–|to)\s*\d)",
    re.IGNORECASE,
)
_ALONE = re.compile(rf"[\s*_`\"'\[(]*{_NUMBER}[\s*_`\"'\])%.]*")
_OUT_OF = re.compile(r"(?<![\d.,-])(\d{1,3}(?:\.\d{1,4})?)\s*(?:/|out of)\s*(100)\b", re.IGNORECASE)


def parse_grade(text: str, *, finished: bool = True) -> float | None:
    """The one grade from 0 to 100 in a model's verdict; None where it gives none, or two that differ. Of a verdict
    that was cut off, only a closed <score> counts: "8" may be the half of "85"."""
    text = _THOUGHT.sub(" ", text[-20_000:])
    tagged = _IN_TAG.findall(text)
    if tagged or not finished:
        return _one(tagged)
    text = _TAGGED.sub("score: ", text)
    alone = _ALONE.fullmatch(text)
    return _one(_LABELLED.findall(text) or _OUT_OF.findall(text) or ([alone.groups("")] if alone else []))


def _one(found: list[tuple[str, str]]) -> float | None:
    grades = {_scale(number, scale) for number, scale in found}
    return grades.pop() if len(grades) == 1 else None


def _scale(number: str, scale: str) -> float | None:
    """On the scale of 100. A share such as 0.85 may mean 85 or 0.85: it means nothing."""
    grade = float(number.replace("−", "-").replace("–", "-"))
    if scale:
        grade = grade * 100 / float(scale) if scale in ("5", "10", "100") else -1.0
    elif 0 < grade < 1:
        return None
    return grade if 0 <= grade <= 100 else None
