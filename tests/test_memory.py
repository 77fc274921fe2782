"""What the one object users meet promises about documents and searching."""

from __future__ import annotations

import gc
import logging
import weakref
from pathlib import Path

import pytest
from conftest import Opener, ranking

import evokey
from evokey.errors import InvalidInput, InvalidSettings, MemoryClosed, UnknownDocument


def test_documents_are_found_by_their_words_and_come_back_whole(
    opened: Opener, commands: list[evokey.Document]
) -> None:
    memory = opened()
    assert memory.add(commands) == len(commands) == len(memory)
    first = memory.search("show the history of changes", k=3)[0]
    assert first.id == "git-log"
    assert first.document == commands[2] == memory.get("git-log")


def test_adding_the_same_id_again_replaces_the_document(opened: Opener) -> None:
    memory = opened(encoder="bm25")
    memory.add([{"id": "a", "text": "about apples"}, {"id": "b", "text": "about pears"}])
    memory.add([{"id": "a", "text": "about oranges"}])
    assert len(memory) == 2
    assert memory.search("apples") == []
    assert [hit.id for hit in memory.search("oranges")] == ["a"]


def test_new_metadata_alone_keeps_the_key_and_changes_the_filter(opened: Opener) -> None:
    memory = opened()
    memory.add([{"id": "a", "text": "about apples", "metadata": {"lang": "en"}}])
    memory.add([{"id": "a", "text": "about apples", "metadata": {"lang": "de"}}])
    assert memory.search("apples", where={"lang": "en"}) == []
    assert memory.search("apples", where={"lang": "de"})[0].document.metadata == {"lang": "de"}


def test_an_empty_document_is_stored_warned_about_and_never_found(
    opened: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    memory = opened()
    with caplog.at_level(logging.WARNING, "evokey"):
        memory.add([{"id": "void", "text": "  "}, {"id": "full", "text": "something"}])
    assert "'void' is empty" in caplog.text
    assert memory.get("void").text == "  "
    assert memory.stats().empty_documents == 1
    assert [hit.id for hit in memory.search("something", k=10)] == ["full"]


def test_a_deleted_document_is_gone_from_every_search(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    assert memory.delete(["git-log", "git-stash"]) == 2
    assert not {"git-log", "git-stash"} & {hit.id for hit in memory.search("show the history", k=10)}
    with pytest.raises(UnknownDocument, match="'git-log'"):
        memory.get("git-log")


def test_deleting_an_unknown_id_deletes_nothing(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    with pytest.raises(UnknownDocument, match="'git-push'"):
        memory.delete(["git-log", "git-push"])
    assert len(memory) == len(commands)


def test_filters_take_equality_one_of_and_members_of_lists(opened: Opener) -> None:
    memory = opened()
    memory.add(
        [
            {"id": "a", "text": "green tea", "metadata": {"lang": "en", "year": 2020, "tags": ["hot", "leaf"]}},
            {"id": "b", "text": "black tea", "metadata": {"lang": "de", "year": 2021, "tags": ["hot"]}},
            {"id": "c", "text": "iced tea", "metadata": {"lang": "fr", "year": 2021}},
        ]
    )

    def found(**where: object) -> set[str]:
        return {hit.id for hit in memory.search("tea", where=where)}

    assert found(lang="en") == {"a"}
    assert found(lang=["en", "de"]) == {"a", "b"}
    assert found(year=2021, lang=["de", "fr"]) == {"b", "c"}
    assert found(tags="hot") == {"a", "b"}
    assert found(lang="it") == set()
    assert {hit.id for hit in memory.search("tea", where={})} == {"a", "b", "c"}


def test_k_larger_than_the_corpus_returns_all_there_is(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened(encoder="wordllama")
    memory.add(commands)
    assert len(memory.search("git", k=1000)) == len(commands)


@pytest.mark.parametrize("k", [0, -1, 2.5, True])
def test_k_below_one_is_refused(opened: Opener, k: int) -> None:
    with pytest.raises(InvalidInput, match="k must be a whole number"):
        opened().search("anything", k=k)


def test_search_many_answers_each_query_as_search_does(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    queries = ["undo", "who wrote this line", "copy a repository"]
    assert memory.search_many(queries, k=3) == [memory.search(query, k=3) for query in queries]


def test_an_empty_memory_finds_nothing_and_says_so_quietly(opened: Opener) -> None:
    memory = opened()
    assert len(memory) == 0
    assert memory.search("anything") == []
    assert not memory.evolve().published


def test_a_memory_is_the_same_after_reopening(tmp_path: Path, commands: list[evokey.Document]) -> None:
    with evokey.open(tmp_path / "kb") as memory:
        memory.add(commands)
        memory.feedback("undo my last commit", relevant=["git-revert"])
        memory.evolve()
        before = ranking(memory, "undo my last commit"), memory.stats().epoch
    with evokey.open(tmp_path / "kb") as memory:
        assert (ranking(memory, "undo my last commit"), memory.stats().epoch) == before


def test_a_closed_memory_lets_go_of_its_files_at_once(tmp_path: Path) -> None:
    gc.disable()
    try:
        memory = evokey.open(tmp_path / "kb")
        memory.add([{"id": "a", "text": "the quick brown fox"}])
        memory.feedback("vulpes", ["a"])
        memory.evolve()
        memory.search("vulpes")
        index = weakref.ref(memory.index)
        memory.close()
        del memory
        assert index() is None, "a cycle of references keeps the mapped keys until somebody collects it"
    finally:
        gc.enable()


def test_a_closed_memory_says_how_to_open_it_again(tmp_path: Path) -> None:
    memory = evokey.open(tmp_path / "kb")
    memory.close()
    memory.close()
    with pytest.raises(MemoryClosed, match=r"evokey\.open"):
        memory.search("anything")


@pytest.mark.parametrize("encoder", ["given", ["bm25", "given"]])
def test_vectors_can_be_handed_in(opened: Opener, encoder: str | list[str]) -> None:
    memory = opened(encoder=encoder)
    memory.add([{"id": "x", "text": "east"}, {"id": "y", "text": "north"}], vectors=[[2.0, 0.0], [0.0, 3.0]])
    assert memory.search("which way?", vector=[0.1, 0.9])[0].id == "y"
    memory.feedback("which way?", relevant=["x"], vector=[0.1, 0.9])
    assert memory.evolve().published
    assert memory.search("which way?", vector=[0.1, 0.9])[0].id == "x"


def test_a_handed_in_memory_learns_again_after_reopening(tmp_path: Path) -> None:
    with evokey.open(tmp_path / "kb", encoder="given") as memory:
        memory.add([{"id": "x", "text": "east"}, {"id": "y", "text": "north"}], vectors=[[1, 0], [0, 1]])
        memory.feedback("which way?", relevant=["x"], vector=[0.1, 0.9])
    with evokey.open(tmp_path / "kb") as memory:
        assert memory.evolve().published
        assert memory.search("which way?")[0].id == "x"


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (None, "pass vectors="),
        ([[1.0, 0.0, 0.0]], "2 dimensions"),
        ([[0.0, 0.0]], "no direction"),
        ([[float("nan"), 1.0]], "no direction"),
        ([[1.0, 0.0], [0.0, 1.0]], "1 vectors are needed"),
    ],
)
def test_bad_vectors_change_nothing(opened: Opener, vectors: object, message: str) -> None:
    memory = opened(encoder="given")
    memory.add([{"id": "x", "text": "east"}], vectors=[[1.0, 0.0]])
    with pytest.raises(InvalidInput, match=message):
        memory.add([{"id": "y", "text": "north"}], vectors=vectors)
    assert len(memory) == 1


def test_a_vector_for_a_memory_that_makes_its_own_is_refused(opened: Opener) -> None:
    with pytest.raises(InvalidInput, match="makes its own vectors"):
        opened().add([{"id": "x", "text": "east"}], vectors=[[1.0, 0.0]])


def test_a_document_without_text_is_found_by_its_vector(opened: Opener) -> None:
    memory = opened(encoder="given")
    memory.add([{"id": "picture", "text": ""}], vectors=[[1.0, 0.0]])
    memory.add([{"id": "page", "text": "words"}], vectors=[[0.0, 1.0]])
    assert [hit.id for hit in memory.search("?", vector=[0.9, 0.1])] == ["picture", "page"]


def test_the_first_hits_do_not_depend_on_k(opened: Opener) -> None:
    memory = opened()
    words = "ant bee cat dog eel fox gnu hen".split()
    memory.add([{"id": str(n), "text": " ".join(words[(n * step) % 8] for step in (1, 3, 5, n))} for n in range(300)])
    few, many = ranking(memory, "ant bee fox"), ranking(memory, "ant bee fox", k=250)
    assert many[:10] == few
    assert [score for _, score in many] == sorted((score for _, score in many), reverse=True)
    assert len({id for id, _ in many}) == len(many) > 150


def test_a_vector_beside_a_query_is_refused_where_the_memory_makes_its_own(opened: Opener) -> None:
    with pytest.raises(InvalidInput, match="makes its own vectors"):
        opened().search("which way?", vector=[1.0, 0.0])


def test_units_are_refused_where_nothing_could_encode_them(opened: Opener) -> None:
    memory = opened(encoder="given")
    memory.add([{"id": "x", "text": "east"}], vectors=[[1.0, 0.0]])
    with pytest.raises(InvalidInput, match="units need an encoder"):
        memory.feedback("which way?", relevant=["x"], units=["east"], vector=[1.0, 0.0])


def test_texts_beyond_all_measure_are_refused(opened: Opener) -> None:
    memory = opened()
    with pytest.raises(InvalidInput, match=r"document 'war': text has 10,000,000 characters.*split the document"):
        memory.add([{"id": "peace", "text": "short"}, {"id": "war", "text": "a " * 5_000_000}])
    with pytest.raises(InvalidInput, match="use a shorter one"):
        memory.search("why? " * 50_000)
    assert len(memory) == 0


def test_a_filter_may_name_more_values_than_one_statement_takes(opened: Opener) -> None:
    memory = opened()
    memory.add([{"id": str(n), "text": "cat", "metadata": {"n": n}} for n in (1, 259_999, 300_000)])
    assert {hit.id for hit in memory.search("cat", where={"n": list(range(260_000))})} == {"1", "259999"}


@pytest.mark.parametrize("body", ["a = " + "[" * 100_000, "a = " + "9" * 5_000, "a = " + "{b = " * 5_000])
def test_settings_that_are_too_much_are_an_error_not_a_traceback(tmp_path: Path, body: str) -> None:
    (tmp_path / "evokey.toml").write_text(body)
    with pytest.raises(InvalidSettings, match=r"evokey\.toml"):
        evokey.open(tmp_path)
