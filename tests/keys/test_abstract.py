from __future__ import annotations

from test_key_builders import SMALL, Counted

from evokey.keys.abstract import Abstract
from evokey.keys.sentences import size
from evokey.keys.title import Title
from evokey.types import Document, KeyText

PAPER = """Smith, Jones

{heading}
We measure heat in engines. It is lost in the boiler.

It can be saved.

## Introduction

Engines are old.
"""
TURNS = """Ann: Hi!
Bob: Hey!
Ann: How are you?
Bob: Good, you?
Ann: The kiln in the pottery studio cracked again.
Bob: Oh no.
Ann: Yeah.
Bob: A cracked kiln ruins the pottery glaze, call the kiln repair shop.
Ann: The kiln in the pottery studio cracked again, yes.
Bob: Bye!
Ann: Bye!
"""


def abstract(text: str, title: str = "", tokens: int = 90, **metadata: str) -> str:
    (found,) = Abstract(tokens).rows(Document("1", text, title, metadata), SMALL)
    return found.text


def test_a_title_stands_as_it_is_and_a_first_sentence_for_a_missing_one() -> None:
    assert Title().rows(Document("1", "Text. More.", " A title "), SMALL) == [KeyText("A title")]
    assert Title().rows(Document("1", "First one. Second one."), SMALL) == [KeyText("First one.", 0, 10)]
    assert Title().rows(Document("1", "\n## A heading of a Markdown file\n\nText."), SMALL) == [
        KeyText("A heading of a Markdown file", 1, 32)
    ]
    assert Title(tokens=3).rows(Document("1", "one two three four"), SMALL) == [KeyText("one two three", 0, 18)]


def test_the_abstract_that_came_with_the_document_goes_first() -> None:
    assert abstract(PAPER.format(heading="Abstract"), "T", abstract="By the author.") == "T By the author."


def test_the_section_under_the_heading_goes_to_the_next_heading() -> None:
    section = "We measure heat in engines. It is lost in the boiler.\n\nIt can be saved."
    for heading in ("Abstract", "## Abstract", "ABSTRACT\n", "**Abstract**", "# abstract:"):
        assert abstract(PAPER.format(heading=heading), "T") == f"T {section}"


def test_an_inline_abstract_is_its_paragraph() -> None:
    for mark in ("Abstract: ", "Abstract. ", "Abstract—", "**Abstract:** "):
        assert abstract(f"Smith\n\n{mark}We measure heat.\n\nMore.") == "We measure heat."


def test_the_word_abstract_in_a_sentence_is_no_heading() -> None:
    assert abstract("We think that art can be\nabstract and free. It need not be so.", tokens=12) == (
        "We think that art can be abstract and free."
    )


def test_prose_is_known_by_its_lead_after_the_title_it_repeats() -> None:
    text = "a wing . the wing stalls at high angles of attack in a flow . " + "the lift falls with the angle . " * 30
    assert abstract(text, "a wing .", tokens=16) == "a wing . the wing stalls at high angles of attack in a flow ."


def test_a_short_text_is_its_own_abstract() -> None:
    assert abstract("- one\n- two") == "- one - two"


def test_dialogue_is_known_by_a_summary_that_says_nothing_twice() -> None:
    found = abstract(TURNS, "8 May", tokens=32)
    assert found == (
        "8 May Ann: The kiln in the pottery studio cracked again. "
        "Bob: A cracked kiln ruins the pottery glaze, call the kiln repair shop."
    )


def test_a_summary_keeps_its_bound_and_the_order_of_the_text() -> None:
    items = "\n".join(f"- item {number} is about topic{number % 7} and kiln{number}" for number in range(200))
    (found,) = Abstract(60).rows(Document("1", items), Counted([Document("1", items)]))
    assert size(found.text) <= 60 and found.start is None
    kilns = [int(word[4:]) for word in found.text.split() if word.startswith("kiln")]
    assert len(kilns) > 2
    assert kilns == sorted(set(kilns))
