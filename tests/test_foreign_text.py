"""What foreign text meets takes time by its length, not by its square: nobody can hold a parser with a few kilobytes.

Each text is some signs over and over, between others that begin or end what a parser looks for. Where a signal can end
a regular expression, a run that takes longer than any linear one could is ended and counts as a hang.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from evokey.expanders import parse, recorded, units
from evokey.generators import citations, cited
from evokey.keys import sentences
from evokey.keys.abstract import Abstract
from evokey.keys.chunks import Chunks
from evokey.keys.keywords import Keywords
from evokey.llm import prompts
from evokey.llm.answers import answer_of
from evokey.loop.novelty import reading
from evokey.types import Answer, Document, Unit
from evokey.verifiers import judge, words

LENGTH = 20_000
HANG = 1.5
"""Seconds of computing; a run takes some hundredths, and one by the square of the length far longer."""


class Corpus:
    documents = 1

    def frequency(self, word: str) -> int:
        return 1


Parser = Callable[[str], object]
PARSERS: dict[str, Parser] = {
    "an answer's citations": lambda text: citations.tidy_answer(text, 5),
    "an answer while it is written": lambda text: citations.certain(text, 5),
    "the marks of an answer": citations.citation_numbers,
    "an answer": answer_of,
    "an answer without its marks": lambda text: Answer("q", text, (), (), "m").plain,
    "a passage's length": lambda text: cited.cut(text, 10**9),
    "a passage's marks": lambda text: cited._LIKE_A_MARK.sub("", text),
    "an expansion": parse.answer,
    "a list": parse.items,
    "terms": parse.terms,
    "facets": parse.facets,
    "wanted and unwanted terms": parse.poles,
    "sentences of an expansion": parse.passage,
    "one line": parse.plain,
    "units": lambda text: units.tidy([Unit(text)], "a query", "a prompt"),
    "a recorded expansion": lambda text: recorded.pieces(text, "what is the best way to go"),
    "a query": reading.read,
    "words to compare": words.words,
    "words by SQuAD": words.squad,
    "a verdict": judge.parse_grade,
    "sentences": sentences.sentences,
    "an abstract": lambda text: Abstract().rows(Document("a", text), Corpus()),
    "chunks": lambda text: Chunks().rows(Document("a", text), Corpus()),
    "keywords": lambda text: Keywords().rows(Document("a", text), Corpus()),
    "a prompt": lambda text: prompts.load_packaged("hyde").fill(query=text),
}
REPEATED = [
    *"[]()<{ \n\t\"'`*_#-.,:/\\|~=0aé",
    "[1, ", "[1", "[ ", " (1)", "(1, ", "1-", "passage 1, ", "passage 1,1", "aa bb ", "[aa bb ", "`a", "```\n", "~~~\n",
    "<think>", "</think>", "< / ", "<expansion>", "<wording>", "<score>", "score ", "answer:", "- ", "1. ", "> ", "a. ",
    '{"a":', '["a",', "/*", "//\n", "# a\n", "a:\n", "1.1", "a_", "n't ", "so and ", "have ", "negative ", "sources\n",
    "abstract ", "abstract\n", "**a", "[a](", "{{", "<|a", "u.", "1 / ", "here is ", "the ", "\r\n", "\u0e01", "あ",
]  # fmt: skip
AROUND = [("", ""), ("<", "x"), ("```", "answer"), ("a [1] ", " x: 1")]


@contextmanager
def ended(seconds: float) -> Iterator[None]:
    """Ended by a signal after so long a computation, where there are such signals."""
    if not hasattr(signal, "SIGVTALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize("name", PARSERS)
def test_no_text_of_a_few_kilobytes_holds_a_parser(name: str) -> None:
    for signs in REPEATED:
        for before, after in AROUND:
            text = before + (signs * (LENGTH // len(signs) + 1))[:LENGTH] + after
            try:
                with ended(HANG):
                    PARSERS[name](text)
            except TimeoutError:
                pytest.fail(f"{before!r}, then {signs!r} over and over, then {after!r}")


def test_a_megabyte_of_opening_brackets_is_an_answer_that_says_nothing() -> None:
    with ended(60):
        assert citations.tidy_answer("[" * 1_000_000, 5) == ""
        assert citations.tidy_answer("It was so [1]" + "[" * 1_000_000, 5) == "It was so [1]"


def test_a_mark_of_many_digits_is_no_citation() -> None:
    assert citations.citation_numbers(f"So it was [{'9' * 5000}] and so [2].") == [2]
