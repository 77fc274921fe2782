"""A table of token vectors learns from pairs; gradients are what finite differences say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from evokey.encoders.wordllama import TunedWordLlama, WordLlamaEncoder, count_tokens, token_table
from evokey.tuning.pairs import TrainingSet
from evokey.tuning.static import Adam, Batch, StaticOptions, contrast, train

WORDS = [f"w{at}" for at in range(40)]


def count_words(texts: Sequence[str]) -> sparse.csr_array:
    place = {word: at for at, word in enumerate(WORDS)}
    table = np.zeros((len(texts), len(WORDS)), np.float32)
    for row, text in enumerate(texts):
        for word in text.split():
            table[row, place[word]] += 1
    return sparse.csr_array(table)


def some_batch(chance: np.random.Generator, questions: int, texts: int, tokens: int) -> Batch:
    counts = [sparse.csr_array(chance.integers(0, 3, (rows, tokens)).astype(np.float64)) for rows in (questions, texts)]
    right = chance.integers(0, texts, questions)
    masked = chance.random((questions, texts)) < 0.2
    masked[np.arange(questions), right] = False
    return Batch(*counts, right, masked, chance.random(questions) + 0.5)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_the_gradient_is_what_finite_differences_say(seed: int) -> None:
    chance = np.random.default_rng(seed)
    table, batch = chance.normal(size=(7, 4)), some_batch(chance, 5, 6, 7)
    _, gradient = contrast(table, batch, 0.3)
    for at in np.ndindex(*table.shape):
        ahead, behind = table.copy(), table.copy()
        ahead[at] += 1e-6
        behind[at] -= 1e-6
        slope = (contrast(ahead, batch, 0.3)[0] - contrast(behind, batch, 0.3)[0]) / 2e-6
        assert gradient[at] == pytest.approx(slope, rel=1e-3, abs=1e-6)


def test_a_text_that_is_right_as_well_is_no_negative() -> None:
    chance = np.random.default_rng(0)
    batch = some_batch(chance, 1, 3, 5)._replace(right=np.array([0]), masked=np.array([[False, True, True]]))
    assert contrast(chance.normal(size=(5, 4)), batch, 0.1)[0] == pytest.approx(0, abs=1e-9)


def test_adam_leaves_other_rows_alone() -> None:
    adam, array = Adam((4, 2), 0.1), np.zeros((4, 2), np.float32)
    array[[1, 3]] += adam.step(np.array([1, 3]), np.ones((2, 2), np.float32))
    np.testing.assert_allclose(array, [[0, 0], [-0.1, -0.1]] * 2, rtol=1e-5)


def translation(size: int) -> TrainingSet:
    """Questions in words that no text has: only training can say which word means which."""
    chance, right, texts = np.random.default_rng(1), {}, {}
    for at in range(size):
        said = chance.choice(20, 2, replace=False)
        right[f"w{said[0]} w{said[1]}"] = {at: 1.0}
        texts[at] = f"w{20 + said[0]} w{20 + said[1]}"
    return TrainingSet.of(right, texts, {})


def test_training_finds_what_the_table_does_not_and_stops_where_unseen_questions_do_best() -> None:
    data = translation(200)
    seen = frozenset(data.queries[:150])
    unseen = frozenset(data.queries) - seen
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 32)).astype(np.float32)
    made = train(vectors, count_words, data.only(seen), data.only(unseen), StaticOptions(rate=0.05))
    assert made.before < 0.2
    assert made.after > 2 * made.before


def test_a_table_that_training_does_not_improve_stays_as_it_is() -> None:
    data = TrainingSet.of({f"w{at}": {at: 1.0} for at in range(20)}, {at: f"w{at}" for at in range(20)}, {})
    made = train(np.eye(len(WORDS), dtype=np.float32), count_words, data, data)
    assert (made.before, len(made.tokens), made.rounds) == (1.0, 0, 0)


def test_training_twice_gives_the_same_table() -> None:
    data, vectors = translation(60), np.random.default_rng(0).normal(size=(len(WORDS), 16)).astype(np.float32)
    first, second = (train(vectors, count_words, data, data, StaticOptions(rounds=3)) for _ in range(2))
    assert np.array_equal(first.vectors, second.vectors)


def test_a_tuned_wordllama_without_changes_encodes_as_the_original_does() -> None:
    texts = ["How do I undo a commit?", "", "  ", "Grüße aus München 🎉", "a " * 3_000]
    tuned = TunedWordLlama(np.zeros(0, np.int64), np.zeros((0, 256), np.float32), "abc")
    assert tuned.identity == f"{WordLlamaEncoder().identity}@abc"
    np.testing.assert_allclose(tuned.documents(texts), WordLlamaEncoder().documents(texts), atol=1e-5)


def test_a_changed_token_changes_the_texts_that_have_it_and_no_other() -> None:
    tokens = np.unique(count_tokens(["commit"]).indices).astype(np.int64)
    tuned = TunedWordLlama(tokens, -token_table()[tokens], "abc")
    texts = ["commit", "river"]
    before, after = WordLlamaEncoder().documents(texts), tuned.documents(texts)
    assert before[0] @ after[0] == pytest.approx(-1, abs=1e-5)
    assert before[1] @ after[1] == pytest.approx(1, abs=1e-5)
