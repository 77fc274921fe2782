"""Labels, answers in passages, and rerankers: what was found, judged without an answer."""

from __future__ import annotations

import math

import pytest
from conftest import DATA, Dataset, Opener
from conftest import _records as records
from hypothesis import given
from hypothesis import strategies as st
from verifiers.attempts import Reranking, attempt, hits
from wire import Reply, Wire

from evokey import registry
from evokey.types import Attempt, Hit
from evokey.verifiers.answer_match import AnswerMatch
from evokey.verifiers.labels import Labels
from evokey.verifiers.rerank import Rerank
from evokey.verifiers.words import contains, words


def judged(relevant: dict[str, float] | None) -> Attempt:
    return attempt(relevant=relevant)


@pytest.mark.parametrize(
    ("metric", "k", "relevant", "score"),
    [
        ("recall", 10, {"paris": 1, "gone": 1}, 0.5),
        ("recall", 1, {"lyon": 1}, 0.0),
        ("recall", 2, {"lyon": 1, "wine": 0}, 1.0),
        ("hit", 3, {"wine": 2, "gone": 5}, 1.0),
        ("hit", 2, {"wine": 2}, 0.0),
        ("ndcg", 10, {"lyon": 1}, 1 / math.log2(3)),
        ("ndcg", 10, {"lyon": 2, "paris": 1}, (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))),
        ("ndcg", 1, {"paris": 3, "lyon": 3}, 1.0),
    ],
)
def test_the_metrics_of_judged_documents(metric: str, k: int, relevant: dict[str, float], score: float) -> None:
    made = Labels(metric, k, threshold=score)  # type: ignore[arg-type]
    ruling = made.verify(judged(relevant))
    assert ruling.score == pytest.approx(score)
    assert ruling.success or score == 0


def test_a_score_at_the_threshold_succeeds_and_one_below_it_does_not() -> None:
    half = judged({"paris": 1, "gone": 1})
    assert Labels(threshold=0.5).verify(half).success is True
    assert Labels(threshold=0.500001).verify(half).success is False


def test_judged_documents_get_their_grades_and_those_judged_wrong_negative_ones() -> None:
    ruling = Labels().verify(judged({"paris": 2, "lyon": 0, "wine": -3, "gone": 1}))
    assert ruling.grades == {"paris": 2, "lyon": -1, "wine": -3}


@pytest.mark.parametrize("relevant", [None, {}, {"gone": 0}, {"paris": math.nan, "lyon": math.inf}])
def test_without_a_document_judged_right_labels_abstain(relevant: dict[str, float] | None) -> None:
    ruling = Labels().verify(judged(relevant))
    assert (ruling.success, ruling.score, dict(ruling.grades)) == (None, None, {})


def test_a_document_found_twice_counts_once() -> None:
    twice = attempt(found=hits("paris", "paris", "lyon"), relevant={"paris": 1, "lyon": 1})
    assert Labels("recall", 2).verify(twice).score == 1.0


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("The  CAFÉ, Zürich!", "cafe zurich"),
        ("Anna's dogs' house", "anna dogs house"),
        ("the U.S. in 1,000 days", "us in 1000 days"),
        ("3.5 litres", "3.5 litres"),
        ("well-known", "well known"),
        ("a", "a"),
        ("ﬁnd Straße", "find strasse"),
        ("東京に", "東 京 に"),
        ("が", "が"),
        ("दिल्ली में", "दिल्ली में"),
    ],
)
def test_words_are_compared_without_case_accents_articles_and_punctuation(text: str, same: str) -> None:
    assert words(text) == same.split()


@given(st.text(), st.text())
def test_a_text_contains_its_own_words_and_words_are_stable(text: str, more: str) -> None:
    found = words(text)
    assert not found or contains(words(more) + found + words(more), found)


@pytest.mark.parametrize(
    ("passage", "gold", "within"),
    [
        ("We concatenate strings.", "cat", False),
        ("We concatenate strings.", "strings", True),
        ("She visited São Paulo in May.", "sao  paulo", True),
        ("She visited Sao Tome, Paulo stayed.", "Sao Paulo", False),
        ("He lives in the New York City area", "New York", True),
        ("It opened on 7 May 2023.", "7 may, 2023", True),
        ("我住在北京市", "北京", True),
        ("A charity for mental-health care", "Mental health", True),
    ],
)
def test_an_answer_is_contained_as_whole_words(passage: str, gold: str, within: bool) -> None:
    ruling = AnswerMatch(letters=3 if gold == "cat" else 4).verify(
        attempt("?", None, gold, found=hits(one=passage, two="Nothing here."))
    )
    assert (ruling.success, dict(ruling.grades)) == (within, {"one": 1.0} if within else {})


@pytest.mark.parametrize(
    "gold", ["yes", "No.", "2", "2022", "the", "", "Max", "one", "not true", "12 34", "👍", "both", "SUPPORTS"]
)
def test_an_answer_that_proves_nothing_is_an_abstention(gold: str) -> None:
    found = hits(one=f"Yes, no 2 2022 the Max one not true 12 34 both 👍 {gold}")
    assert AnswerMatch().verify(attempt("?", None, gold, found=found)).success is None


def test_a_long_answer_proves_something_where_it_is_found_and_nothing_where_it_is_not() -> None:
    long = "They grow towards the light because a hormone gathers on the side that lies in the shade"
    assert AnswerMatch().verify(attempt("?", None, long, found=hits(one="Other words."))).success is None
    assert AnswerMatch().verify(attempt("?", None, long, found=hits(one=f"Well: {long}!"))).grades == {"one": 1.0}


def test_an_answer_that_the_question_says_proves_nothing() -> None:
    either = attempt(
        "Who is older, Maria Sanders or John Baker?", None, "Maria Sanders", found=hits(one="Maria Sanders!")
    )
    assert AnswerMatch().verify(either).success is None


def test_an_answer_in_many_passages_is_a_success_that_tells_none_apart() -> None:
    four = hits(**{f"d{n}": f"Part {n}: the dance studio opened" for n in range(4)}, e="Other")
    ruling = AnswerMatch().verify(attempt("What?", None, "A dance studio", found=four))
    assert (ruling.success, ruling.score, dict(ruling.grades)) == (True, 4, {})
    three = AnswerMatch().verify(attempt("What?", None, "A dance studio", found=four[1:]))
    assert set(three.grades) == {"d1", "d2", "d3"}
    one_word = AnswerMatch().verify(attempt("What?", None, "studio", found=four[2:]))
    assert (one_word.success, dict(one_word.grades)) == (True, {})


def test_titles_count_only_where_they_are_said_to() -> None:
    document = hits("paris")[0].document
    titled = type(document)("t", "It rained.", "Grand Hotel Vienna")
    found = (Hit("t", 1.0, titled),)
    asked = attempt("Where?", None, "Hotel Vienna", found=found)
    assert AnswerMatch().verify(asked).success is False
    assert AnswerMatch(titles=True).verify(asked).grades == {"t": 1.0}


def test_how_many_passages_must_hold_an_answer_and_among_how_many() -> None:
    asked = attempt("?", None, "France", found=hits("lyon", "paris", "wine"))
    assert AnswerMatch(threshold=2).verify(asked).success is True
    assert AnswerMatch(threshold=3).verify(asked).success is False
    assert AnswerMatch(k=1).verify(asked).success is False


def test_on_locomo_what_an_answer_match_vouches_for_is_mostly_judged_right(opened: Opener) -> None:
    folder = DATA / "locomo10"
    if not (folder / "answers.jsonl").exists():
        pytest.skip(f"SKIPPED FOR WANT OF DATA: {folder} is not there")
    data = Dataset(folder)
    queries = {row["_id"]: row["text"] for row in records(folder / "queries.jsonl")}
    memory = opened(encoder="bm25")
    memory.add(data.documents)
    right = vouched = judged = plain = plainly_right = 0
    for row in records(folder / "answers.jsonl")[::4]:
        query = queries[row["_id"]]
        relevant = data.judged.get(query, {})
        found = tuple(memory.search(query, k=10))
        ruling = AnswerMatch().verify(Attempt(query, found, expected=(str(row["answer"]),)))
        vouched += len(ruling.grades)
        right += len(set(ruling.grades) & set(relevant))
        judged += len({hit.id for hit in found} & set(relevant))
        holding = {hit.id for hit in found if contains(words(hit.document.text), words(str(row["answer"])))}
        plain += len(holding)
        plainly_right += len(holding & set(relevant))
    assert vouched > 60
    assert right / vouched > 0.8 > plainly_right / plain
    assert right / judged > 0.2


def test_a_reranker_vouches_for_each_document_that_reaches_the_threshold() -> None:
    ruling = Rerank(Reranking({"paris": 0.5, "lyon": 0.49, "wine": -2.0}), 0.5, wrong=0.0).verify(attempt())
    assert (ruling.success, ruling.score) == (True, 0.5)
    assert ruling.grades == {"paris": 1.0, "wine": -1.0}
    assert Rerank(Reranking({"wine": 0.2}), 0.5).verify(attempt()).success is False


def test_scores_that_are_no_numbers_say_nothing() -> None:
    some = Rerank(Reranking({"paris": math.nan, "lyon": 0.7}), 0.5).verify(attempt())
    assert (some.success, dict(some.grades)) == (True, {"lyon": 1.0})
    none = Rerank(Reranking(dict.fromkeys(("paris", "lyon", "wine"), math.nan)), 0.5).verify(attempt())
    assert (none.success, dict(none.grades)) == (None, {})
    assert Rerank(Reranking({}, count=2), 0.5).verify(attempt()).reason == "told/1 gave 2 scores for 3 documents"


def test_a_reranker_behind_http_is_a_component_inside() -> None:
    pytest.importorskip("httpx", reason="SKIPPED FOR WANT OF A PACKAGE: evokey[remote]")
    found = hits(revert="undo a change", log="Show the history")
    with Wire() as wire:
        endpoint = {"name": "endpoint", "format": "tei", "base_url": wire.host, "retries": 0}
        verifier = registry.build("verifier", {"name": "rerank", "reranker": endpoint, "threshold": 0.5})
        assert verifier.verify(attempt("undo a change", found=found)).grades == {"revert": 1.0}
        wire.first = [Reply(500)]
        ruling = verifier.verify(attempt("undo a change", found=found))
    assert ruling.success is None
    assert "did not answer" in ruling.reason
