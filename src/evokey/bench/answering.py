"""Answers from what a system finds, measured against gold answers by the generation verifiers' own scores.

A judge grades each answer from 0 to 100 too: a language model, the one that answers unless another is named. It knows
the gold answer; how far its grades agree with overlap is a table of its own (calibration.py).

Every system's passages go to the same model with the same prompt; where two systems find the same passages in the same
order, the answer is the same, and not made twice.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evokey import registry
from evokey.bench.data import Dataset
from evokey.bench.protocols import Question
from evokey.bench.systems import System
from evokey.errors import LLMFailed, UnknownComponent
from evokey.generators.cited import Cited
from evokey.llm.cached import Cached
from evokey.protocols import LLM, Verifier
from evokey.types import Answer, Attempt, Hit
from evokey.verifiers.task_loss import Scoring

PASSAGES, MAX_TOKENS = 3, 40
SCORES: dict[str, dict[str, Any]] = {
    "token-f1": {"name": "token-f1"},
    "exact-match": {"name": "exact-match"},
    "rouge-l": {"name": "rouge"},
    "judge": {"name": "judge", "k": PASSAGES, "max_tokens": 256},
    "loss": {"name": "task-loss", "threshold": 0.0, "margin": None, "attribute": False, "k": PASSAGES},
}
"""Judge: from 0 to 100. Loss: of the model on the gold answer, with the passages in hand; lower is better."""
UNKNOWN = ("judge", "loss")
"""Scores that may be missing; elsewhere no answer is an answer that shares nothing with gold."""


def answerable(data: Dataset, questions: Sequence[Question]) -> list[Question]:
    """Those that have a gold answer."""
    return [one for one in questions if any(gold.strip() for gold in data.answers.get(one.id, ()))]


def answer(
    system: System, data: Dataset, questions: Sequence[Question], llm: LLM, scratch: Path, judge: LLM | None = None
) -> dict[str, Any]:
    """Each question with what was read, said and scored. judge: who grades, if not the model that answers."""
    reader = Cited(Cached(llm, scratch / "answers.sqlite"), passages=PASSAGES, max_tokens=MAX_TOKENS)
    grader = Cached(judge or llm, scratch / "grades.sqlite")
    verifiers = _verifiers(llm, grader)
    documents = {document.id: document for document in data.documents}
    rows = []
    for question in questions:
        ranking = system.rank(question, PASSAGES + len(question.excluded))
        read = [id for id in ranking if id not in question.excluded][:PASSAGES]
        hits = tuple(Hit(id, 1.0, documents[id]) for id in read)
        said = _say(reader, question.text, hits)
        attempt = Attempt(question.text, hits, replace(said, text=said.plain), data.answers[question.id])
        scores = {name: one.verify(attempt).score for name, one in verifiers.items()}
        right = len(question.right & set(read))
        rows.append(
            {"id": question.id, "read": read, "said": said.text, f"recall@{PASSAGES}": right / len(question.right),
             "some right": float(right > 0),
             **{name: 0.0 if score is None and name not in UNKNOWN else score for name, score in scores.items()}}
        )  # fmt: skip
    return {
        "model": llm.identity, "judge": grader.identity, "passages": PASSAGES, "rows": rows,
        "means": _means(rows, verifiers),
    }  # fmt: skip


def _say(reader: Cited, question: str, hits: tuple[Hit, ...]) -> Answer:
    try:
        return reader.answer(question, hits)
    except LLMFailed:
        return Answer(question, "", (), (), reader.identity)


def _verifiers(llm: LLM, judge: LLM) -> dict[str, Verifier]:
    """Those that can be had: a loss needs a model that tells it, ROUGE a package."""
    found = {}
    for name, described in SCORES.items():
        if name == "loss" and not isinstance(llm, Scoring):
            continue
        try:
            found[name] = registry.build("verifier", described, llm=judge if name == "judge" else llm)
        except UnknownComponent:
            continue
    return found


def _means(rows: Sequence[dict[str, Any]], verifiers: dict[str, Verifier]) -> dict[str, float | None]:
    names = [f"recall@{PASSAGES}", "some right", *verifiers]
    known = {name: [row[name] for row in rows if row[name] is not None] for name in names}
    return {name: statistics.fmean(values) if values else None for name, values in known.items()}
