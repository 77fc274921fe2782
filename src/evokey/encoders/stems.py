"""Word → its stem, by Snowball. A word is stemmed by the language that is set, if it is written in its script.

A word of another script goes to the one large language of that script that has a stemmer, if all its letters are of
that language's alphabet: Russian, not Ukrainian і, ї, є; Arabic, not Persian گ. Else it stays as it is: the English
stemmer never sees a Cyrillic word. The same word always has the same stem, whatever stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import Stemmer

UNSTEMMED = "none"
MOST = 100_000
"""Words whose stems are kept."""
Stem = Callable[[str], str]

_LATIN = "0-9a-z\u00aa-\u02af\u0300-\u036f\u1d00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff"
ALPHABETS = {
    "russian": "а-яё",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "armenian": "\u0560-\u0588",
    "arabic": "\u0621-\u063a\u0641-\u064a",
    "hindi": "\u0900-\u097f",
    "tamil": "\u0b80-\u0bff",
}
"""Languages that stand for a script, each with its letters."""
OTHERS = {
    "serbian": _LATIN + "\u0400-\u045f",
    "nepali": "\u0900-\u097f",
    "persian": "\u0621-\u06d3",
    "yiddish": "\u05d0-\u05f2",
}
"""Languages that are not written in Latin letters (alone) and are taken only where they are set."""
_SAME_LETTER = {ord(one): other for one, other in zip("ıأإآٱىیکة", "iااااييكه", strict=True)}
"""Letters that are written one for another."""


def stemmer(language: str) -> Stem:
    """Any word by the stemmer of one language."""
    return str if language == UNSTEMMED else Stemmer.Stemmer(language, 0).stemWord


def stemmer_by_script(language: str) -> Stem:
    """A word by the language that is set, or by that of its script."""
    if language == UNSTEMMED:
        return _same_letters
    own = ALPHABETS.get(language) or OTHERS.get(language) or _LATIN
    known = [name for name in ALPHABETS if name in Stemmer.algorithms()]
    pairs = [(own, language), *((ALPHABETS[name], name) for name in known), (_LATIN, language)]
    stemmers = [(re.compile(f"[{letters}]+"), stemmer(name)) for letters, name in pairs]

    def stem(word: str) -> str:
        found = next((stem for letters, stem in stemmers if letters.fullmatch(word)), str)
        return _same_letters(found(word)) or word

    return stem


def _same_letters(word: str) -> str:
    return word if word.isascii() else word.translate(_SAME_LETTER)


class Stems(dict[str, str | None]):
    """Word → its stem, None for a stop word: worked out once, and kept for so many words."""

    def __init__(self, stem: Stem, stop_words: frozenset[str]) -> None:
        super().__init__()
        self._stem, self._stop_words = stem, stop_words

    def __missing__(self, word: str) -> str | None:
        if len(self) >= MOST:
            self.clear()
        found = self[word] = None if word in self._stop_words else self._stem(word)
        return found
