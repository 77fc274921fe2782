"""Simulated rewordings: the same for the same text, shorter, never empty."""

from __future__ import annotations

import numpy as np
import pytest

from evokey.search.rewording import TURNS, drop_words, reword, turn

QUESTIONS = ["how do I open a file for reading", "what is the capital of France", "x"]


def test_rewordings_follow_from_the_texts_alone() -> None:
    assert reword(QUESTIONS, 200) == reword(QUESTIONS, 200)
    assert len(reword(QUESTIONS, 200)) == 3 * len(QUESTIONS)
    assert len(reword(QUESTIONS, 2)) == len(QUESTIONS)


def test_a_rewording_keeps_some_words_of_its_question_and_is_never_empty() -> None:
    for one in reword(QUESTIONS, 200):
        assert set(one.text.split()) & set(one.query.split())
        assert one.text != one.query or len(one.query.split()) == 1


@pytest.mark.parametrize("text", ["", "one", "two words", "a b c d e f g h"])
def test_dropping_words_leaves_at_least_one(text: str) -> None:
    for share in (0.0, 0.5, 1.0):
        kept = drop_words(text, share, 0)
        assert len(kept) >= min(1, len(text.split()))
        assert [word for word in text.split() if word in kept] == kept


def test_a_turned_vector_is_as_similar_as_it_should_be() -> None:
    rng = np.random.default_rng(0)
    one, other = (vector / np.linalg.norm(vector) for vector in rng.normal(size=(2, 64)).astype(np.float32))
    for similarity in TURNS:
        turned = turn(one, other, similarity)
        assert float(turned @ one) == pytest.approx(similarity, abs=1e-5)
        assert float(np.linalg.norm(turned)) == pytest.approx(1, abs=1e-5)
    assert turn(one, one, 0.9).tolist() == one.tolist()
