"""A trained linear map of query vectors."""

from __future__ import annotations

import numpy as np
import pytest

from evokey.tuning.adapter import AdapterOptions, Asked, measure, normalise, score_gradient, train
from evokey.types import Vectors

DOCUMENTS, DIMENSION = 300, 24


def rotated_world(seed: int = 0) -> tuple[Asked, Asked, Vectors]:
    """Questions lie near their documents, but all of them are turned by the same rotation."""
    rng = np.random.default_rng(seed)
    keys = normalise(rng.normal(size=(DOCUMENTS, DIMENSION)))
    turn = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))[0]
    near = normalise(keys + 0.1 * rng.normal(size=keys.shape))
    turned = normalise(near @ turn)
    return Asked(turned[:200], [[n] for n in range(200)]), Asked(turned[200:], [[n] for n in range(200, 300)]), keys


def test_a_rotation_is_learned_and_helps_questions_that_were_not_taught() -> None:
    data, held_out, keys = rotated_world()
    found = train(data, held_out, keys, AdapterOptions(learning_rate=0.03, epochs=60, patience=10))
    assert found.scores[0] < 0.1
    assert found.scores[found.epoch] == max(found.scores) > 0.9
    assert measure(found.matrix, held_out, keys) == found.scores[found.epoch]
    np.testing.assert_allclose(np.linalg.norm(found.apply(data.vectors), axis=1), 1, atol=1e-5)


def test_where_nothing_helps_the_identity_stays() -> None:
    data, _, keys = rotated_world()
    straight = Asked(keys[200:], [[n] for n in range(200, 300)])
    found = train(data, straight, keys, AdapterOptions(patience=3))
    assert (found.epoch, found.scores[0], len(found.scores)) == (0, 1.0, 4)
    assert np.array_equal(found.matrix, np.eye(DIMENSION))


def test_the_same_seed_gives_the_same_map() -> None:
    one, other = (train(*rotated_world(), AdapterOptions(epochs=3, seed=5)) for _ in range(2))
    assert np.array_equal(one.matrix, other.matrix)


def test_known_right_documents_do_not_push_each_other_away() -> None:
    slopes = score_gradient(np.zeros((1, 4), np.float32), [[0, 1]])
    assert slopes[0].tolist() == pytest.approx(
        [-1 / 3, -1 / 3, 1 / 3, 1 / 3]
    )  # each: 1 of 3, the other right one left out


def test_the_gradient_is_that_of_the_loss() -> None:
    rng = np.random.default_rng(1)
    scores, right = rng.normal(size=(1, 6)), [1, 4]

    def loss(row: np.ndarray) -> float:
        wrong = [place for place in range(6) if place not in right]
        each = [np.log(np.exp(row[one]) + np.exp(row[wrong]).sum()) - row[one] for one in right]
        return float(np.mean(each))

    steps = 1e-5 * np.eye(6)
    measured = [(loss(scores[0] + step) - loss(scores[0] - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(score_gradient(scores.copy(), [right])[0], measured, atol=1e-6)
