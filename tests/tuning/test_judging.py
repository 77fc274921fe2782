"""When a tuned encoder is published: better by a standard error, and worse for nobody."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from evokey.tuning.judging import Verdict
from evokey.tuning.revisions import Seen, read_table, sweep, write_table

HALF = np.arange(100) % 2 == 0
CHANCE = np.random.default_rng(0)


def verdict(gain: float, related: float = 0.0, unrelated: float = 0.0) -> Verdict:
    """Of a hundred questions that find half of what they could, each with a little noise."""
    before = np.full(100, 0.5)
    after = before + gain + np.where(HALF, related, unrelated) + 0.02 * CHANCE.standard_normal(100)
    return Verdict(before, after, HALF)


def test_a_clear_gain_is_published() -> None:
    assert verdict(0.05).refusal is None


def test_what_is_no_better_than_noise_is_refused() -> None:
    before = CHANCE.random(100)
    assert "not better by a standard error" in str(Verdict(before, CHANCE.permutation(before), HALF).refusal)
    assert "not better" in str(Verdict(before, before, HALF).refusal)


@pytest.mark.parametrize(("related", "unrelated", "name"), [(0.3, -0.1, "unrelated"), (-0.1, 0.3, "related")])
def test_a_gain_that_one_group_pays_for_is_refused(related: float, unrelated: float, name: str) -> None:
    assert str(verdict(0.0, related, unrelated).refusal).startswith(f"{name} held-out questions")


def test_a_group_without_questions_decides_nothing() -> None:
    found = verdict(0.05)
    alone = Verdict(found.before, found.after, np.ones(100, bool))
    assert (alone.apart(related=False), alone.refusal) == (None, None)


@settings(max_examples=25, deadline=None)
@given(
    arrays.arrays(np.int64, st.integers(0, 20), elements=st.integers(0, 31_999), unique=True),
    st.floats(-100, 100, width=32),
)
def test_a_table_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, tokens: np.ndarray, value: float
) -> None:
    folder = tmp_path_factory.mktemp("table")
    write_table(folder, tokens, np.full((len(tokens), 256), value, np.float32))
    found = read_table(folder)
    assert np.array_equal(found[0], tokens)
    assert (found[1] == np.float32(value)).all()


@pytest.mark.parametrize(
    ("tokens", "shape", "value"), [([32_000], (1, 256), 0.0), ([-1], (1, 256), 0.0), ([1], (1, 255), 0.0),
                                   ([1], (1, 256), np.nan), ([1], (2, 256), 0.0)],
)  # fmt: skip
def test_a_table_that_does_not_fit_the_encoder_is_refused(
    tmp_path: Path, tokens: list[int], shape: tuple[int, int], value: float
) -> None:
    write_table(tmp_path, np.array(tokens), np.full(shape, value, np.float32))
    with pytest.raises(ValueError, match="do not fit"):
        read_table(tmp_path)


def test_what_training_saw_is_known_by_hashes_alone(tmp_path: Path) -> None:
    from evokey.tuning.revisions import _hash

    np.save(tmp_path / "seen.npy", np.array([_hash("a question")], np.uint64))
    seen = Seen.read(tmp_path / "seen.npy")
    assert ("a question" in seen, "another" in seen) == (True, False)
    assert b"question" not in (tmp_path / "seen.npy").read_bytes()


def test_a_sweep_leaves_named_revisions_and_the_keys_of_the_settings(tmp_path: Path) -> None:
    for name in ("models/abc", "models/def", "models/ghi.tmp", "keys/wordllama", "keys/wordllama@abc", "keys/x@def"):
        (tmp_path / name).mkdir(parents=True)
    sweep(tmp_path, {"abc"})
    found = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*"))
    assert found == ["keys/wordllama", "keys/wordllama@abc", "models/abc"]
