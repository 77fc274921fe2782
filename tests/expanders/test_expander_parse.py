"""What models really write, and what is left of it when it is cut, stained and garbled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA
from expanders.scripted import Scripted, make
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evokey.errors import ExpansionFailed
from evokey.expanders import parse
from evokey.expanders.recorded import pieces
from evokey.expanders.units import LONGEST, MOST, handfuls, normal, passage, shorten, tidy
from evokey.types import Unit

WRITTEN = Path(__file__).parent / "written.jsonl"
"""What SmolLM2-135M-Instruct wrote when it was asked with these prompts."""
QUERY = "Why do we breathe through one nostril at a time?"
METHODS = [
    "hyde", "decomposition", "facet", "contrastive", "clarify", "specify", "custom-rewriter", "diver", "bge-rewriter",
    "turbo-rewriter",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a</think><expansion>The nasal cycle.</expansion> Bye", "The nasal cycle."),
        ("<think>put it in <expansion> tags</think>\n<expansion>The nasal cycle.", "The nasal cycle."),
        ("so I think\n</think>\nThe nasal cycle.", "The nasal cycle."),
        ("<think>never closed <expansion>The nasal cycle.</expansion>", "The nasal cycle."),
        ("The nasal cycle.\n<think>and then", "The nasal cycle."),
        ("<think>all of it is a thought", ""),
        ("<think>a <expansion>The nasal cycle.</expansion></think>", "The nasal cycle."),
        ("between <expansion> and </expansion>:\n<expansion>The nasal cycle.</expansion>", "The nasal cycle."),
        ("<EXPANSION>\nThe nasal cycle.\n< / expansion >", "The nasal cycle."),
        ("Reasoning: bla\n\n**Rewritten query:**\nThe nasal cycle.", "The nasal cycle."),
        ("## Expansion\nThe nasal cycle.", "The nasal cycle."),
        ("<wording>\na\n</wording>\nThe nasal cycle.\n<passages>\n[1] cut", "The nasal cycle."),
        ("<thinking>a</thinking><reasoning>b</reasoning>The nasal cycle.", "The nasal cycle."),
    ],
)
def test_the_answer_is_found_among_the_thoughts(text: str, expected: str) -> None:
    assert parse.answer(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        '["What is the nasal cycle?", "How long does it last?"]',
        "['What is the nasal cycle?', 'How long does it last?',]",
        '```json\n{"sub_queries": ["What is the nasal cycle?", // first\n "How long does it last?"]}\n```',
        '{"queries": [{"query": "What is the nasal cycle?", "why": "base"}, {"query": "How long does it last?"',
        '{"1": "What is the nasal cycle?", "2": "How long does it las',
        "Sure! Here are the queries:\n\n1. **What is the nasal cycle?**\n2. *How long does it last?*\n\nLet me know!",
        "- What is the nasal cycle?\n   Rationale: the base\n- How long does it last?",
        "• What is the nasal cycle?\n• “How long does it last?”",
        "Sub-query 1: What is the nasal cycle?\nSub-query 2: How long does it last?",
        "(1) What is the nasal cycle? (2) How long does it last?",
        "What is the nasal cycle?\nHow long does it last?",
        "What is the nasal cycle? How long does it last?",
        "### Sub-queries\n> 1. What is the nasal cycle?\n> 2. How long does it last?\n---",
        "| a. What is the nasal cycle? |\n| b. How long does it last? |",
    ],
)
def test_a_list_is_a_list_however_it_is_written(text: str) -> None:
    first, second = parse.items(text)
    assert first == "What is the nasal cycle?"
    assert "How long does it last?".startswith(second)
    assert len(second) > 15


def test_a_list_in_another_language() -> None:
    assert parse.items("1、什么是鼻周期？\n2、鼻周期持续多长时间？") == ["什么是鼻周期？", "鼻周期持续多长时间？"]
    assert parse.passage("鼻周期是正常现象。气流在两个鼻孔之间交替。") == [
        "鼻周期是正常现象。",
        "气流在两个鼻孔之间交替。",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "anatomy: septum, turbinate\nphysiology: nasal cycle, airflow",
        "1. **Anatomy**: septum, turbinate\n2. **Physiology**: nasal cycle, airflow",
        "### Facet 1: Anatomy\n- septum\n- turbinate\n### Facet 2: Physiology\n- nasal cycle\n- airflow",
        "**Anatomy**\nKeywords: septum, turbinate\n\n**Physiology**\nKeywords: nasal cycle; airflow",
        '{"Anatomy": ["septum", "turbinate"], "Physiology": ["nasal cycle", "airflow",]}',
        '{"facets": [{"name": "Anatomy", "keywords": ["septum", "turbinate"]}, {"name": "Physiology", "keywords": '
        '["nasal cycle", "airflow"',
        "[{'facet': 'Anatomy', 'keywords': 'septum, turbinate'}, {'facet': 'Physiology', 'keywords': "
        "'nasal cycle, airflow'}]",
    ],
)
def test_facets_keep_their_keywords(text: str) -> None:
    found = [(name.lower(), keywords) for name, keywords in parse.facets(text)]
    assert found == [("anatomy", ["septum", "turbinate"]), ("physiology", ["nasal cycle", "airflow"])]


@pytest.mark.parametrize(
    "text",
    [
        "positive: nasal cycle, negative feedback\nnegative: snoring, cold",
        "**POSITIVE EXPANSION (30+ terms):**\n- nasal cycle\n- negative feedback\n\n"
        "**NEGATIVE EXPANSION (20+):** snoring, cold",
        "## Positive terms\n1. nasal cycle\n2. negative feedback\n## Negative terms\n1. snoring\n2. cold",
        '{"positive": ["nasal cycle", "negative feedback"], "negative": ["snoring", "cold"',
        '```json\n{"positive_terms": ["nasal cycle", "negative feedback",], "negative_terms": ["snoring", "cold"]}',
        "<positive>nasal cycle, negative feedback</positive><negative>snoring, cold</negative>",
        "Positive: nasal cycle, negative feedback Negative: snoring, cold",
        "Relevant: nasal cycle, negative feedback\nTerms to avoid: snoring, cold",
        "Positive:\nnasal cycle\nnegative feedback\n\nMisleading homonyms: snoring\nDo not include: cold",
        "negative: snoring, cold\npositive: nasal cycle, negative feedback",
    ],
)
def test_wanted_and_unwanted_terms_keep_their_sides(text: str) -> None:
    assert parse.poles(text) == (["nasal cycle", "negative feedback"], ["snoring", "cold"])


def test_a_passage_loses_its_markup_and_keeps_its_sentences() -> None:
    text = """Certainly! Here's a passage:

# The nasal cycle
The **nasal cycle** shifts [airflow](http://a.b) between the nostrils.<br/> It lasts *hours*.

| a | b |
|---|---|
- Turbinates swell with blood.
- The septum divides the nose.

```python
def cycle():
    return "left"
```
I hope this helps!"""
    assert parse.passage(text) == [
        "The nasal cycle shifts airflow between the nostrils.",
        "It lasts hours.",
        "a b",
        "Turbinates swell with blood.",
        "The septum divides the nose.",
        'def cycle(): return "left"',
    ]


def test_a_sentence_that_leans_on_another_goes_with_it() -> None:
    units = passage(["The nasal cycle shifts airflow.", "It lasts hours.", "Turbinates swell with blood.", "Always."])
    assert [unit.text for unit in units] == [
        "The nasal cycle shifts airflow. It lasts hours.",
        "Turbinates swell with blood. Always.",
    ]


def test_terms_stand_in_handfuls_and_once() -> None:
    units = handfuls(["a1", "b2", "A1", "c3", "d4", "e5", "f6", "g7"], query="b2")
    assert [unit.text for unit in units] == ["a1, c3, d4, e5, f6, g7"]
    assert [unit.text for unit in handfuls([f"t{n}" for n in range(7)])] == ["t0, t1, t2, t3, t4, t5, t6"]


def test_units_that_say_the_same_are_one_but_a_number_or_a_no_makes_two() -> None:
    long = "the nasal cycle shifts airflow between both nostrils of the human nose over {} hours in healthy adults {}"
    units = [
        Unit(long.format(2, "")),
        Unit(long.format(2, "").upper() + "!"),
        Unit(long.format(2, "today")),
        Unit(long.format(20, "")),
        Unit(long.format(2, "not")),
    ]
    assert [unit.text for unit in tidy(units, QUERY)] == [units[0].text.strip(), units[3].text.strip(), units[4].text]


def test_the_order_of_the_words_makes_two_of_them() -> None:
    units = (Unit("does stress cause sleep loss"), Unit("does sleep loss cause stress"))
    assert tidy(units, QUERY) == units


def test_the_last_entry_of_an_answer_cut_off_is_dropped_where_it_only_begins_another() -> None:
    units = expanded("specify", "- Why do nostrils alternate at night?\n- Why do colds alternate?\n- Why do nost")
    assert [unit.text for unit in units] == ["Why do nostrils alternate at night?", "Why do colds alternate?"]
    assert [unit.text for unit in tidy([Unit("one nostril")], "one nostril at a time")] == ["one nostril"]


def test_a_model_that_stammers_says_nothing() -> None:
    assert tidy([Unit("it is not logical and it is written in a style that is not logical and " * 3)], QUERY) == ()


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot provide medical advice.",
        "As an AI language model, I have no nose.",
        "As an AI, I do not breathe.",
        "Es tut mir leid, dabei kann ich nicht helfen.",
        "抱歉，我无法回答。",
        "Question: " + QUERY,
        QUERY.upper(),
        " … ",
    ],
)
def test_refusals_and_echoes_are_no_units(text: str) -> None:
    assert tidy([Unit(text)], QUERY) == ()


@pytest.mark.parametrize("text", ["I cannot connect to the server", "As an AI engineer you tune models", "AI winters"])
def test_what_only_resembles_a_refusal_stays(text: str) -> None:
    assert tidy([Unit(text)], QUERY) == (Unit(text),)


def test_a_long_text_is_cut_between_words() -> None:
    cut = shorten("word " * 200)
    assert len(cut) <= LONGEST
    assert cut.endswith("word")


def test_wanted_terms_do_not_push_the_unwanted_out() -> None:
    units = [Unit(f"wanted {n}") for n in range(30)] + [Unit(f"unwanted {n}", positive=False) for n in range(10)]
    kept = tidy(units, QUERY)
    assert (len(kept), sum(not unit.positive for unit in kept)) == (MOST, 5)


def _written() -> list[dict[str, Any]]:
    return [json.loads(line) for line in WRITTEN.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("row", _written(), ids=lambda row: f"{row['method']}: {row['query'][:20]}")
def test_what_a_real_small_model_wrote(row: dict[str, Any]) -> None:
    """A 135M model mostly parrots the prompt. What is left must be what was written down as worth keeping."""
    try:
        found = [unit.text for unit in expanded(row["method"], row["text"], row["query"])]
    except ExpansionFailed:
        found = []
    assert found == row["units"]


def expanded(method: str, text: str, query: str = QUERY) -> tuple[Unit, ...]:
    return make(method, Scripted(text), **({"rounds": 1} if method == "diver" else {})).expand(query, _nothing).units


def _nothing(text: str, count: int) -> list[Any]:
    return []


SYNTHETIC = [
    "<think>Intent: the nose.</think>\n<expansion>\nThe nasal cycle shifts airflow. It lasts hours.\n</expansion>",
    "Sure! Here it is:\n```json\n{\"queries\": [\"what's the nasal cycle\", 'don't nostrils alternate', // a\n],}\n```",
    "1. **Anatomy**: septum, turbinate\n2. **Physiology**:\n   - nasal cycle\n   - airflow\n",
    "positive: nasal cycle, turbinates\nnegative: snoring; sinus surgery",
    "```\n```json\n[[[{'a': [\"b\", {}]}]]]\n```\n```",
    "I'm sorry, but I can't help with that. However, the nasal cycle is normal.",
    "鼻周期是正常现象。\n1、什么是鼻周期？\n正面: 鼻, 气流",
    '\\"\\\\n{{query}} %s \\1 {0} <|im_end|> [INST] </s>',
]
NOISE = [
    "```", "```json\n", "~~~", "<think>", "</think>", "<expansion>", "</expansion>", "<response>", "\n\n", "\r\n", "\t",
    "{", "}", "[", "]", "'", '"', "\\", "//", "/*", "*/", ",", ":", "|", "# ", "- ", "1. ", "**", "\0", "\ud800",
    "positive:", "negative:", "Sure! Here is:", "As an AI language model,", "{{query}}", "\u202e", "🙂", "…", "[" * 50,
    '{"a":' * 40,
]  # fmt: skip


def _real() -> list[str]:
    files = sorted(DATA.glob("*/expansions/*.jsonl"))
    texts = [json.loads(line)["text"] for file in files for line in file.read_text("utf-8").splitlines()[:200:8]]
    return [text[:3_000] for text in texts]


REAL = _real()


@st.composite
def garbled(draw: st.DrawFn, texts: list[str]) -> str:
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(0, 5))):
        at, to = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        text = draw(
            st.sampled_from(
                [
                    text[:to],
                    text[at:],
                    text[:at] + text[to:],
                    text[:at] + draw(st.sampled_from(NOISE)) + text[at:],
                    text[:at] + draw(st.text(max_size=8)) + text[at:],
                    text[:to] + text[at:],
                    "```\n" + text + "\n```",
                    text.upper(),
                    text.replace("\n", " "),
                ]
            )
        )
    return text


def check(units: tuple[Unit, ...]) -> None:
    said = [normal(unit.text) for unit in units]
    assert all(said), "a blank unit"
    assert len(set(said)) == len(said), "the same unit twice"
    assert all(len(unit.text) <= LONGEST and unit.text == unit.text.strip() for unit in units)
    assert len(units) <= MOST
    assert all(unit.text.encode("utf-8") for unit in units)
    assert normal(QUERY) not in said


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=120, deadline=None)
@given(text=garbled([*SYNTHETIC, *(row["text"] for row in _written())]))
@example("[" * 5_000)
@example('{"a":' * 5_000)
@example("<think>" * 3_000)
@example("1. " * 5_000)
@example("*" * 20_000)
@example("a" * 100_000)
@example('"' * 10_000)
@example("here is " * 8_000)
def test_no_answer_crashes_a_method(method: str, text: str) -> None:
    try:
        units = expanded(method, text)
    except ExpansionFailed as error:
        assert method in str(error)
        return
    assert any(unit.positive for unit in units)
    check(units)


@pytest.mark.skipif(not REAL, reason=f"SKIPPED FOR WANT OF DATA: no expansions under {DATA}")
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_garbled_text_of_a_real_model_crashes_a_method(method: str, data: st.DataObject) -> None:
    try:
        check(expanded(method, data.draw(garbled(REAL))))
    except ExpansionFailed as error:
        assert method in str(error)


@pytest.mark.skipif(not REAL, reason=f"SKIPPED FOR WANT OF DATA: no expansions under {DATA}")
@pytest.mark.parametrize("split", ["auto", "sentences", "lines", "terms", "whole"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_garbled_record_crashes_the_splitting(split: str, data: st.DataObject) -> None:
    check(tidy(pieces(data.draw(garbled(REAL)), QUERY, split), QUERY))


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet="[]{}'\",:/*#\\ \nab1", max_size=60))
def test_loose_json_reads_anything_and_agrees_with_json(text: str) -> None:
    found = parse.loose_json(text)
    try:
        exact = json.loads(text)
    except ValueError:
        return
    if isinstance(exact, list) and exact and all(isinstance(one, str) and one.isalpha() for one in exact):
        assert found == exact
