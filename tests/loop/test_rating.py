"""Ratings: what a vote credits, whom it asks, and that a changed vote leaves nothing of the earlier one."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Opener, ranking

import evokey
from evokey.errors import InvalidInput, UnknownResult
from evokey.ledger import shown as shown_
from evokey.loop.rating import citations, find_origins
from evokey.types import Answer, Document, Hit

QUESTION = "who wrote this line"


@pytest.fixture
def memory(opened: Opener, commands: list[Document]) -> evokey.Memory:
    found = opened(encoder="bm25")
    found.add(commands)
    return found


def answer(memory: evokey.Memory, text: str, cited: tuple[str, ...] = ()) -> Answer:
    hits = tuple(Hit(id, 1.0, memory.get(id)) for id in ("git-blame", "git-log"))
    return Answer(QUESTION, text, cited, hits, "model")


def show(memory: evokey.Memory, cited: tuple[str, ...] = ("git-blame",), actor: str | None = None) -> str:
    told = answer(memory, "Blame shows it [1].", cited)
    return memory.show(QUESTION, told.hits, told, actor)


def test_an_upvote_credits_what_the_answer_cites(memory: evokey.Memory) -> None:
    rating = memory.rate(show(memory), True, actor="ada")
    assert rating is not None
    (lesson,) = memory.lessons()
    assert (rating.lesson, lesson.query, lesson.actor, lesson.verifier) == (lesson.number, QUESTION, "ada", "rating")
    assert [(one.document, one.grade) for one in lesson.verdicts] == [("git-blame", 1.0)]


def test_without_citations_an_upvote_credits_what_a_sentence_matches_or_nothing(memory: evokey.Memory) -> None:
    said = "It shows who last changed each line of a file."
    assert citations(answer(memory, said)) == ("git-blame",)
    assert citations(answer(memory, "Look into the manual of the program, please.")) == ()
    rating = memory.rate(show(memory, cited=()), True)
    assert rating is not None and rating.lesson is None and memory.lessons() == []


def test_few_words_match_nothing() -> None:
    assert find_origins("It shows who.", {"a": "it shows who did it"}) == []


def test_a_sentence_credits_what_has_most_of_its_words_and_nothing_else() -> None:
    texts = {"some": "who changed lines of code", "most": "it shows who last changed each line of a file", "none": "a"}
    assert find_origins("It shows who last changed each line.", texts) == ["most"]
    both = "It shows who last changed each line. Somebody changed these lines of code."
    assert find_origins(both, texts) == ["some", "most"]


def test_the_voter_may_name_what_was_right_but_only_of_what_was_shown(memory: evokey.Memory) -> None:
    query_id = show(memory)
    memory.rate(query_id, True, cited=["git-log"])
    assert [one.document for one in memory.lessons()[0].verdicts] == ["git-log"]
    with pytest.raises(InvalidInput, match="'git-merge' was not shown"):
        memory.rate(query_id, True, cited=["git-merge"])


def test_a_downvote_demotes_nothing_and_asks_people(memory: evokey.Memory) -> None:
    rating = memory.rate(show(memory), False, "wrong document", actor="ada")
    assert rating is not None and memory.lessons() == []
    (question,) = memory.reviews().pending()
    assert (question.id, question.query) == (rating.review, QUESTION)
    assert [one.id for one in question.documents] == ["git-blame", "git-log"]


def test_what_is_not_in_the_documents_is_listed_as_a_gap(memory: evokey.Memory) -> None:
    for actor in ("ada", "bob"):
        memory.rate(show(memory), False, "not in the documents", actor=actor)
    memory.rate(memory.show("another", []), False, "outdated")
    assert [(gap.query, gap.votes) for gap in memory.gaps()] == [(QUESTION, 2)]


def test_a_reason_is_one_of_four_and_of_downvotes_only(memory: evokey.Memory) -> None:
    for up, reason in ((False, "boring"), (True, "outdated")):
        with pytest.raises(InvalidInput, match="a downvote may have a reason, one of: wrong document"):
            memory.rate(show(memory), up, reason)


def test_an_unknown_query_id_is_an_error(memory: evokey.Memory) -> None:
    with pytest.raises(UnknownResult, match="can be rated for a week"):
        memory.rate("0" * 32, True)


# ---- a changed or withdrawn vote is exact


def test_a_withdrawn_upvote_leaves_what_evolve_learns_as_if_it_had_never_been_given(
    memory: evokey.Memory, opened: Opener, commands: list[Document]
) -> None:
    other = opened("other", encoder="bm25")
    other.add(commands)
    for one in (memory, other):
        one.feedback("undo my last commit", relevant=["git-revert"], actor="bob")
    query_id = show(memory)
    memory.rate(query_id, True, actor="ada")
    assert memory.rate(query_id, None, actor="ada") is None
    for one in (memory, other):
        one.evolve()
    for query in (QUESTION, "undo my last commit", "history"):
        assert ranking(memory, query) == ranking(other, query)
    assert memory.ratings() == []


def test_up_down_up_is_one_lesson_and_no_open_question(memory: evokey.Memory) -> None:
    query_id = show(memory)
    first = memory.rate(query_id, True, actor="ada")
    memory.rate(query_id, False, actor="ada")
    assert [one.held for one in memory.lessons()] == [True]
    last = memory.rate(query_id, True, actor="ada")
    assert first is not None and last is not None and first.lesson == last.lesson
    assert [one.held for one in memory.lessons()] == [False]
    assert memory.reviews().pending() == []


def test_the_same_vote_again_changes_nothing(memory: evokey.Memory) -> None:
    query_id = show(memory)
    assert memory.rate(query_id, True, actor="ada") == memory.rate(query_id, True, actor="ada")
    assert len(memory.lessons()) == len(memory.ratings()) == 1


def test_a_question_stays_open_while_another_vote_asks_it(memory: evokey.Memory) -> None:
    query_id = show(memory)
    for actor in ("ada", "bob"):
        memory.rate(query_id, False, actor=actor)
    memory.rate(query_id, None, actor="ada")
    assert len(memory.reviews().pending()) == 1
    memory.rate(query_id, None, actor="bob")
    assert memory.reviews().pending() == []


# ---- how long it is kept, and forgetting


def test_what_was_shown_is_kept_in_number_and_in_time(
    opened: Opener, commands: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1_000_000.0]
    memory = opened("timed", encoder="bm25", now=lambda: clock[0])
    memory.add(commands)
    old = show(memory)
    memory.keep_shown()
    clock[0] += 8 * 86_400
    new = show(memory)
    memory.keep_shown()
    assert [one.id for one in memory.shown()] == [new]
    with pytest.raises(UnknownResult):
        memory.rate(old, True)
    monkeypatch.setattr(shown_, "MOST", 3)
    for _ in range(5):
        clock[0] += 1
        last = show(memory)
        memory.keep_shown()
    assert len(memory.shown()) == 3 and memory.shown()[-1].id == last


def test_what_was_shown_is_there_after_closing(tmp_path: Path, commands: list[Document]) -> None:
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add(commands)
        query_id = show(memory)
    with evokey.open(tmp_path / "kb") as memory:
        assert memory.find_shown(query_id).cited == ("git-blame",)


def test_forgetting_a_person_leaves_no_byte_of_what_they_asked_and_voted(
    tmp_path: Path, commands: list[Document]
) -> None:
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add(commands)
        for number in range(200):
            query = f"zebracorn question {number}"
            query_id = memory.show(query, memory.search("history"), actor="evelyn")
            if number % 3 == 0:
                memory.rate(query_id, number % 2 == 0, cited=["git-log"] if number % 2 == 0 else None, actor="evelyn")
        memory.keep_shown()
        memory.evolve()
        kept = show(memory, actor="sam")
        assert memory.forget(actor="evelyn").erased
        assert memory.find_shown(kept).actor == "sam"
    left = [path.name for path in (tmp_path / "kb").rglob("*") if path.is_file() and holds(path)]
    assert left == []


def holds(path: Path) -> bool:
    return any(word in path.read_bytes() for word in (b"zebracorn", b"evelyn"))


def test_forgetting_a_document_forgets_where_it_was_shown(memory: evokey.Memory) -> None:
    query_id, other = show(memory), memory.show("else", memory.search("merge"))
    memory.rate(query_id, True, actor="ada")
    memory.forget(document="git-blame")
    assert [one.id for one in memory.shown()] == [other] and memory.ratings() == []
