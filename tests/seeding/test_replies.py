"""A reply becomes questions; whatever is no plain question on its passage is dropped, and counted."""

from __future__ import annotations

import json

import pytest

from evokey.llm.prompts import load_packaged
from evokey.seeding.reading import Source, read_questions
from evokey.seeding.report import Drop

PASSAGE = (
    "Cast iron pans rust when they stay wet. Dry the pan on the stove, rub it with a thin film of oil, and bake it for "
    "an hour. This is called seasoning, and it is the reason that nothing sticks to old pans."
)
SOURCE = Source(PASSAGE, prompt=load_packaged("questions", "seeding").words)
GOOD = ["How do I keep my skillet from getting rusty?", "Why does food come off an old skillet so easily?"]


@pytest.mark.parametrize(
    "reply",
    [
        "\n".join(GOOD),
        "Sure! Here are two questions:\n1. {}\n2) {}".format(*GOOD),
        "- **{}**\n* “{}”".format(*GOOD),
        "<think>What? A pan? Who would ask that?</think>\nQ1: {}\nQuestion 2: {}".format(*GOOD),
        json.dumps(GOOD),
        json.dumps({"questions": [{"question": one} for one in GOOD]}),
        "```json\n" + json.dumps(GOOD) + "\n```",
    ],
)
def test_questions_are_read_in_whatever_list_a_model_writes_them(reply: str) -> None:
    assert read_questions(reply, SOURCE, 2).texts == tuple(GOOD)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Cast iron rusts.", Drop.NO_QUESTION),
        ('{"question": "How do I season a skillet at home?', Drop.NO_QUESTION),
        ("Rust why?", Drop.LENGTH),
        ("How do I " + "really " * 80 + "season it?", Drop.LENGTH),
        ("How long does an oiled skillet " + "and stay and stay " * 8 + "?", Drop.LENGTH),
        ("What is the purpose of the text?", Drop.UNCLEAR),
        ("What does this passage say about skillets?", Drop.UNCLEAR),
        ("Cast iron pans rust when they stay wet?", Drop.COPY),
        ("Is it so that nothing sticks to old pans?", Drop.COPY),
        ("Which questions are answered by this passage and by few others?", Drop.UNCLEAR),
        ("Is asked by somebody who has never seen it and wants to know something?", Drop.ECHO),
        ("Comment est-ce que je peux protéger une poêle dans la cuisine pour les enfants ?", Drop.LANGUAGE),
        ("鋳鉄のフライパンはなぜ錆びるのですか？", Drop.LANGUAGE),
    ],
)
def test_what_is_no_question_on_the_passage_is_dropped_with_its_reason(line: str, reason: Drop) -> None:
    found = read_questions(line, SOURCE, 2)
    assert (found.texts, dict(found.dropped)) == ((), {reason: 1})


def test_a_question_in_the_language_of_its_passage_is_kept_whatever_that_is() -> None:
    source = Source("鋳鉄のフライパンは濡れたままにすると錆びます。弱火で乾かし、油を薄く塗ってください。")
    assert read_questions("1. どうすればスキレットの錆を防げますか？", source, 2).texts == (
        "どうすればスキレットの錆を防げますか？",
    )


def test_the_same_question_in_almost_the_same_words_is_asked_once() -> None:
    again = [GOOD[0], "How do I keep my skillet from getting rusty please?", GOOD[0].upper()]
    assert dict(read_questions("\n".join(again), SOURCE, 5).dropped) == {Drop.DUPLICATE: 2}
    known = Source(PASSAGE, known=[GOOD[0]])
    assert read_questions(GOOD[0], known, 5).texts == ()


@pytest.mark.parametrize(
    "reply", ["", "   \n\n", "<think>hm", "[]", "{}", "null", "[[[[", "[" * 50_000, '{"a": 1}', "\x00\ud800"]
)
def test_junk_is_no_question_and_no_error(reply: str) -> None:
    assert read_questions(reply, SOURCE, 2).texts == ()


def test_of_ten_thousand_lines_the_first_few_are_read_and_no_more_kept_than_asked_for() -> None:
    letters = [f"How does skillet number {chr(97 + at % 26) * 3}{at} differ from {at * 7}?" for at in range(10_000)]
    found = read_questions("\n".join(letters), SOURCE, 2)
    assert len(found.texts) == 2
    assert sum(found.dropped.values()) == 62
