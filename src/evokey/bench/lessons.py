"""Lessons that are not the set's judgements: some are mistaken, or they name only what somebody was shown."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from evokey.bench.measures import Rank
from evokey.bench.protocols import Question
from evokey.types import Document

NEAR = 20
"""A mistaken lesson names one of so many first hits, or any document."""


def add_noise(
    questions: Sequence[Question], rank: Rank, documents: Sequence[Document], share: float, seed: int
) -> list[Question]:
    """In a share of the questions, one wrong document replaces the right ones: one of the first hits, or any."""
    ids, found = [document.id for document in documents], []
    for question in questions:
        chance = random.Random(f"{seed} {question.id}")
        if chance.random() < share:
            candidates = rank(question, NEAR) if chance.random() < 0.5 else ids
            wrong = [id for id in candidates if id not in question.right] or ids
            question = replace(question, grades={chance.choice(wrong): 1.0})
        found.append(question)
    return found


def keep_shown(questions: Sequence[Question], rank: Rank, shown: int) -> list[Question]:
    """Only documents among the first hits are named; a question that finds none of its right documents teaches
    nothing."""
    found = []
    for question in questions:
        seen = set(rank(question, shown))
        limited = replace(question, grades={id: grade for id, grade in question.grades.items() if id in seen})
        found += [limited] if limited.right else []
    return found
