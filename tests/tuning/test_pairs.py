"""Lessons become training data, and what is held out was never seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evokey.evolution.judgements import Judgements
from evokey.tuning.pairs import Sources, TrainingSet, group_wordings, split, training_set

QUESTIONS = [f"how do I {verb} the {thing}" for verb in ("open", "paint", "sell", "clean") for thing in ("door", "car")]
TEXTS = {number: f"text {number}" for number in range(10)}


def sources(found: dict[str, list[int]], others: tuple[int, ...] = ()) -> Sources:
    return Sources(lambda query, number: TEXTS.get(number), lambda query: found.get(query, []), others)


def test_a_verdict_weighs_its_grade_times_its_evidence() -> None:
    lessons = Judgements({"q": {1: 1.0, 2: 0.5}}, {}, evidence={("q", 2): 0.5})
    made = training_set(lessons, sources({}))
    assert dict(zip(made.positives[0], made.weights[0], strict=True)) == {
        made.texts.index("text 1"): 1.0,
        made.texts.index("text 2"): 0.25,
    }


def test_what_was_named_wrong_comes_before_what_was_only_found_and_what_is_right_is_no_negative() -> None:
    made = training_set(Judgements({"q": {1: 1.0}}, {}, {"q": {5: 1.0}}), sources({"q": [1, 3, 5, 4]}))
    assert [made.texts[at] for at in made.negatives[0]] == ["text 5", "text 3", "text 4"]


def test_a_document_with_the_text_of_a_right_one_is_no_negative() -> None:
    made = TrainingSet.of({"q": {1: 1.0}}, {1: "same", 2: "same", 3: "other"}, {"q": [2, 3]})
    assert [made.texts[at] for at in made.negatives[0]] == ["other"]


def test_a_query_whose_documents_have_no_text_is_left_out() -> None:
    made = TrainingSet.of({"q": {1: 1.0}, "r": {2: 1.0}}, {1: " ", 2: "text"}, {})
    assert made.queries == ("r",)


def test_wordings_that_share_almost_all_their_words_are_one_group() -> None:
    groups = group_wordings(["How do I open the door?", "how do I open the doors", "where is the car"])
    assert groups[0] == groups[1] != groups[2]


def test_a_question_without_words_is_a_group_of_its_own() -> None:
    assert len(set(group_wordings(["?", "!", "the car"]).tolist())) == 3


@given(st.lists(st.sampled_from([*QUESTIONS, *(f"{one}s, please" for one in QUESTIONS)]), min_size=1, unique=True))
def test_every_question_is_in_one_part_and_its_other_wordings_with_it(queries: list[str]) -> None:
    parts = split(queries, 0.2, 0.2)
    sets = [parts.train, parts.validation, parts.held_out]
    assert sum(map(len, sets)) == len(queries)
    assert frozenset().union(*sets) == frozenset(queries)
    groups = dict(zip(queries, group_wordings(queries).tolist(), strict=True))
    for part in sets:
        assert not {groups[one] for one in part} & {groups[one] for one in queries if one not in part}


def test_the_parts_do_not_depend_on_the_order_of_the_questions() -> None:
    assert split(QUESTIONS, 0.25, 0.25) == split(QUESTIONS[::-1], 0.25, 0.25)
