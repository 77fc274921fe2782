"""What an answer cites. Models mark passages in many ways; what is shown has one: [n], and only passages that exist.

| written                                   | shown     |
|-------------------------------------------|-----------|
| [1]  【1】  【1†source】  [^1]  [Passage 1] | [1]       |
| [1, 2]  [1-2]  [1] [2]  [1 and 2]         | [1][2]    |
| so it was (1).  Passage 1 says            | [1]       |
| [9], where there are five                 | nothing   |
| (1) first, (2023), Passage 9, `row[0]`    | unchanged |

A number in round brackets is a citation where a clause ends; elsewhere it counts something. A list of sources below an
answer that cites is left out: it names what was at hand, not what was used.
"""

from __future__ import annotations

import re
from collections.abc import Callable

ROUNDS = 8
"""How often an answer is tidied, as tidying may lay open what is to be tidied."""
SHORT = 300
"""Characters up to which an answer that begins with "not in the passages" says nothing else."""

_NOUN = r"(?:passages?|documents?|docs?|sources?)"
_ONE = rf"(?:{_NOUN}\s{{0,2}})?[\^#]?\d{{1,4}}"
_ITEM = rf"{_ONE}(?:\s{{0,2}}[-‐‑–—]\s{{0,2}}{_ONE})?"
_AND = r"(?:\s{0,2}[,;/&]\s{0,2}(?:and\s)?|\s{1,2}and\s{1,2})"
_LIST = rf"{_ITEM}(?:{_AND}{_ITEM})*"
_SQUARE = rf"[\[【［]{{1,2}}\s{{0,2}}{_LIST}\s{{0,2}}(?:†[^\]】`\n]{{0,40}})?[\]】］]{{1,2}}"
_ROUND = rf"\(\s?{_LIST}\s?\)"
_CLAUSE_ENDS = r"(?=[ \t]?(?:[.,;:!?)\n]|\Z|and \())"
_CODE = r"```.*?(?:```|\Z)|`[^`\n]{1,80}`"
_MARKS = re.compile(
    rf"(?P<code>{_CODE})|"
    rf"(?P<lead>(?:(?<![ \t])[ \t]++)?)(?P<square>{_SQUARE}(?:(?:[ \t]{{0,2}}|[ \t]?[,‐‑–—-][ \t]?){_SQUARE})*)"
    rf"(?P<tail>[ \t]*)|"
    rf"(?P<round>(?<=\S[ \t]){_ROUND}(?:(?:[ \t]{{0,2}}|[ \t]?,[ \t]?){_ROUND}){{0,9}}){_CLAUSE_ENDS}|"
    rf"(?P<named>\b{_NOUN}\s{{1,2}}(?:(?:number|no\.?)\s)?{_LIST})(?![\w\]】)]|[.,]\d)",
    re.IGNORECASE | re.DOTALL,
)
_RANGE = re.compile(rf"(\d+)(?:\s?[\]】］]*\s*[-‐‑–—]\s*[\[【［]*\s?(?:{_NOUN}\s*)?[\^#]?(\d+))?", re.IGNORECASE)
_SIGNS = re.compile(r"[\[【［(\]】］)`\n]")
_OPENS = "[【［"
_IN_LIST = frozenset("0123456789,;–-")
_SHOWN = re.compile(rf"{_CODE}|\[(\d{{1,4}})\]", re.DOTALL)
_ALONE = re.compile(rf"`({_SQUARE})`", re.IGNORECASE)
_TAGS = re.compile(r"</?(?:passages?|query|answer)>\n?", re.IGNORECASE)
_LABEL = re.compile(r"\A\s*(?:\*\*(?:final )?answer(?::\*\*|\*\*:)|(?:#+ )?(?:final )?answer:)\s*", re.IGNORECASE)
_SOURCES = re.compile(
    r"^[ \t*#_]*(?:references|sources|citations|bibliography|works cited|passages (?:used|cited))[ \t*_]*"
    r"(?::[^\n]*)?$.*\Z",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)

_GIVEN = (
    r"(?:the |these |this |any of the |either of the |none of the )?(?:given |provided |available |numbered |above )?"
    r"(?:passages?|context|documents?|sources?|texts?|information)(?: (?:given|provided|above|available))?"
)
_LACKS = (
    r"(?:says?|mentions?|contains?|provides?|specif(?:y|ies)|states?|includes?|answers?|holds?|tells?|indicates?|"
    r"give|discuss(?:es)?|address(?:es)?|have|has)"
)
_NOTHING = re.compile(
    r"\A\W*(?:(?:sorry|unfortunately|however)\W+|i(?: a|['’])m (?:sorry|afraid),? (?:but )?(?:that )?|"
    rf"(?:based on|according to|from) {_GIVEN},? )?"
    r"(?:"
    rf"(?:(?:it|that|this) is )?not (?:in|(?:mentioned|stated|found|specified) in|answered (?:in|by)) {_GIVEN}|"
    r"(?:i|we) (?:do not|don['’]t|cannot|can['’]t|could not|couldn['’]t|am unable to|['’]m unable to|"
    r"was not able to) (?:know|tell|find|answer|determine|say|see|have)\b|"
    rf"(?:none of |no part of |no ){_GIVEN} (?:\w+ )?{_LACKS}|"
    rf"{_GIVEN}(?:[ ,]|\[\d+\])*(?:do|does|did) ?(?:not|n['’]t) (?:\w+ )?{_LACKS}|"
    r"there (?:is|was)(?: no|n['’]t any| not any| not enough) (?:\w+ )?(?:information|mention|answer|evidence)|"
    r"(?:no|not enough|insufficient) (?:information|answer)(?= (?:about|on|in|to|for|is|was|given|provided)\b|[.,]|\Z)|"
    r"unknown\W*\Z|"
    rf"[^.!?\n]{{0,200}}\b(?:not|n['’]t|cannot be|never) (?:\w+ )?(?:mentioned|stated|specified|given|provided|said|"
    rf"found|determined|answered|indicated|known|available)(?: \w+)? (?:in|by|from) {_GIVEN}"
    r")",
    re.IGNORECASE,
)
_FIRST = re.compile(r"\A.{25,}?[.!?\n](?=\s)", re.DOTALL)
_BUT = re.compile(r"\b(?:but|however|although|though)\b", re.IGNORECASE)
_PLAIN = re.compile(rf"(?<![^\W\d_])(?:(?!{_NOUN}\b|and\b|no\b|number\b)[^\W\d_]{{2,}}+[ ]){{2}}(?=\S)", re.IGNORECASE)


def tidy_answer(answer: str, count: int) -> str:
    """An answer as readers see it: passages 1 to count marked [n], marks of others gone; empty if it says nothing."""
    text = _tidy(answer, count)
    return "" if _says_nothing(text) else text


def citation_numbers(text: str) -> list[int]:
    """The numbers a shown text marks, in order of first mention."""
    return list(dict.fromkeys(int(mark[1]) for mark in _SHOWN.finditer(text) if mark[1]))


def certain(answer: str, count: int) -> str:
    """Of an answer still being written: what is shown of it, whatever follows."""
    text = _tidy(answer[: _between_marks(answer)], count)
    first = _FIRST.match(text)
    return text if len(text) > SHORT or (first and not _says_nothing(first[0])) else ""


def _tidy(answer: str, count: int) -> str:
    """Marked in one way, without labels and lists of sources. What is left may be one itself: until nothing changes."""
    for _ in range(ROUNDS):
        text = _LABEL.sub("", _TAGS.sub("", answer))
        text = _MARKS.sub(lambda found: _mark(found, count), text[: _half(text)])
        sources = _SOURCES.search(text)
        if sources and citation_numbers(text[: sources.start()]):
            text = text[: sources.start()]
        text = text.strip()
        if text == answer:
            break
        answer = text
    return answer


def _half(text: str) -> int:
    """Where the marks begin that the text opens at its end and does not close; its length where there are none."""
    end = len(text)
    while True:
        at = _back(text, end, lambda sign: sign in _IN_LIST or sign.isspace())
        at = _back(text, at - (text[at - 1 : at] in ("^", "#")), str.isspace)
        if not at or text[at - 1] not in _OPENS:
            return end
        end = _back(text, at - 1, str.isspace)


def _back(text: str, end: int, over: Callable[[str], bool]) -> int:
    """The place before the signs of one kind that stand before a place."""
    while end and over(text[end - 1]):
        end -= 1
    return end


def _between_marks(text: str) -> int:
    """The last place that no mark can reach across: behind two plain words, outside brackets and code."""
    outside = at = 0
    bracket = code = False
    for found in _PLAIN.finditer(text):
        for sign in _SIGNS.findall(text, at, found.end() - 1):
            bracket = (bracket or sign in "[【［(") and sign not in "]】］)\n"
            code = code != (sign == "`") and sign != "\n"
        at = found.end() - 1
        outside = outside if bracket or code else at
    return outside


def _mark(found: re.Match[str], count: int) -> str:
    if found["code"]:
        alone = _ALONE.fullmatch(found[0])
        return alone[1] if alone else found[0]
    numbers = _numbers(found["square"] or found["round"] or found["named"], count)
    marks = "".join(f"[{number}]" for number in numbers)
    if not found["square"]:
        return marks or found[0]
    if marks:
        return found["lead"] + marks + found["tail"]
    before = found.string[found.start() - 1 : found.start()]
    return found["lead"] if before in ("", "\n") else found["tail"]


def _numbers(said: str, count: int) -> list[int]:
    """Those of the numbers and ranges that are passages, each once."""
    numbers: dict[int, None] = {}
    for one in _RANGE.finditer(said):
        ends = sorted((int(one[1]), int(one[2] or one[1])))
        numbers |= dict.fromkeys(range(max(ends[0], 1), min(ends[1], count) + 1))
    return list(numbers)


def _says_nothing(text: str) -> bool:
    """Whether a short answer says that there is none. One that goes on with "but", and cites, says something."""
    if len(text) > SHORT or not _NOTHING.match(text):
        return not re.search(r"\w", text)
    return not (citation_numbers(text) and _BUT.search(text))
