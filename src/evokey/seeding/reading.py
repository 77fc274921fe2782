"""A reply of a language model → questions: one a line, each clear to somebody who has not seen the passage.

A reply is foreign text: it is cut before it is looked at, and nothing in it names a document. The model may be weak, or
a document may have talked it into something: what is no plain question on the passage is dropped, and counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evokey.encoders.words import split
from evokey.expanders.units import shorten
from evokey.ingest.language import language_of
from evokey.llm.answers import answer_of
from evokey.seeding.report import Drop

LOOKED_AT, LINES = 20_000, 64
"""Characters and lines of a reply that are looked at."""
FEWEST_WORDS, LONGEST = 4, 300
"""Words and characters of a question."""
COPIED, ECHOED, ALIKE = 0.5, 0.5, 0.8
"""Shares of a question's runs of three words that are in the passage (a copy) or in the prompt (an echo); and of common
words from which on two questions are the same."""
ENDS = ("?", "？", "؟")
_MARK = re.compile(r"[ \t]{0,8}(?:[-*•–]|\(?\d{1,3}[.):]|q(?:uestion)?[ \t]?\d{0,3}[.):])[ \t]{0,8}", re.IGNORECASE)
"""What lists begin their lines with."""
_ABOUT_PASSAGE = re.compile(
    r"\b(?:the|this|that|these|those|above|following|given) (?:above |following |given )?"
    r"(?:passages?|texts?|documents?|articles?|paragraphs?|excerpts?|authors?|study|paper|abstract|snippet)\b"
)


@dataclass(frozen=True, slots=True)
class Source:
    """What questions are asked about."""

    text: str
    """Of the passage, with its headings."""
    known: Sequence[str] = ()
    """Questions that its document was taught already."""
    prompt: str = ""
    """The words of the instructions."""


@dataclass(frozen=True, slots=True)
class Questions:
    texts: tuple[str, ...]
    dropped: Mapping[Drop, int] = field(default_factory=dict)


def read_questions(reply: str, source: Source, most: int) -> Questions:
    """The questions of a reply, at most so many, and why its other lines are none."""
    copied, echoed = _runs(source.text), _runs(source.prompt)
    language = language_of(source.text)
    known = [frozenset(split(one)) for one in source.known]
    kept, dropped = list[str](), Counter[Drop]()
    for line in _lines(reply):
        words = split(line)
        reason = _shape(line, words) or _find_borrowing(words, copied, echoed)
        if reason is None and language is not None and language_of(line) not in (None, language):
            reason = Drop.LANGUAGE
        if reason is None and any(_alike(frozenset(words), other) for other in known):
            reason = Drop.DUPLICATE
        if reason is None and len(kept) == most:
            reason = Drop.SURPLUS
        if reason is not None:
            dropped[reason] += 1
            continue
        known.append(frozenset(words))
        kept.append(line)
    return Questions(tuple(kept), dropped)


def _lines(reply: str) -> list[str]:
    """What may be questions, without the marks of lists; a JSON list is one, too."""
    text = answer_of(reply[:LOOKED_AT])
    lines = _from_json(text) if text.startswith(("[", "{")) else text.splitlines()
    tidy = (shorten(_MARK.sub("", line, count=1), LOOKED_AT).strip("\"'“”„`* ") for line in lines[:LINES])
    return [line for line in tidy if line]


def _from_json(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text.splitlines()
    if isinstance(found, dict):
        found = next((value for value in found.values() if isinstance(value, list)), [])
    if not isinstance(found, list):
        return [text]
    asked = (one.get("question") if isinstance(one, dict) else one for one in found)
    return [one if isinstance(one, str) else text[:LONGEST] for one in asked]


def _shape(line: str, words: Sequence[str]) -> Drop | None:
    if len(line) > LONGEST:
        return Drop.LENGTH
    if not line.endswith(ENDS) or line.startswith(("{", "[", "<")):
        return Drop.NO_QUESTION
    if len(words) < FEWEST_WORDS or len(set(words)) * 2 < len(words):
        return Drop.LENGTH
    return Drop.UNCLEAR if _ABOUT_PASSAGE.search(" ".join(words)) else None


def _find_borrowing(words: Sequence[str], passage: frozenset[str], prompt: frozenset[str]) -> Drop | None:
    runs = _runs_of(words)
    if len(runs & prompt) >= ECHOED * len(runs):
        return Drop.ECHO
    return Drop.COPY if len(runs & passage) >= COPIED * len(runs) else None


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= ALIKE * len(one | other)


def _runs(text: str) -> frozenset[str]:
    return _runs_of(split(text))


def _runs_of(words: Sequence[str]) -> frozenset[str]:
    """Three words at a time."""
    return frozenset(" ".join(words[at : at + 3]) for at in range(len(words) - 2))
