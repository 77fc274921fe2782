"""A change that is not meant to change results does not: what a small set gives was recorded (record.py)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from record import RECORDED, RETRIEVERS, record, small


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_rankings_scores_and_choices_are_those_that_were_recorded(retriever: str) -> None:
    expected, found = json.loads(RECORDED.read_text())[f"small {retriever}"], record(*small(), RETRIEVERS[retriever])
    assert json.loads(json.dumps(found["report"])) == approximately(expected["report"])
    for part in ("untaught", "taught", "forgotten"):
        for one, other in zip(found[part], expected[part], strict=True):
            assert [id for id, _ in one] == [id for id, _ in other]
            assert [score for _, score in one] == pytest.approx([score for _, score in other], abs=1e-6)


def approximately(value: Any) -> Any:
    """Coefficients of a gate amplify how the sums of two processors differ."""
    if isinstance(value, dict):
        return {key: approximately(one) for key, one in value.items()}
    if isinstance(value, list):
        return pytest.approx(value, abs=1e-4)
    return pytest.approx(value, abs=1e-6) if isinstance(value, float) else value
