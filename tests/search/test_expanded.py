"""An expanded question: how much the query and its units say in it."""

from __future__ import annotations

import numpy as np

from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.keys.full import Full
from evokey.protocols import Space
from evokey.search.retriever import DenseRetriever
from evokey.stores.flat import FlatStore
from evokey.types import Expansion, Unit

QUERY = "how do I undo a commit?"


def likeness(*units: str, search: str = "blend") -> tuple[float, float]:
    """Of the expanded question: to the query, and to where the units point together."""
    encoder = WordLlamaEncoder()
    question = DenseRetriever("wordllama", encoder, Full(), None, FlatStore(Space(None, encoder))).expand(
        Expansion(QUERY, tuple(Unit(text) for text in units), "given", search), {}
    )
    together = encoder.documents(units).mean(axis=0)
    asked = encoder.queries([QUERY])[0]
    return float(question.vector @ asked), float(question.vector @ (together / np.linalg.norm(together)))


def test_units_that_lie_apart_have_together_as_much_say_as_the_query() -> None:
    query, units = likeness("git revert", "volcanoes in Iceland", "baroque music", "tax law")
    assert abs(query - units) < 1e-5


def test_one_unit_has_as_much_say_as_many() -> None:
    query, units = likeness("restore an earlier state of a file")
    assert abs(query - units) < 1e-5


def test_all_as_one_text_leans_to_the_longer_part() -> None:
    query, units = likeness("git revert", "volcanoes in Iceland", "baroque music", "tax law", search="concat")
    assert units > query + 0.05
