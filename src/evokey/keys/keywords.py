"""Title (or the beginning that stands for one) and keywords: the phrases that say most, heaviest first, as one text.

A phrase is up to four words in a row with no stop word and no mark between them (as in RAKE). A single word, a short
run as it stands, and whatever recurs are candidates; so text without stop words or punctuation, one endless run, gives
the pairs and triples that recur. A word weighs its TF-IDF, more if it is in the title or comes early; a phrase weighs
its words' mean and a little more, or, if it recurs, more than its heaviest word. A phrase must be news: more than half
of its stems are not yet said.
Words that most documents hold separate phrases as stop words do, in any language.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from evokey.encoders.stems import stemmer_by_script
from evokey.encoders.words import MARKS, UNSPACED, WORD, fold
from evokey.errors import InvalidSettings
from evokey.keys.sentences import spans
from evokey.keys.title import name
from evokey.keys.words import STOP_WORDS, idf
from evokey.protocols import Corpus
from evokey.types import Document, KeyText

READ = 500_000
"""Characters of a text that are read: by then it has said what it is about."""
UNTITLED = 25
"""Tokens of the first sentence that stand for a missing title."""
LONGEST_PHRASE = 4
LONGEST_WORD = 40
LONGEST_RUN = 3
"""Words of a run that is a phrase as it stands; of a longer one only what recurs is."""
COMMON = 0.5
"""A word that this share of the documents holds says nothing of one of them."""
FEW = 20
"""Documents below which nothing is known about how common a word is."""
IN_TITLE, EARLY, RECURS, TOGETHER = 1.5, 0.5, 0.25, 1.2

_WORD = re.compile(
    rf"(?:[{UNSPACED}][{MARKS}]*+){{1,{LONGEST_RUN * LONGEST_PHRASE}}}+|{WORD.pattern}(?:['’][^\W_]{{1,2}}(?![^\W_]))?"
)
"""Where there are no spaces, so many signs count as a word."""
_POSSESSIVE = re.compile("['’]")
_NUMBER = re.compile(r"\d+(?:st|nd|rd|th)?")
_GAP = re.compile(r"\s+|[-‐‑/&]")


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    """As written."""
    plain: str
    """Lower case, without a possessive."""
    stem: str
    at: int
    joined: str
    """What stands between it and the word before in its run."""


Phrase = tuple[_Word, ...]


class Keywords:
    def __init__(self, count: int = 20) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InvalidSettings(
                f"keywords keys: count, the number of phrases, is a whole number from 1 on, not {count!r}"
            )
        self.count = count
        self._stem = lru_cache(10_000)(stemmer_by_script("english"))

    def rows(self, document: Document, corpus: Corpus) -> Sequence[KeyText]:
        title = name(document, UNTITLED).text
        phrases = self._phrases(title, document.text[:READ], corpus)
        text = ". ".join(filter(None, (title.rstrip(" ."), ", ".join(phrases)))) or title
        return [KeyText(text)] if text else []

    def _phrases(self, title: str, text: str, corpus: Corpus) -> list[str]:
        named = {word.stem for run in self._runs(title, corpus) for word in run}
        runs = list(self._runs(text, corpus))
        weights = _weights(runs, named, corpus)
        known: set[str] = set()
        chosen: list[str] = []
        for _, _, phrase in sorted(_candidates(runs, weights), key=lambda found: found[:2]):
            stems = {word.stem for word in phrase}
            if 2 * len(stems - known) <= len(stems):
                continue
            known |= stems
            chosen.append(_spell(phrase))
            if len(chosen) == self.count:
                break
        return chosen

    def _runs(self, text: str, corpus: Corpus) -> Iterator[list[_Word]]:
        """Words in a row with no stop word, mark or end of a sentence between them."""
        at = 0
        common = _Common(corpus)
        for start, end in spans(text):
            run: list[_Word] = []
            last = start
            for found in _WORD.finditer(text, start, end):
                at += 1
                plain = fold(_POSSESSIVE.split(found.group())[0])
                gap = text[last : found.start()]
                last = found.end()
                if run and not _GAP.fullmatch(gap):
                    yield run
                    run = []
                if plain in STOP_WORDS or len(plain) > LONGEST_WORD or plain in common:
                    if run:
                        yield run
                        run = []
                    continue
                joined = gap if gap.strip() else " "
                run.append(_Word(found.group(), plain, self._stem(plain), at, joined))
            if run:
                yield run


class _Common:
    """The words that most documents hold."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._from = COMMON * corpus.documents if corpus.documents >= FEW else math.inf
        self._known: dict[str, bool] = {}

    def __contains__(self, word: str) -> bool:
        if word not in self._known:
            self._known[word] = self._corpus.frequency(word) > self._from
        return self._known[word]


def _weights(runs: Sequence[Sequence[_Word]], named: set[str], corpus: Corpus) -> dict[str, float]:
    """Stem → its weight in this text."""
    counts = Counter(word.stem for run in runs for word in run)
    first: dict[str, int] = {}
    rarity: dict[str, float] = {}
    last = 1
    for run in runs:
        for word in run:
            first.setdefault(word.stem, word.at)
            last = word.at
    for word in {word.plain: word for run in runs for word in run}.values():
        rarity[word.stem] = min(idf(word.plain, corpus), rarity.get(word.stem, math.inf))
    return {
        stem: (1 + math.log(count))
        * rarity[stem]
        * (IN_TITLE if stem in named else 1)
        * (1 + EARLY * (1 - first[stem] / last))
        for stem, count in counts.items()
    }


def _candidates(runs: Sequence[Sequence[_Word]], weights: dict[str, float]) -> Iterator[tuple[float, int, Phrase]]:
    """Each phrase where it comes first, with its weight (negative, to sort by) and place."""
    first: dict[tuple[str, ...], Phrase] = {}
    counts: Counter[tuple[str, ...]] = Counter()
    short: set[tuple[str, ...]] = set()
    for run in runs:
        for length in range(1, min(LONGEST_PHRASE, len(run)) + 1):
            for start in range(len(run) - length + 1):
                phrase = tuple(run[start : start + length])
                if not _sound(phrase):
                    continue
                stems = tuple(word.stem for word in phrase)
                first.setdefault(stems, phrase)
                counts[stems] += 1
                if length == len(run) <= LONGEST_RUN:
                    short.add(stems)
    for stems, phrase in first.items():
        if len(stems) == 1 or counts[stems] > 1 or stems in short:
            yield -_weight([weights[stem] for stem in stems], counts[stems] > 1), phrase[0].at, phrase


def _sound(phrase: Phrase) -> bool:
    """No number first, none last unless tied to its word (covid-19), no letters alone, no word twice."""
    if _NUMBER.fullmatch(phrase[0].plain) or all(len(word.plain) == 1 and word.plain.isascii() for word in phrase):
        return False
    if len(phrase) > 1 and phrase[-1].joined == " " and _NUMBER.fullmatch(phrase[-1].plain):
        return False
    return len({word.stem for word in phrase}) == len(phrase)


def _weight(weights: Sequence[float], recurs: bool) -> float:
    """What recurs is a term, and weighs more than its heaviest word; what does not is only as good as its words."""
    if recurs:
        return max(weights) + RECURS * (sum(weights) - max(weights))
    return sum(weights) / len(weights) * (TOGETHER if len(weights) > 1 else 1)


def _spell(phrase: Phrase) -> str:
    return phrase[0].text + "".join(word.joined + word.text for word in phrase[1:])
