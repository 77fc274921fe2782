"""Who teaches and who tests, on sets where the right answer can be counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evokey.bench.data import Dataset
from evokey.bench.protocols import Question, Split, split
from evokey.errors import InvalidInput
from evokey.types import Document

JUDGED = {f"q{n}": {f"d{n % 4}": 1} for n in range(12)}
DATA = Dataset(
    "hand",
    [Document(f"d{n}", f"text {n}") for n in range(4)],
    {id: f"words of {id}" for id in [*JUDGED, "t1", "t2"]},
    JUDGED,
    {"train": {"t1": {"d0": 2}, "t2": {"d1": 0}}, "test": JUDGED},
    excluded={"q3": frozenset({"d0"})},
)


def ids(questions: tuple[Question, ...]) -> set[str]:
    return {one.id for one in questions}


@pytest.mark.parametrize(("rate", "taught"), [(0.25, 3), (0.5, 6), (0.75, 9), (0.01, 1), (0.99, 11)])
def test_a_holdout_deals_every_judged_query_once(rate: float, taught: int) -> None:
    dealt = split(DATA, "holdout", rate=rate)
    assert (len(dealt.taught), len(dealt.tested)) == (taught, 12 - taught)
    assert ids(dealt.taught) | ids(dealt.tested) == set(JUDGED)
    assert not ids(dealt.taught) & ids(dealt.tested)


def test_a_seed_decides_the_split_and_nothing_else_does() -> None:
    shuffled = replace(DATA, judged=dict(reversed(JUDGED.items())))
    assert split(DATA, "holdout", seed=1) == split(shuffled, "holdout", seed=1)
    assert split(DATA, "holdout", seed=1) != split(DATA, "holdout", seed=2)


def test_at_most_so_many_judged_queries_are_taken() -> None:
    dealt = split(DATA, "holdout", rate=0.5, most=4)
    assert (len(dealt.taught), len(dealt.tested)) == (2, 2)


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.5, 2.0])
def test_a_rate_that_is_no_share_is_refused(rate: float) -> None:
    with pytest.raises(InvalidInput, match=f"between 0 and 1, not {rate}"):
        split(DATA, "holdout", rate=rate)


def test_documents_to_leave_out_come_with_their_question() -> None:
    dealt = split(DATA, "holdout")
    excluded = {one.id: one.excluded for one in (*dealt.taught, *dealt.tested)}
    assert excluded.pop("q3") == {"d0"}
    assert set(excluded.values()) == {frozenset()}


def test_the_official_protocol_teaches_train_and_tests_test() -> None:
    dealt = split(DATA, "official")
    assert [(one.id, one.grades) for one in dealt.taught] == [("t1", {"d0": 2})]  # t2 has no right document
    assert ids(dealt.tested) == set(JUDGED)
    with pytest.raises(InvalidInput, match=r"hand has no train judgements .* use --protocol holdout"):
        split(replace(DATA, splits={"test": JUDGED}), "official")


def test_queries_with_the_same_right_documents_are_wordings_of_one_intent() -> None:
    dealt = split(DATA, "same-intent")
    assert sorted(min(one.right) for one in dealt.taught) == ["d0", "d1", "d2", "d3"]
    assert len(dealt.tested) == 8
    assert not ids(dealt.taught) & ids(dealt.tested)


def test_further_wordings_that_came_with_a_set_are_tested_against_the_one_that_was_taught() -> None:
    forms = {"q1": ("the first, again", "words of q1", "the first, once more"), "q2": ("the second, again",)}
    dealt = split(replace(DATA, forms=forms), "same-intent")
    assert {one.id.partition("#")[0] for one in dealt.taught} == {"q1", "q2"}
    texts = {one.text for one in (*dealt.taught, *dealt.tested)}
    assert texts == {*forms["q1"], "words of q2", *forms["q2"]}
    assert (len(dealt.taught), len(dealt.tested)) == (2, 3)
    assert all(one.grades == JUDGED[one.id.partition("#")[0]] for one in dealt.tested)


def test_once_teaches_one_wording_of_half_of_the_intents_and_tests_the_others_and_strangers() -> None:
    alone = {"alone": {"d9": 1}, "beside": {"d0": 1, "d9": 1}}  # one wording each
    words = {id: f"words of {id}" for id in alone}
    dealt = split(replace(DATA, queries={**DATA.queries, **words}, judged={**JUDGED, **alone}), "once", seed=2)
    taught = {min(one.right) for one in dealt.taught}
    assert len(taught) == len(dealt.taught) == 2, "two of the four intents with several wordings"
    found = dealt.groups()
    assert len(found["related"]) == 4 and all(min(one.right) in taught for one in found["related"])
    assert not ids(dealt.taught) & ids(dealt.tested)
    assert all(not one.right & taught for one in found["unrelated"])
    assert "alone" in ids(tuple(found["unrelated"]))
    assert ("beside" in ids(dealt.tested)) == ("d0" not in taught), "a question of another intent is no other wording"


def test_a_topic_teaches_similar_questions_and_all_others_are_tested() -> None:
    fruit = [f"how do I store {one} at home" for one in ("apples", "pears", "plums", "grapes", "lemons", "cherries")]
    stars = [f"which telescope shows the planet {one}" for one in ("Mars", "Venus", "Saturn", "Uranus", "Pluto")]
    cars = [f"change the engine oil of a {one} truck" for one in ("Ford", "Volvo", "Fiat", "Scania", "Dodge")]
    queries = {f"{kind}{n}": text for kind, some in zip("fsc", (fruit, stars, cars), strict=True)
               for n, text in enumerate(some)}  # fmt: skip
    data = replace(DATA, queries=queries, judged={id: {"d1": 1} for id in queries})
    kinds = set()
    for seed in range(6):
        dealt = split(data, "topic", rate=0.5, seed=seed)
        assert dealt == split(data, "topic", rate=0.5, seed=seed)
        assert ids(dealt.taught) | ids(dealt.tested) == set(queries) and len(dealt.taught) <= 3
        assert len({one.id[0] for one in dealt.taught}) == 1, "lessons of one topic"
        assert {one.id[0] for one in dealt.tested} == set("fsc"), "tests of all"
        kinds |= {one.id[0] for one in dealt.taught}
    assert len(kinds) > 1, "the seed draws the topic"


def test_a_curve_is_cut_after_one_three_and_ten_lessons() -> None:
    dealt = split(DATA, "curve", rate=0.75)
    assert [len(part) for part in dealt.steps()] == [1, 2, 6]
    assert tuple(one for part in dealt.steps() for one in part) == dealt.taught
    assert dealt == split(DATA, "holdout", rate=0.75)


def test_without_several_wordings_there_is_no_same_intent() -> None:
    with pytest.raises(InvalidInput, match="no intent in several words"):
        split(replace(DATA, judged={"q1": {"d1": 1}, "q2": {"d2": 1}}), "same-intent")


def test_taught_overlapping_and_disjoint_queries_are_told_apart() -> None:
    def asked(id: str, text: str, *right: str) -> Question:
        return Question(id, text, dict.fromkeys(right, 1))

    dealt = Split(
        (asked("t", "taught", "d1"),),
        (asked("o", "shares one", "d1", "d2"), asked("n", "shares none", "d3"), asked("r", "taught", "d1")),
    )
    found = {name: [one.id for one in ones] for name, ones in dealt.groups().items()}
    assert found == {"taught": ["t"], "untaught": ["o", "n"], "related": ["o"], "unrelated": ["n"]}


def test_a_judged_wrong_document_makes_no_overlap() -> None:
    dealt = Split((Question("t", "a", {"d1": 1, "d2": 0}),), (Question("o", "b", {"d2": 1}),))
    assert [one.id for one in dealt.groups()["unrelated"]] == ["o"]


def test_batches_hold_all_lessons_in_order_in_parts_of_nearly_equal_size() -> None:
    dealt = split(DATA, "stream", rate=0.9)
    parts = dealt.batches(4)
    assert [len(part) for part in parts] == [3, 3, 2, 3]
    assert tuple(one for part in parts for one in part) == dealt.taught
    assert [len(part) for part in dealt.batches(40)] == [1] * 11


def test_an_unknown_protocol_is_named_with_the_known_ones() -> None:
    with pytest.raises(
        InvalidInput,
        match="no protocol 'guess'; choose one of: holdout, official, same-intent, once, topic, stream, curve",
    ):
        split(DATA, "guess")
