"""What was learned is scored to the same bits from the base rows that an overlay keeps, and from a store's own scan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conftest import Opener

import evokey
from evokey import Choice
from evokey.evolution.attribution import attribute
from evokey.scoring import compiled

CHOICES = {
    "nothing": Choice(),
    "recalled": Choice(penalty=0.1),
    "moved": Choice(step=2.0),
    "both": Choice(step=0.5, penalty=0.0),
    "demoted": Choice(0.5, 1.0, demotion=0.4),
}


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("keys", ["full", {"name": "chunks", "tokens": 16, "overlap": 2}], ids=["full", "chunks"])
@pytest.mark.parametrize("encoder", ["bm25", "wordllama"])
def test_base_rows_score_as_the_store_does(
    opened: Opener,
    commands: list[evokey.Document],
    encoder: str,
    keys: Any,
    choice: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiled, "_joined", None)
    memory = opened(encoder=encoder, keys=keys)
    memory.add([replace(one, text=" ".join([one.text] * 3)) for one in commands])
    memory.feedback("my colleague broke the history", relevant=["git-revert", "git-reset"], irrelevant=["git-log"])
    memory.feedback("find a bug", relevant=["git-bisect"])
    (retriever,) = memory.index.retrievers
    assert (retriever.base.sizes(retriever.documents).max() > 1) == (keys != "full")
    overlay = attribute(retriever, memory.composer.log(memory.ledger.lessons.last).taught).overlay(CHOICES[choice])
    for query in ("broke history", "find the change that introduced a bug", "nothing of this"):
        question = retriever.question(query, overlay.learned)
        (found,) = retriever.base.search([question], 3, without=overlay.all_documents)
        assert found.base is not None
        assert overlay.scores(question).tobytes() == overlay.scores(question, found.base).tobytes()
        at_hand, fetched = (overlay.rank(question, one, 3, None) for one in (found, found._replace(base=None)))
        assert at_hand.numbers.tolist() == fetched.numbers.tolist()
        assert np.array_equal(at_hand.scores, fetched.scores)
