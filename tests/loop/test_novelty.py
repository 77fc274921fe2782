"""Novelty: what is known again, what never is, and how often it errs on real queries."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.errors import InvalidQuery, InvalidSettings
from evokey.loop.novelty import Match, Novelty
from evokey.loop.novelty.agreement import Agreement
from evokey.loop.novelty.reading import read
from evokey.types import Vectors

ENCODER = WordLlamaEncoder()
QUESTIONS = [
    "does vitamin d lower blood pressure",
    "How do I undo the last commit?",
    "What is the dose of aspirin for a child of 30 kg?",
    "Which statins are safe with grapefruit juice?",
    "When did Caroline join the support group in Boston?",
    "transfer 50 dollars from checking to savings",
    "Smoking causes lung cancer in women",
    "turn on the lights in the kitchen",
]
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).filter(lambda text: text.strip())


def expanded(*queries: str) -> Novelty:
    novelty = Novelty(ENCODER)
    novelty.add_many(queries)
    return novelty


# ---- what is known again


@settings(max_examples=300, deadline=None)
@given(texts)
@example("👍")
@example("???")
@example("ما هي عاصمة فرنسا؟")
@example("מהי בירת צרפת?")
@example("首都はどこですか")
@example("\u200d")
@example("a\x00b")
@example("n't")
@example("-")
@example("1.000,5 - +3")
def test_a_query_always_matches_itself(query: str) -> None:
    found = expanded(*QUESTIONS, query).known(query)
    assert found is not None
    assert read(found.query).fold == read(query).fold


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(QUESTIONS), st.sampled_from(["  ", "\t", "\n "]), st.sampled_from(["", "?", "!!", " ...", "”"]))
def test_case_spacing_and_punctuation_do_not_matter(query: str, space: str, end: str) -> None:
    worn = space.join(query.rstrip("?").upper().split()) + end
    assert expanded(*QUESTIONS).known(worn) == Match(query, 1.0, "the same words")


@pytest.mark.parametrize(
    ("query", "reworded"),
    [
        ("what is the capital of France?", "what's the capital of france"),
        ("How do I undo the last commit?", "how can I undo the last commit"),
        ("where can I buy a used car in Boston", "where can I purchase a used car in Boston"),
        ("take 5 mg of aspirin daily", "take 5mg aspirin daily"),
        ("I don't want to eat meat", "I do not want to eat meat"),
        ("the loan costs 1,000 dollars", "the loan costs $1000"),
        ("what is the five year survival of breast cancer", "what is the 5 year survival of breast cancer?"),
    ],
)
def test_other_words_for_the_same_are_known(query: str, reworded: str) -> None:
    found = expanded(*QUESTIONS, query).known(reworded)
    assert found is not None
    assert found.query == query
    assert 0.85 <= found.similarity <= 1


# ---- what never is


@pytest.mark.parametrize(
    ("query", "other"),
    [
        ("does vitamin d lower blood pressure", "doesn't vitamin d lower blood pressure"),
        ("does vitamin d lower blood pressure", "does vitamin d never lower blood pressure"),
        ("does vitamin d lower blood pressure", "does vitamin d fail to lower blood pressure"),
        ("does vitamin d lower blood pressure", "does vitamin d raise blood pressure"),
        ("does vitamin d lower blood pressure", "does vitamin b12 lower blood pressure"),
        ("does vitamin d lower blood pressure", "why does vitamin d lower blood pressure"),
        ("coffee with sugar", "coffee without sugar"),
        ("pasta with cheese but no cream", "pasta with cream but no cheese"),
        ("enable two factor login", "disable two factor login"),
        ("freeze my account", "unfreeze my account"),
        ("add a user to the group", "remove a user from the group"),
        ("what to eat before a run", "what to eat after a run"),
        ("turn on the lights", "turn off the lights"),
        ("who painted the Mona Lisa", "when was the Mona Lisa painted"),
        ("where does Tim work", "when does Tim work"),
        ("flights from Boston to Denver", "flights from Denver to Boston"),
        ("convert json to yaml", "convert yaml to json"),
        ("does smoking cause stress", "does stress cause smoking"),
        ("is tea better than coffee", "is coffee better than tea"),
        ("joining 3' rather than 5' ends of strands", "joining 5' rather than 3' ends of strands"),
        ("how to call get_user in Python 3.11", "how to call get_user in Python 3.12"),
        ("install python 3.1 on a mac", "install python 3.10 on a mac"),
        ("how to stop smoking at work", "how to avoid smoking at work"),
        ("how to call get_user in python", "how to call set_user in python"),
        ("open /etc/hosts in an editor", "open /etc/passwd in an editor"),
        ("what is your name", "what is my name"),
        ("call Bob for me", "please call me Bob"),
        ("put bread on my list", "did I put bread on my list"),
        ("size of a 5 mg tablet", "size of a 5 kg tablet"),
        ("sort a list when a > b", "sort a list when a < b"),
        ("quinoa salad recipe", "quinine salad recipe"),
        ("C++ code for sorting", "C# code for sorting"),
        ("кто написал войну и мир", "кто написал анну каренину"),
        ("法国的首都在哪里", "德国的首都在哪里"),
    ],
)
def test_what_is_nearly_the_same_and_means_another_thing_is_new(query: str, other: str) -> None:
    assert expanded(query).known(other) is None
    assert expanded(other).known(query) is None


DRUGS, PLACES = "aspirin ibuprofen warfarin insulin metformin".split(), "Boston Denver Paris Oslo Madrid Lima".split()


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(DRUGS), st.sampled_from(DRUGS), st.sampled_from(PLACES), st.sampled_from(PLACES),
    st.integers(0, 5_000), st.integers(0, 5_000),
)  # fmt: skip
def test_another_name_or_number_makes_another_intent(
    drug: str, other_drug: str, place: str, other_place: str, number: int, other_number: int
) -> None:
    asked = f"how do {number} patients in {place} take {drug}"
    novelty = expanded(asked)
    for changed in (
        f"how do {number} patients in {place} take {other_drug}",
        f"how do {number} patients in {other_place} take {drug}",
        f"how do {other_number} patients in {place} take {drug}",
    ):
        assert (novelty.known(changed) is not None) == (changed == asked)
    assert novelty.known(f"how do {number} patients in {place} not take {drug}") is None


sentences = st.lists(
    st.sampled_from(
        "car vehicle buy purchase big large from to in of not the Boston red house garden fast quickly 5 start begin "
        "help than better cause when is wrong incorrect".split()
    ),
    min_size=1,
    max_size=8,
).map(" ".join)


@settings(max_examples=400, deadline=None)
@given(sentences, sentences | texts)
def test_agreement_does_not_depend_on_who_came_first(one: str, other: str) -> None:
    assume(read(one).fold != read(other).fold)
    agreement = Agreement()
    forth, back = agreement.difference(read(one), read(other)), agreement.difference(read(other), read(one))
    assert (forth is None) == (back is None)


# ---- the set of queries


@settings(max_examples=60, deadline=None)
@given(st.permutations([*QUESTIONS, "How can I undo the last commit", "undo the last commit, please"]))
def test_the_order_of_adding_does_not_matter(queries: list[str]) -> None:
    novelty = expanded(*QUESTIONS, "How can I undo the last commit", "undo the last commit, please")
    shuffled = Novelty(ENCODER)
    for query in queries:
        shuffled.add(query)
    for probe in ("how would I undo the last commit", "turn the lights on in the kitchen", "how do I undo a commit"):
        assert shuffled.known(probe) == novelty.known(probe)
    assert set(shuffled.queries) == set(novelty.queries)


def test_a_query_is_held_once_as_it_was_first_said() -> None:
    novelty = expanded("Dark meat", "dark chocolate")
    assert novelty.add_many(["DARK MEAT?", "rice diet", "Rice diet"]) == 1
    assert novelty.queries == ("Dark meat", "dark chocolate", "rice diet")
    assert len(novelty) == 3


def test_a_removed_query_is_new_again_and_the_others_stay() -> None:
    novelty = expanded(*QUESTIONS)
    before = {query: novelty.known(query) for query in QUESTIONS[1:]}
    assert novelty.remove(QUESTIONS[0].upper())
    assert novelty.known(QUESTIONS[0]) is None
    assert {query: novelty.known(query) for query in QUESTIONS[1:]} == before
    assert not novelty.remove(QUESTIONS[0])
    novelty.add(QUESTIONS[0])
    assert novelty.known(QUESTIONS[0]) == Match(QUESTIONS[0], 1.0, "the same words")
    assert novelty.queries == (*QUESTIONS[1:], QUESTIONS[0])


def test_removal_leaves_the_same_as_never_having_added() -> None:
    chance, novelty = random.Random(3), Novelty(ENCODER)
    words = "red green blue house garden river stone paper music winter".split()
    queries = sorted({" ".join(chance.sample(words, 4)) for _ in range(150)})
    novelty.add_many(queries)
    for query in queries[::2]:
        novelty.remove(query)
    kept = expanded(*queries[1::2])
    assert novelty.queries == kept.queries
    assert [novelty.known(query) for query in queries] == [kept.known(query) for query in queries]


def test_nothing_is_known_at_first() -> None:
    assert Novelty().known("anything") is None
    assert Novelty().queries == ()


@pytest.mark.parametrize("query", ["", "  \n", "\ud800"])
def test_a_query_that_says_nothing_is_refused_by_name(query: str) -> None:
    for ask in (Novelty(ENCODER).known, Novelty(ENCODER).add, Novelty(ENCODER).remove):
        with pytest.raises(InvalidQuery, match="the query is"):
            ask(query)


@pytest.mark.parametrize("near", [0, -1, 1.01, float("nan")])
def test_a_threshold_that_is_no_cosine_is_refused(near: float) -> None:
    with pytest.raises(InvalidSettings, match="near is a cosine"):
        Novelty(near=near)


@pytest.mark.parametrize(
    "query",
    ["word " * 19_000, "a" * 99_000, "/" * 99_000, "not " * 24_000, "' " * 40_000, "a_b" * 30_000, "1,000" * 19_000],
)
def test_a_very_long_query_is_known_by_repetition_only(query: str) -> None:
    novelty = expanded(query)
    assert novelty.known(query) is not None
    assert novelty.known(query[: len(query) // 2] + " elephants") is None


class Counting(WordLlamaEncoder):
    """WordLlama that notes what it was asked."""

    kind: ClassVar[str] = "dense"

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    def queries(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        return super().queries(texts)


def test_many_are_encoded_together_and_a_repeat_is_not_encoded_at_all() -> None:
    encoder = Counting()
    novelty = Novelty(encoder)
    novelty.add_many(QUESTIONS)
    novelty.add_many(QUESTIONS)
    novelty.known(QUESTIONS[3])
    assert encoder.asked == [QUESTIONS]
    novelty.known("something else")
    assert encoder.asked == [QUESTIONS, ["something else"]]


def test_readers_see_whole_states_while_one_writes() -> None:
    novelty, stop, faults = Novelty(ENCODER), threading.Event(), []
    queries = [f"question {number} about subject{number}" for number in range(400)]

    def ask() -> None:
        chance = random.Random(threading.get_ident())
        while not stop.is_set():
            query = chance.choice(queries)
            found = novelty.known(query)
            if found is not None and found.query != query:
                faults.append((query, found))

    readers = [threading.Thread(target=ask) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for query in queries:
            novelty.add(query)
        for query in queries[::7]:
            novelty.remove(query)
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert faults == []
    assert len(novelty) == 400 - len(queries[::7])


# ---- real queries


def test_of_real_wordings_one_match_in_a_hundred_is_false_at_most(dataset: Callable[[str], Any]) -> None:
    judged = dataset("clinc150").judged
    queries = random.Random(1).sample(sorted(judged), 3_000)
    novelty, hits, false = Novelty(ENCODER), 0, 0
    for query in queries:
        found = novelty.known(query)
        if found is None:
            novelty.add(query)
        else:
            hits += 1
            false += judged[found.query].keys() != judged[query].keys()
    assert hits > 0.08 * len(queries)
    assert false <= 0.01 * hits


@pytest.mark.parametrize("name", ["pubmedqa_l", "cranfield", "locomo10", "scifact"])
def test_different_questions_of_one_field_are_hardly_ever_taken_for_each_other(
    dataset: Callable[[str], Any], name: str
) -> None:
    judged = dataset(name).judged
    novelty = Novelty(ENCODER)
    for query, right in judged.items():
        if found := novelty.known(query):
            assert judged[found.query].keys() & right.keys(), (query, found)
        novelty.add(query)


def test_claims_turned_into_their_opposite_are_new(dataset: Callable[[str], Any]) -> None:
    claims = sorted(dataset("scifact").judged)
    made = []
    for claim in claims:
        made.append((claim, re.sub(r"\b(is|are|can|does|has|have|do)\b", r"\1 not", claim, count=1)))
        made.append((claim, re.sub(r"\d+", lambda found: str(int(found[0]) + 1), claim, count=1)))
        made.append((claim, re.sub(r"\bincrease", "decrease", claim, count=1)))
        made.append(
            (claim, re.sub(r"\b(high|low)er\b", lambda found: {"h": "lower", "l": "higher"}[found[0][0]], claim))
        )
    turned = [(claim, other) for claim, other in made if claim != other]
    assert len(turned) >= 200
    near = (ENCODER.queries([claim for claim, _ in turned]) * ENCODER.queries([other for _, other in turned])).sum(1)
    assert np.median(near) > 0.95
    assert [(claim, other) for claim, other in turned if expanded(claim).known(other)] == []
