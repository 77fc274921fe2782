"""The whole story beside somebody else's search: search, teach, evolve, explain, go back, forget."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest
from conftest import Attach
from layer.library import Library, ids, pairs, teach

import evokey
from evokey.demo import run
from evokey.demo.run import Question
from evokey.errors import InvalidInput, MemoryClosed, NotAMemory, UnknownDocument

FAR = "xylophone zeppelin quartz"


@pytest.fixture
def library(pages: list[evokey.Document]) -> Library:
    return Library(pages)


def share_found(layer: evokey.Layer, questions: list[Question], group: str, most: int = 60) -> float:
    """Of some questions, the share with a right document among the first three."""
    some = [one for one in questions if one.group == group][:most]
    return fmean(bool(set(ids(layer.search(one.text, 3))) & set(one.relevant)) for one in some)


def test_an_untaught_layer_returns_what_the_engine_returns(attach: Attach, library: Library) -> None:
    layer = attach(library.search)
    assert pairs(layer.search("parent directory of a path", 7)) == library.search("parent directory of a path", 7)
    assert library.asked[0][1] == 7


def test_what_was_taught_is_found_again_and_other_wordings_gain(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search)
    before = {group: share_found(layer, questions, group) for group in run.GROUPS}
    taught = teach(layer, questions)
    report = layer.evolve()
    assert report.published
    assert all(layer.search(one.text, 1)[0].id in one.relevant for one in taught)
    assert share_found(layer, questions, run.GROUPS[1]) > before[run.GROUPS[1]] + 0.1
    assert share_found(layer, questions, run.GROUPS[2]) >= before[run.GROUPS[2]] - 0.02


def test_far_from_every_lesson_the_engine_is_asked_for_k_and_its_list_comes_back_untouched(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(lambda query, k: library.search("quartz clock time" if query == FAR else query, k))
    teach(layer, questions)
    layer.evolve()
    library.asked.clear()
    assert pairs(layer.search(FAR, 4)) == library.search("quartz clock time", 4)
    assert [k for _, k, _ in library.asked] == [4, 4]


def test_a_document_that_learned_nothing_keeps_its_score_unless_common_ones_lose(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search)
    taught = teach(layer, questions)
    discount = layer.evolve().choice["questions"].discount
    touched = {id for one in taught for id in one.relevant}
    untaught = dict(library.search(taught[0].text, 100))
    found = layer.search(taught[0].text, 50)
    kept = [hit for hit in found if hit.id not in touched]
    assert kept
    if discount:
        assert all(hit.score <= untaught[hit.id] for hit in kept)
    else:
        assert all(hit.score == untaught[hit.id] for hit in kept)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def test_too_few_lessons_to_cross_validate_are_found_again_and_harm_nobody(attach: Attach, library: Library) -> None:
    layer = attach(library.search)
    layer.feedback("strip the file name from a path", relevant=["os.path.dirname"])
    before = pairs(layer.search("how do I sort a list by a key?", 5))
    report = layer.evolve()
    assert report.published
    assert report.held_out is None
    assert layer.search("strip the file name from a path", 1)[0].id == "os.path.dirname"
    assert pairs(layer.search("how do I sort a list by a key?", 5)) == before


def test_a_dry_run_tells_what_evolve_would_do_and_does_nothing(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search)
    teach(layer, questions)
    told = layer.evolve(dry_run=True)
    assert told.reason.startswith("dry run")
    assert not told.published
    assert layer.stats().epoch == 0
    done = layer.evolve()
    assert (done.choice, done.held_out) == (told.choice, told.held_out)


def test_nothing_new_publishes_nothing(attach: Attach, library: Library, questions: list[Question]) -> None:
    layer = attach(library.search)
    teach(layer, questions)
    layer.evolve()
    assert "nothing new since epoch 1" in layer.evolve().reason
    assert [one.number for one in layer.epochs()] == [0, 1]


def test_rollback_brings_the_engines_list_back_and_older_epochs_can_be_searched(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search)
    untaught = {one.text: pairs(layer.search(one.text, 5)) for one in questions[:40]}
    teach(layer, questions)
    layer.evolve()
    learned = {query: pairs(layer.search(query, 5)) for query in untaught}
    assert learned != untaught
    assert {query: pairs(layer.search(query, 5, epoch=0)) for query in untaught} == untaught
    assert layer.rollback(0).number == 2
    assert {query: pairs(layer.search(query, 5)) for query in untaught} == untaught
    assert {query: pairs(layer.search(query, 5, epoch=1)) for query in untaught} == learned
    assert layer.stats().held == len(layer.lessons(held=True)) == 60
    with pytest.raises(InvalidInput, match="there is no epoch 9"):
        layer.search("a path", epoch=9)


def test_explain_names_the_lessons_and_what_they_do_to_a_query(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search)
    taught = teach(layer, questions)
    layer.evolve()
    told = layer.explain(taught[0].relevant[0], taught[0].text)
    assert taught[0].text in [lesson.query for lesson in told.lessons]
    assert told.rank_after is not None
    assert told.rank_after <= 2
    assert told.rank_before is None or told.rank_before >= told.rank_after
    (view,) = told.views
    assert view.nearest_taught == taught[0].text
    assert view.after > view.before
    assert view.share == 1.0
    far = layer.explain(taught[0].relevant[0], FAR)
    assert not far.in_reach
    with pytest.raises(UnknownDocument, match="'no-such-page'"):
        layer.explain("no-such-page")


def test_forgetting_an_actor_leaves_what_a_layer_knows_that_never_heard_of_them(
    attach: Attach, library: Library, questions: list[Question], tmp_path: Path
) -> None:
    layer, other = attach(library.search), attach(library.search, "other")
    for one in (layer, other):
        teach(one, questions)
    layer.feedback("how long is a marmalade sandwich", relevant=["len"], actor="mallory")
    layer.evolve()
    other.evolve()
    done = layer.forget(actor="mallory")
    assert (done.lessons, done.erased) == (1, True)
    assert layer.epochs()[-1].choice == other.epochs()[-1].choice
    asked = [one.text for one in questions[:60]]
    assert [pairs(layer.search(query, 5)) for query in asked] == [pairs(other.search(query, 5)) for query in asked]
    layer.close()
    left = b"".join(path.read_bytes() for path in (tmp_path / "kb").rglob("*") if path.is_file())
    assert b"marmalade" not in left
    assert b"mallory" not in left


def test_diff_tells_which_taught_queries_are_answered_otherwise_without_asking_the_engine(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    layer = attach(library.search)
    teach(layer, questions)
    layer.evolve()
    library.asked.clear()
    told = layer.diff(0, 1)
    assert library.asked == []
    assert told.queries_compared == 60
    assert fmean(one.quality_after for one in told.queries) > fmean(one.quality_before for one in told.queries)
    assert {one.document for one in told.documents} == {
        id for lesson in layer.lessons() for id in (verdict.document for verdict in lesson.verdicts)
    }


def test_a_protected_query_never_gets_worse(attach: Attach, library: Library, questions: list[Question]) -> None:
    layer = attach(library.search)
    query = "parent directory of a file path"
    first = library.search(query, 1)[0][0]
    layer.protect(query, relevant=[first])
    layer.feedback_many([{"query": f"{query} {number}", "relevant": ["os.path.dirname"]} for number in range(3)])
    teach(layer, questions)
    layer.evolve()
    assert layer.protected_queries() == {query: {first: 1.0}}
    assert layer.search(query, 1)[0].id == first


def test_a_wrong_document_may_fall(attach: Attach, library: Library, questions: list[Question]) -> None:
    layer = attach(library.search)
    taught = [one for one in questions if one.group == run.GROUPS[0]][:60]
    for one in taught:
        wrong = [id for id in ids(layer.search(one.text, 3)) if id not in one.relevant][:1]
        layer.feedback(one.text, relevant=one.relevant, irrelevant=wrong)
    assert layer.evolve().published
    assert all(layer.search(one.text, 1)[0].id in one.relevant for one in taught)


def test_lessons_on_hold_take_no_part_until_they_are_released(attach: Attach, library: Library) -> None:
    layer = attach(library.search)
    lesson = layer.feedback("strip the file name from a path", relevant=["os.path.dirname"])
    assert layer.hold([lesson.number]) == 1
    assert "on hold" in layer.evolve().reason or not layer.evolve().published
    assert layer.release([lesson.number]) == 1
    assert layer.evolve().published


def test_a_layer_outlives_its_process_and_its_backup_is_a_layer(
    attach: Attach, library: Library, questions: list[Question], tmp_path: Path
) -> None:
    with evokey.beside(library.search, tmp_path / "kb") as layer:
        taught = teach(layer, questions)
        layer.evolve()
        found = [pairs(layer.search(one.text, 5)) for one in taught]
        layer.backup(tmp_path / "copy")
    for name in ("kb", "copy"):
        again = attach(library.search, name)
        assert [pairs(again.search(one.text, 5)) for one in taught] == found
        assert again.stats().lessons == 60
    with pytest.raises(MemoryClosed, match="was closed"):
        layer.search("anything")


def test_a_memory_is_no_layer_and_a_layer_is_no_memory(attach: Attach, library: Library, tmp_path: Path) -> None:
    evokey.open(tmp_path / "memory").close()
    with pytest.raises(NotAMemory, match="is a memory of documents"):
        evokey.beside(library.search, tmp_path / "memory")
    attach(library.search, "layer")
    with pytest.raises(NotAMemory, match=r"open it with evokey\.beside\(search"):
        evokey.open(tmp_path / "layer")


def test_the_encoders_are_those_that_the_layer_was_made_with(attach: Attach, library: Library) -> None:
    layer = attach(library.search, encoder="bm25")
    assert layer.stats().retrievers == ["bm25"]
    layer.close()
    assert attach(library.search).stats().retrievers == ["bm25"]
    with pytest.raises(evokey.EvokeyError, match="was made with bm25"):
        evokey.beside(library.search, Path(layer._folder), encoder="wordllama")


def test_another_process_reads_a_new_epoch_with_its_next_search(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    writer, reader = attach(library.search), attach(library.search)
    query = questions[0].text
    before = pairs(reader.search(query, 5))
    teach(writer, questions)
    writer.evolve()
    assert pairs(reader.search(query, 5)) == pairs(writer.search(query, 5)) != before
    writer.rollback(0)
    assert pairs(reader.search(query, 5)) == before
