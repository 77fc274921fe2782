"""Text → its words, in any script: one rule for search, keys and verifiers.

1. One spelling: NFKC (é is one sign or two, ｶﾞ is ガ, ﬁ is fi), without case, vowel points and formatting signs.
2. Letters, digits and the marks on them make words; an emoji is a word; everything else is a border.
3. Scripts without spaces, and Korean, whose words grow particles, give n-grams: each sign and each pair of neighbours.
   Of Thai, Lao, Khmer and Burmese a sign is a consonant with its vowels.

Plain (ASCII) text is lower-cased and split, nothing else. Every step takes linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

PLAIN = bytes(ord(chr(code).lower()) if chr(code).isalnum() else ord(" ") for code in range(128)).ljust(256)
"""What each character of a plain (ASCII) text becomes, before that is split: the same words in half the time."""
_ASCII_ONLY = PLAIN[:128] + bytes(range(128, 256))
"""The same for the plain part of another text, in UTF-8."""
_ASCII = bytes(range(128))
FEW = 8
"""Up to so many kinds of characters, each is replaced in the whole text: for English prose that is quicker."""

_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_KANA = "\u3041-\u30ff\u31f0-\u31ff"
_HANGUL = "\u1100-\u11ff\ua960-\ua97c\uac00-\ud7fb"
_SOUTHEAST = "\u0e01-\u0e4e\u0e80-\u0ece\u0edc-\u0edf\u1000-\u109f\u1780-\u17dd\ua9e0-\ua9fe\uaa60-\uaa7f"
UNSPACED = _HAN + _KANA + _SOUTHEAST
"""Scripts written without spaces, as part of a character class."""
_CYRILLIC, _HEBREW = "\u0400-\u052f", "\u0591-\u05bd\u05c1-\u05f2"


def _ranges(codes: Iterator[int]) -> str:
    """Code points as part of a character class."""
    found: list[list[int]] = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in found)


MARKS = _ranges(
    code
    for block in (range(0x300, 0x1E00), range(0x2DE0, 0x2E00), range(0x302A, 0x309B), range(0xA66F, 0xABF0))
    for code in block
    if unicodedata.category(chr(code)) in ("Mn", "Mc")
)
"""Accents and vowel signs that are characters of their own and parts of words, as part of a character class."""
WORD = re.compile(rf"[^\W_](?:[^\W_]++|[{MARKS}\u200c\u200d]++)*+")
"""A word as it stands in a text, for those who need its place. Unspaced scripts give whole runs."""

_APART = re.compile(r"[™℠´¨¯¸˘-˝‗‾¼-¾⅐-⅟↉⁰¹²³⁴-⁹]")
"""NFKC would join these to their neighbours: Intel™ → inteltm, 2½ → 21/2, 10⁵ → 105, don´t → don, ́t."""
_JOINING = re.compile(rf"[{_CYRILLIC}{_HEBREW}\u200c]")
_INSIDE = re.compile(
    rf"['’ʼ](?<=[{_CYRILLIC}].)(?=[{_CYRILLIC}])|[\"'’״׳](?<=[{_HEBREW}].)(?=[{_HEBREW}])|\u200c(?<=[\u0600-\u06ff].)"
)
"""Signs inside a word (п’ять, צה״ל), and the Persian border between a word and its ending."""
_OTHER = re.compile(r"[^\x00-\x7f]+")
_RUN = re.compile(rf"[{_HAN}{_KANA}]+|[{_HANGUL}]+|([{_SOUTHEAST}]+)")
_CLUSTER = re.compile(
    rf"[\u0e40-\u0e44\u0ec0-\u0ec4]?.(?:[{MARKS}\u0e30\u0e32\u0e45\u0eb0\u0eb2]|(?<=[\u1039\u17d2]).)*+", re.DOTALL
)
"""A leading vowel, a consonant, what is stacked below it, and its vowels and tones."""


class _Letters(dict[int, str]):
    """Character → what it is in a word: itself, another, nothing, or a border. Found once for each character."""

    def __missing__(self, code: int) -> str:
        found = self[code] = _letter(chr(code))
        return found


def _letter(char: str) -> str:
    kind = unicodedata.category(char)
    if kind == "Nd":
        return str(unicodedata.decimal(char))
    if char in "\u0640\u093c" or kind == "Me" or (kind == "Mn" and _points(ord(char))):
        return ""  # tatweel; the nukta, which many leave out in Hindi; vowel points
    if char == "\u0901":
        return "\u0902"  # chandrabindu, which many write as anusvara
    if kind == "Cf":
        return " " if char == "\u200b" else ""
    if char == "\u2764" or "\U0001f1e6" <= char <= "\U0001faff":
        return "" if "\U0001f3fb" <= char <= "\U0001f3ff" else f" {char} "  # emoji, of any colour of skin
    return char if kind[0] in "LMN" else " "


def _points(code: int) -> bool:
    """Hebrew, Arabic and Syriac vowel points, and variation selectors: text is as often written without."""
    return 0x591 <= code <= 0x74A or 0x8D0 <= code <= 0x8FF or 0xFE00 <= code <= 0xFE0F or code >= 0xE0100


_LETTERS = _Letters()


def fold(text: str, *, turkish: bool = False) -> str:
    """One spelling for what is written in several ways: NFKC, and without case. In Turkish ı and i are two letters."""
    if text.isascii() and not turkish:
        return text.lower()
    text = unicodedata.normalize("NFKC", _APART.sub(_apart, text))
    if turkish:
        text = text.replace("I", "ı").replace("İ", "i")
    return unicodedata.normalize("NFKC", text.casefold().replace("i\u0307", "i"))


def _apart(found: re.Match[str]) -> str:
    sign, before = found[0], found.string[max(found.start() - 1, 0)]
    if sign.isdigit():
        return f" {sign}" if before.isdecimal() else sign
    return f" {sign} " if sign.isnumeric() else " "


def split(text: str, *, turkish: bool = False) -> list[str]:
    """The words of a text, and the n-grams of its unspaced parts."""
    if text.isascii() and not turkish:
        return text.encode().translate(PLAIN).decode().split()
    text = fold(text, turkish=turkish)
    others = text.encode(errors="ignore").translate(None, _ASCII).decode()  # of most texts a few characters
    if _JOINING.search(others):
        text = _INSIDE.sub(lambda found: " " if found[0] == "\u200c" else "", text)
    text = _spell(text, set(others)).encode(errors="replace").translate(_ASCII_ONLY).decode()
    if _RUN.search(others):
        text = _RUN.sub(lambda run: f" {' '.join(_grams(run[0], in_clusters=bool(run[1])))} ", text)
    return text.split()


def _spell(text: str, others: set[str]) -> str:
    """All but plain characters as words have them."""
    if len(others) > FEW:
        return _OTHER.sub(lambda run: run[0].translate(_LETTERS), text)
    for sign in others:
        text = text.replace(sign, _LETTERS[ord(sign)])
    return text


def _grams(run: str, *, in_clusters: bool) -> Iterator[str]:
    units = _CLUSTER.findall(run) if in_clusters else run
    yield from units
    yield from map("".join, pairwise(units))
