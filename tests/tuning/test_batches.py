"""What a training step compares: known right texts are never wrong ones."""

from __future__ import annotations

import numpy as np

from evokey.tuning.batches import Known, Mined, make_batches, mean_ndcg

KNOWN = Known([[0, 1], [1], [2, 3, 4]], [[1.0, 0.5], [1.0], [1.0, 1.0, 2.0]])


def test_a_right_text_that_another_question_brings_is_masked() -> None:
    batch = KNOWN.make_batch(np.array([[0, 0], [1, 0]]), np.array([], np.int64))
    assert batch.texts.tolist() == [0, 1]
    assert batch.wanted.tolist() == [0, 1]
    assert batch.masked.tolist() == [[False, True], [False, False]]  # text 1 is right for question 0, too


def test_a_right_text_that_mining_brings_is_masked_and_its_column_stands_once() -> None:
    batch = KNOWN.make_batch(np.array([[2, 1]]), np.array([2, 5, 5, 3]))
    assert batch.texts.tolist() == [2, 3, 5]
    assert batch.wanted.tolist() == [1]
    assert batch.masked.tolist() == [[True, False, False]]


def test_what_is_mined_holds_no_right_text() -> None:
    assert [row.tolist() for row in KNOWN.remove(np.array([[0, 5, 1], [0, 1, 2], [4, 3, 2]]))] == [[5], [0, 2], []]


def test_an_epoch_has_each_pair_once_with_its_weight_and_at_most_so_many_of_a_question() -> None:
    drawn = list(make_batches(KNOWN, Mined([], 0), 2, 2, np.random.default_rng(0)))
    pairs = [
        (int(question), int(batch.texts[column]), float(weight))
        for batch in drawn
        for question, column, weight in zip(batch.questions, batch.wanted, batch.weights, strict=True)
    ]
    assert KNOWN.count_pairs(2) == len(pairs) == len(set(pairs)) == 5
    assert {one for one in pairs if one[0] < 2} == {(0, 0, 1.0), (0, 1, 0.5), (1, 1, 1.0)}
    assert [len(batch.questions) for batch in drawn] == [2, 2, 1]


def test_mined_texts_are_drawn_for_each_pair() -> None:
    mined = Mined([np.array([7, 8, 9]), np.array([7]), np.array([], np.int64)], 2)
    batch = KNOWN.make_batch(
        np.array([[0, 0], [1, 0], [2, 0]]), mined.draw(np.array([0, 1, 2]), np.random.default_rng(0))
    )
    assert len(set(batch.texts.tolist()) & {7, 8, 9}) >= 2
    assert {0, 1, 2} <= set(batch.texts.tolist())


def test_ndcg_of_rankings() -> None:
    assert mean_ndcg(np.array([[0, 1, 5]]), [[0, 1]]) == 1.0
    assert mean_ndcg(np.array([[5, 0, 6], [1, 2, 3]]), [[0], [9]]) == (1 / np.log2(3)) / 2
