"""Texts made comparable: words without case, accents, articles and punctuation."""

from __future__ import annotations

import re
import string
import unicodedata

from evokey.encoders.words import MARKS, UNSPACED

ARTICLES = frozenset(("a", "an", "the"))
_ACCENT = re.compile(r"[\u0300-\u036f]+")
_POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670]+")
"""Hebrew and Arabic vowel points, and the tatweel: as often left out."""
_SIGN = rf"[{UNSPACED}](?:[{MARKS}]++|(?<=[\u1039\u17d2]).)*+"
"""Scripts written without spaces: each sign, with its marks, is a word."""
_PLAIN = rf"{_SIGN}|[^\W_{UNSPACED}](?:[^\W_{UNSPACED}]++|[{MARKS}]++)*+"
_WORD = re.compile(rf"\d+(?:[.,]\d+)+(?![^\W_])|{_PLAIN}")
_PIECE = re.compile(_PLAIN)
_SPACED = re.compile(_SIGN)
_PUNCTUATION = dict.fromkeys(
    number
    for number in range(0x10000)
    if unicodedata.category(chr(number)).startswith("P") or chr(number) in string.punctuation
)
_INITIALS = re.compile(r"(?<!\w)(?:[^\W\d_]\.){2,}")
_APOSTROPHE = re.compile(r"(?<=\w)['’ʼ]s?(?!\w)|(?<=\w)['’ʼ](?=\w)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def words(text: str) -> list[str]:
    """The words of a text. U.S. is us, Anna's is anna, 1,000 is 1000, é is e; articles are left out, unless they are
    all there is."""
    text = _plain(text)
    text = _THOUSANDS.sub("", _INITIALS.sub(lambda found: found[0].replace(".", ""), text))
    found = _WORD.findall(_APOSTROPHE.sub("", text))
    return [word for word in found if word not in ARTICLES] or found


def every(text: str) -> list[str]:
    """All words in lower case, with their accents; whatever is no letter or digit is a border."""
    return _PIECE.findall(_POINTS.sub("", unicodedata.normalize("NFC", text.lower())))


def contains(text: list[str], part: list[str]) -> bool:
    """Whether some words stand in a text, whole and one after the other: "cat" is not in "concatenate"."""
    return bool(part) and f" {' '.join(part)} " in f" {' '.join(text)} "


def squad(text: str) -> list[str]:
    """Words as SQuAD's score has them: punctuation is dropped, not a border (well-known is wellknown). Signs alone,
    such as "+", stay as they are."""
    text = _plain(text)
    kept = _SPACED.sub(r" \g<0> ", text.translate(_PUNCTUATION)).split()
    return [word for word in kept if word not in ARTICLES] or kept or text.split()


def _plain(text: str) -> str:
    """Without case and accents. Signs that only look like accents, as in が, stay whole."""
    bare = _POINTS.sub("", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))
    return unicodedata.normalize("NFC", bare).casefold()
