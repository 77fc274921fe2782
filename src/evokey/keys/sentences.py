"""Text → sentences, and how long a text is. Shared by the key builders; no dependency, one pass, any language.

A sentence ends at a full stop, question or exclamation mark before white space (some need none: 。 । ။ ។), at a blank
line, and at the end of a line that was not wrapped: a short one, or one before a list mark, a heading or a
speaker's name. A full stop ends nothing after an abbreviation, an initial or a list's number, nor inside a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evokey.encoders.words import MARKS

Span = tuple[int, int]

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_MARK = re.compile(f"[{MARKS}]")
_PIECE = re.compile(rf"[{_CJK}]|[^\W_]{{1,6}}|[^\w\s]{{1,4}}|_{{1,4}}")
_END = re.compile(r"""(?<![.!?…؟۔।॥።։။។៕])[.!?…؟۔।॥።։။។៕]++["'”’»)\]*_]{0,4}+(?=\s)|[。！？｡।॥။។៕]+[」』”’）】]*|\n""")
_LINE_MARK = re.compile(
    r"[ \t\r]*(?:$|\n|[-*+•·–][ \t]|\#{1,6}[ \t]|[>|]|`{3}|~{3}|\(?\w{1,3}[.)][ \t]|"
    rf"[^\W\d_][\w{MARKS}.' -]{{0,30}}:\s)"
)
_WHOLE_LINE = re.compile(r"[ \t]*(?:#{1,6}[ \t]|\||`{3}|~{3})")
_WRAPPED = 40
"""Characters from which on a line may have been wrapped, so that its sentence goes on in the next."""
_OPENING = "([\"'“‘"
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_BEFORE_MORE = frozenset(
    (
        "dr mr mrs ms prof st sen rep gov gen col lt capt rev hon fig figs eq eqs ref refs sec ch vol vols pp ed eds "
        "no nos nr art vs cf approx ca viz resp e.g eg i.e ie z.b d.h u.a bzw ggf vgl usw"
    ).split()
)
"""Abbreviations that something always follows."""
_MAYBE_LAST = frozenset("etc al inc ltd co corp jr sr ph.d dept univ max min avg jan feb aug sept oct nov dec".split())
"""Abbreviations that may also stand last: a capital after them begins a sentence."""


def size(text: str) -> int:
    """About how many tokens a subword tokenizer makes of the text: every six characters of a word, every CJK
    character and every four marks in a row count one. Within a tenth of a Llama tokenizer's count on English texts."""
    return len(_PIECE.findall(text))


def cut(text: str, tokens: int) -> list[Span]:
    """Spans of at most so many tokens that cover the text, cut between words unless a word alone is longer."""
    found: list[Span] = []
    start = end = count = 0
    for word in re.finditer(r"\S+", text):
        length = size(word.group())
        if count and count + length > tokens:
            found.append((start, end))
            count = 0
        if length > tokens:
            found += [(word.start() + a, word.start() + b) for a, b in _cut_word(word.group(), tokens)]
            continue
        start = start if count else word.start()
        end, count = word.end(), count + length
    return [*found, (start, end)] if count else found


def _cut_word(word: str, tokens: int) -> Iterator[Span]:
    """Never between a letter and its marks, unless they alone are longer."""
    places = [piece.start() for piece in _PIECE.finditer(word)]
    start = at = 0
    while at + tokens < len(places):
        whole = (to for to in range(at + tokens, at, -1) if not _MARK.match(word, places[to]))
        at = next(whole, at + tokens)
        yield start, places[at]
        start = places[at]
    yield start, len(word)


def spans(text: str) -> Iterator[Span]:
    """Where each sentence begins and ends; all but white space lies in one."""
    start = line = 0
    for end in _END.finditer(text):
        newline = end.group() == "\n"
        if _ends_line(text, line, end.start()) if newline else _ends(text, start, end):
            yield from _strip(text, start, end.end())
            start = end.end()
        if newline:
            line = end.end()
    yield from _strip(text, start, len(text))


def sentences(text: str) -> list[str]:
    """The sentences, with white space made single."""
    return [" ".join(text[start:end].split()) for start, end in spans(text)]


def lead(text: str, tokens: int) -> tuple[str, int]:
    """The first sentences that fit, and where they end; of a first one that does not fit, its beginning."""
    found: list[str] = []
    room, last = tokens, 0
    for start, end in spans(text):
        sentence = " ".join(text[start : min(end, start + 40 * tokens)].split())
        room -= size(sentence)
        if room < 0:
            return (" ".join(found), last) if found else (first(sentence, tokens), end)
        found.append(sentence)
        last = end
    return " ".join(found), last


def first(text: str, tokens: int) -> str:
    """The beginning of a text, so many tokens of it."""
    for start, end in cut(text[: 40 * tokens], tokens):
        return text[start:end]
    return ""


def _strip(text: str, start: int, end: int) -> Iterator[Span]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


def _ends_line(text: str, line: int, end: int) -> bool:
    short = end - line < _WRAPPED
    return short or bool(_LINE_MARK.match(text, end + 1)) or bool(_WHOLE_LINE.match(text, line, end))


def _ends(text: str, start: int, mark: re.Match[str]) -> bool:
    following = text[mark.end() : mark.end() + 20].lstrip()[:1]
    if mark.group() != ".":
        # "Why?" he asked … and so on
        return not (
            following.islower() and (mark.group()[-1] in "\"'”’»)" or mark.group()[0] == "…" or ".." in mark.group())
        )
    previous, word = _last_words(text[max(start, mark.start() - 60) : mark.start()])
    if not word:
        return True
    known = word.lower()
    if known in _BEFORE_MORE:
        return False
    if known in _MAYBE_LAST or _DOTTED.fullmatch(word):
        return following.isupper()
    if len(word) == 1 and word.isupper():
        return bool(previous) and not previous[:1].isupper()  # George W. Bush; but: vitamin C. The
    return bool(previous) or not word.isdigit()  # "2." alone is a list's number


def _last_words(text: str) -> tuple[str, str]:
    """The last two words, the last one without what opens it; none if white space comes last."""
    text = text.removesuffix("\n")
    if not text or text[-1].isspace():
        return "", ""
    *_, previous, word = ["", *text.split()[-2:]]
    return previous, word.lstrip(_OPENING) or word[-1]
