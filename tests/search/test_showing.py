"""How hits are shown: by passage, near-duplicates folded, and what quotes and minus signs ask for."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Opener, ranking
from test_passages import OTHERS, TREES

from evokey.errors import InvalidInput, InvalidQuery
from evokey.search.operators import parse
from evokey.types import Document


@pytest.mark.parametrize("encoder", ["bm25", ["bm25", "wordllama"]])
def test_several_passages_of_one_document_are_hits_of_their_own(opened: Opener, encoder: Any) -> None:
    memory = opened(encoder=encoder, keys="auto")
    memory.add([TREES, *OTHERS])
    hits = memory.search("beetles mountains cold squirrels", k=3, group="passage")
    assert {hit.id for hit in hits} == {"trees.md"}
    assert {hit.passage.where.split(" ")[0] for hit in hits} == {"Oak", "Elm", "Fir"}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    (best, *_) = memory.search("beetles mountains cold squirrels", k=3)
    assert (hits[0].passage, hits[0].score) == (best.passage, best.score)


def test_a_hit_is_a_document_or_a_passage_and_nothing_else(opened: Opener) -> None:
    memory = opened()
    memory.add(OTHERS)
    assert ranking(memory, "stones") == [(hit.id, hit.score) for hit in memory.search("stones", group="document")]
    with pytest.raises(InvalidInput, match="group is one of document, passage, not 'file'"):
        memory.search("stones", group="file")


def test_near_duplicates_are_one_hit_that_names_the_others(opened: Opener) -> None:
    memory = opened(encoder="bm25")
    text = "The owl sleeps by day in the old barn behind the mill, and hunts mice over the wet fields by night."
    memory.add(
        [{"id": "first", "text": text}, {"id": "copy", "text": text + " Indeed."}, {"id": "other", "text": "An owl."}]
    )
    assert len(memory.search("owl barn")) == 3
    hits = memory.search("owl barn", k=2, fold=True)
    assert [(hit.id, hit.similar) for hit in hits] == [("first", ("copy",)), ("other", ())]


def test_a_phrase_must_be_there_and_a_word_with_a_minus_must_not(opened: Opener) -> None:
    memory = opened(encoder="bm25")
    memory.add(
        [
            {"id": "a", "text": "Red Fish, blue fish."},
            {"id": "b", "text": "A fish that is red."},
            {"id": "c", "text": "A red fish and a shark."},
            {"id": "d", "title": "The red fish", "text": "and the redfishes of old"},
        ]
    )
    asked = {
        '"red fish"': ["a", "c", "d"],
        '"red fish" -shark': ["a", "d"],
        'fish -"red fish"': ["b"],
        "red -old": ["a", "b", "c"],
    }
    for query, expected in asked.items():
        assert sorted(hit.id for hit in memory.search(query, operators=True)) == expected
    assert len(memory.search('"red fish" -shark')) == 4


def test_what_is_wanted_is_found_however_deep_it_lies(opened: Opener) -> None:
    memory = opened(encoder="bm25")
    memory.add([{"id": f"n{n}", "text": "red red red fish fish"} for n in range(300)])
    memory.add(
        [{"id": "far", "text": "a red one, and much later, after many other words, a green fish was seen by many"}]
    )
    assert [hit.id for hit in memory.search('red fish "green fish"', k=3, operators=True)] == ["far"]
    assert [hit.id for hit in memory.search("red fish -green", k=3, operators=True)] == ["n0", "n1", "n2"]


@pytest.mark.parametrize(
    "query", ["how do I undo a commit?", "state-of-the-art", "5 - 3", "it's a 'thing'", "rock - paper"]
)
def test_a_plain_query_is_ranked_as_before(opened: Opener, commands: list[Document], query: str) -> None:
    memory = opened()
    memory.add(commands)
    assert parse(query).query == query and parse(query).accepts is None
    plain = [(hit.id, hit.score) for hit in memory.search(query)]
    assert [(hit.id, hit.score) for hit in memory.search(query, operators=True)] == plain


def test_what_is_parsed() -> None:
    found = parse('undo "Last  Commit" -force -"hard reset" -x1 now')
    assert (found.query, found.wanted, found.unwanted) == (
        "undo Last Commit now", ("last commit",), ("force", "hard reset", "x1")
    )  # fmt: skip
    assert parse('an "open end').query == 'an "open end'
    with pytest.raises(InvalidQuery, match="say beside it what to look for"):
        parse("-one -two")


def test_scripts_without_spaces_have_phrases_too() -> None:
    accepts = parse('"東京" 駅').accepts
    assert accepts is not None and accepts(Document("1", "新東京駅の前")) and not accepts(Document("1", "東の京"))
