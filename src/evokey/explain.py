"""Why a document scores as it does: the taught texts behind its moved key, and the recall row that came closest."""

from __future__ import annotations

from typing import Any

import numpy as np

from evokey.overlay import Overlay
from evokey.retriever import Retriever
from evokey.types import Pull, View


def view(retriever: Retriever, question: Any, number: int, overlay: Overlay) -> View:
    """One retriever's score of one document, taken apart."""
    base = float(retriever.store.scan(question).of(np.array([number]))[0])
    texts, weights = overlay.taught(number)
    if not len(texts):
        return View(retriever.name, base, base, "base key", None, [])
    likeness = overlay.likeness(question)[texts]
    pulls: list[Pull] = []
    moved, by = base, "base key"
    if overlay.choice.step:
        norm = overlay.norm(number)
        amounts = overlay.choice.step * weights * likeness / norm
        pulls = [Pull(overlay.names[texts[at]], float(amounts[at])) for at in np.argsort(-amounts)]
        moved, by = base / norm + float(amounts.sum()), "moved key"
    if overlay.choice.handicap is None:
        return View(retriever.name, base, moved, by, None, pulls)
    nearest = int(np.argmax(likeness))
    row = float(likeness[nearest]) - overlay.choice.handicap * question.self_similarity
    name = overlay.names[texts[nearest]]
    return View(retriever.name, base, max(moved, row), "recall row" if row > moved else by, name, pulls)
