"""Why a document scores as it does: the texts behind its moved key, the nearest recall row, the words' shares."""

from __future__ import annotations

from typing import Any

import numpy as np

from evokey.overlay import Overlay
from evokey.retriever import Retriever
from evokey.stores.embedded import Block
from evokey.stores.sparse import SparseBlock, SparseQuestion
from evokey.types import Pull, Scores, Term, View

LONE = np.zeros(1, np.int64)


def moved(retriever: Retriever, number: int, overlay: Overlay) -> float:
    """How far a document's key has moved."""
    here = np.array([number])
    if retriever.store.rows.rows(here)[0] < 0:
        return 0.0
    return overlay.moved(number, retriever.store.take(here))


def view(retriever: Retriever, question: Any, number: int, overlay: Overlay) -> View:
    """One retriever's score of one document, taken apart."""
    here = np.array([number])
    base = float(retriever.store.scan(question).of(here)[0])
    distance = moved(retriever, number, overlay)
    texts, weights = overlay.taught(number)
    terms = _terms(retriever, question, number, overlay, weights) if np.isfinite(base) else []
    if not len(texts):
        return View(retriever.name, 0.0, base, base, "base key", None, [], terms)
    likeness = overlay.likeness(question)[texts]
    pulls: list[Pull] = []
    by, after = "base key", base
    if overlay.choice.step:
        norm = overlay.norm(number)
        amounts = overlay.choice.step * weights * likeness / norm
        pulls = [Pull(overlay.names[texts[at]], float(amounts[at])) for at in np.argsort(-amounts)]
        by, after = "moved key", base / norm + float(amounts.sum())
    if overlay.choice.handicap is None:
        return View(retriever.name, distance, base, after, by, None, pulls, terms)
    nearest = int(np.argmax(likeness))
    row = float(likeness[nearest]) - overlay.choice.handicap * question.self_similarity
    by = "recall row" if row > after else by
    return View(retriever.name, distance, base, max(after, row), by, overlay.names[texts[nearest]], pulls, terms)


def _terms(retriever: Retriever, question: Any, number: int, overlay: Overlay, weights: Scores) -> list[Term]:
    """What each word of the question adds to the base key's score, and to the moved key's."""
    if not isinstance(question, SparseQuestion):
        return []
    base: Block[Any] = retriever.store.take(np.array([number]))
    texts, _ = overlay.taught(number)
    found = []
    for word, weight in zip(question.terms, question.weights, strict=True):
        lone = question.only(word, weight)
        before = float(base.exact(lone, LONE)[0])
        learned = 0.0
        if overlay.choice.step and isinstance(overlay.texts, SparseBlock):
            learned = overlay.choice.step * float(weights @ overlay.texts.scores(lone)[texts])
        if before or learned:
            found.append(Term(word, before, before + learned))
    return sorted(found, key=lambda term: -term.after)
