"""What a language model wrote → plain pieces of text. Nothing here raises: of nonsense, nothing is left.

Models think aloud, forget to close what they opened, number, bold, quote, fence, greet and stop in the middle. Each
function takes the text as it is and leaves out what is not part of the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from evokey.keys.sentences import sentences

LONGEST = 60_000
"""Characters of an answer that are read."""
DEEPEST = 12
"""Levels of JSON that are read."""

_THOUGHT = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|analysis|scratchpad)"
_THOUGHT_OPENS = re.compile(rf"<\s*{_THOUGHT}\s*>", re.IGNORECASE)
_THOUGHT_CLOSES = re.compile(rf"<\s*/\s*{_THOUGHT}\s*>", re.IGNORECASE)
_GIVEN = re.compile(r"<(wording|passages)>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL)
"""What was given to the model and comes back."""
_HEADED = re.compile(
    r"^(?:[^\w\n]|_)*+(?:final answer|answer|(?:the )?(?:hypothetical )?(?:expansion|passage|document)|output|response|"
    r"(?:rewritten|improved|better|new|expanded) query)(?:[^\w\n:]|_)*+:(?:[^\w\n]|_)*+$|"
    r"^#{1,6}[ \t]*+(?:final answer|answer|expansion|output|response|(?:rewritten|improved|better|new) query)"
    r"(?:[^\w\n]|_)*+$",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE = re.compile(r"^\s*+(?:`{3,}+|~{3,}+)\s*+([\w+#-]*+)\s*+$")
_PROSE = frozenset(["", "text", "txt", "plaintext", "plain", "markdown", "md", "json", "json5", "yaml", "xml", "html"])
_RULE = re.compile(r"^[\s\-*_=#>|~`:.+]*$")
_HEADING = re.compile(r"^\s*#{1,6}\s+")
_BULLET = re.compile(
    r"^\s*(?:>\s*)*(?:[-*+•·–—▪◦‣●○➤→]\s+|\(?\d{1,3}[.):]\s*(?=\D)|\[\d{1,3}\]\s*|\(?[a-zA-Z][.)]\s+|[①-⑳]\s*|"
    r"\d{1,3}、\s*)+"
)
_LABEL = re.compile(
    r"^\s*(?:sub[- ]?(?:query|question)|search query|query|question|version|variant|rewrit(?:e|ing|ten query)|"
    r"clarified query|specific query|facet|aspect|term|keyword|step|option|(?:correct )?(?:answering )?passage|answer|"
    r"expansion)"
    r"\s*+#?\s*+(?:\d{1,3}|[A-Z])?\s*+(?:[:.)]|-\s)\s*+",
    re.IGNORECASE,
)
_LINK = re.compile(r"!?\[([^\[\]\n]{1,200})\]\([^()\s]{0,500}\)")
_TAG = re.compile(r"</?[a-zA-Z][\w-]{0,20}(?:\s[^<>]{0,80})?/?>|<\|[\w-]{1,30}\|>|\[/?INST\]|</?s>")
_EMPHASIS = re.compile(r"\*{1,3}|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)|`+|~~")
_INLINE_RULE = re.compile(r"(?:^|(?<=\s))(?:-{3,}|#{2,6}|\*{3,}|={3,})(?=\s|$)")
_QUOTES = "\"'“”‘’«»„「」『』"
_CHATTER = re.compile(
    r"^\W*(?:(?:sure|certainly|of course|absolutely|okay|ok|great|alright|got it|no problem)\b\s*[!,.:]|"
    r"(?:here(?:'s| is| are| you go)|below (?:is|are)|the following (?:is|are)|these are)\b[^:]{0,160}:?\s*$|"
    r"(?:here(?:'s| is| are)|below (?:is|are)) (?:a|an|the|some|my|your|\w+)\b.{0,80}"
    r"\b(?:list|passage|quer(?:y|ies)|sub-?quer(?:y|ies)|facets?|keywords?|terms?|document|versions?|expansion)\b|"
    r"i hope (?:this|that|these|it)\b|let me know\b|feel free to\b|please (?:let me know|note that|provide)\b|"
    r"(?:these|this|the above) (?:(?:sub-?)?quer(?:y|ies)|terms?|keywords?|facets?|list|expansion|passage)s? "
    r"(?:will|can|should|cover|help|aim)|(?:do|would) you (?:want|like) me to\b|"
    r"i (?:will|'ll|would|have|need to|should|can) (?:now |first |then )?(?:write|rewrite|split|provide|generate|"
    r"create|expanded?|listed|rewritten|analy[sz]e)\b)",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"^\W*(?:(?:sure|certainly|of course|absolutely|okay|great)\b[\w ]{0,30}[!,.:]\s*)?"
    r"(?:(?:here(?:'s| is| are)|below (?:is|are)|this is)\b(?:[^:\n]{0,160}:|"
    r"(?: \w+){0,5} (?:keywords|terms|phrases)(?: \w+){0,3} (?:query|question|topic|statement)\b[:,]?)\s*)",
    re.IGNORECASE,
)
"""What comes before an answer in the same line."""


def answer(text: str, mark: str = "expansion") -> str:
    """The part of a text that is the answer: what stands in the marked place, or what is left without thoughts."""
    text = text[:LONGEST].replace("\r\n", "\n").replace("\0", " ").replace("’", "'")
    spoken = _GIVEN.sub(" ", _without_thoughts(text))
    found = _between_marks(spoken, mark)
    if found:
        return found
    opened = _THOUGHT_OPENS.search(spoken)
    spoken = spoken[: opened.start()] if opened else spoken
    *_, last = [None, *_HEADED.finditer(spoken)]
    if last and spoken[last.end() :].strip():
        spoken = spoken[last.end() :]
    return spoken.strip() or _between_marks(text, mark, closed=True)


def _without_thoughts(text: str) -> str:
    """Without closed thoughts; a close that nothing opened ends a thought that began in the prompt."""
    kept: list[str] = []
    at = 0
    for closes in _THOUGHT_CLOSES.finditer(text):
        opens = _THOUGHT_OPENS.search(text, at, closes.start())
        if opens:
            kept.append(text[at : opens.start()])
        else:
            kept.clear()
        at = closes.end()
    return "\n".join([*kept, text[at:]])


def _between_marks(text: str, mark: str, closed: bool = False) -> str:
    """The longest text between the marks; a last one that was never closed counts too, unless closed is asked."""
    found: list[str] = []
    start: int | None = None
    for one in re.finditer(rf"<\s*+(/?)\s*+{mark}\s*+>", text, re.IGNORECASE):
        if start is not None and (one[1] or not closed):
            found.append(text[start : one.start()])
            start = None
        start = one.end() if not one[1] and start is None else start
    if start is not None and not closed:
        found.append(text[start:])
    long = [part.strip() for part in found if len(re.findall(r"\w", part)) > 3]
    return max(long, key=len, default="")


def plain(text: str) -> str:
    """One line without markup, list mark or quotes around it."""
    text = _INLINE_RULE.sub(" ", _TAG.sub(" ", _LINK.sub(r"\1", text)))
    text = _EMPHASIS.sub("", _HEADING.sub("", _BULLET.sub("", text)))
    text = " ".join(_BULLET.sub("", text).replace("|", " ").split())
    if text[:1] in _QUOTES:
        text = text.strip(_QUOTES + " ") if text[-1:] in _QUOTES or text[1:2] in _QUOTES else text.lstrip(_QUOTES)
    return text.strip(" \t,;")


def passage(text: str) -> list[str]:
    """The sentences of a text. Headings, tables' rules and talk around it are left out; code stays in one piece."""
    found: list[str] = []
    for block, language in _blocks(text):
        if language not in _PROSE:
            found += [" ".join(block.split())]
            continue
        lines = [
            line for line in block.splitlines() if not (_RULE.match(line) and line.strip()) and not _HEADING.match(line)
        ]
        for paragraph in "\n".join(_list_item(line) for line in lines).split("\n\n"):
            found += [_entry(sentence) for sentence in sentences(_GREETING.sub("", _TAG.sub(" ", paragraph).lstrip()))]
    told = [re.sub(r":\s*\(?\d{1,2}[.)]?$", ":", one) for one in found]
    return [one for one in told if one and not one.endswith((":", "：")) and not _CHATTER.match(one)]


def _list_item(line: str) -> str:
    """A list's entry stands by itself."""
    return f"\n\n{_BULLET.sub('', line)}\n\n" if _BULLET.match(line) else line


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Runs of lines inside and outside of code fences, with the fence's language."""
    lines: list[str] = []
    language = ""
    for line in text.splitlines():
        fence = _FENCE.match(line)
        if not fence:
            lines.append(line)
            continue
        yield "\n".join(lines), language
        lines, language = [], "" if language else fence[1].lower()
    yield "\n".join(lines), language


def items(text: str) -> list[str]:
    """The entries of a list: JSON, numbered, bulleted, one on each line, or one sentence after the other."""
    data = loose_json(text)
    if data is not None:
        return [one for one in map(_entry, leaves(data)) if one]
    lines = [line for line in _lines(text) if not _HEADING.match(line)]
    marked = [line for line in lines if _BULLET.match(line) or _LABEL.match(plain(line))]
    entries = [_entry(line) for line in (marked if len(marked) > 1 else lines)]
    entries = [one for one in entries if one and not _CHATTER.match(one) and not one.endswith(":")]
    return entries if len(entries) != 1 else _inline(entries[0])


def _entry(line: str) -> str:
    return plain(_LABEL.sub("", plain(line)))


def _inline(line: str) -> list[str]:
    """A list in one line: 1) … 2) …, or several sentences."""
    numbered = [part for part in re.split(r"(?:^|\s)\(?\d{1,2}[.)]\s+", line) if part.strip()]
    return [one for one in map(_entry, numbered if len(numbered) > 1 else sentences(line)) if one]


def _lines(text: str) -> list[str]:
    lines = [_GREETING.sub("", line) for line in text.splitlines() if not _FENCE.match(line)]
    return [line for line in lines if not _RULE.match(line)]


def terms(text: str) -> list[str]:
    """Words and short phrases, by commas, semicolons, bullets or lines; no sentences."""
    data = loose_json(text)
    parts = leaves(data) if data is not None else [part for line in _lines(text) for part in _split(line)]
    found = [_entry(part).rstrip(".!:") for part in parts]
    return [one for one in found if one and len(one) <= 80 and len(one.split()) <= 8 and not _CHATTER.match(one)]


def _split(line: str) -> list[str]:
    separated = re.split(r"[,;，；、|•·]|\s/\s", _BULLET.sub("", line))
    return [part for part in separated if part.strip()]


def facets(text: str) -> list[tuple[str, list[str]]]:
    """Names with their keywords: JSON, "name: a, b, c" on a line, or a heading above its keywords."""
    data = loose_json(text)
    if data is not None:
        return list(_facets_of(data))
    found: list[tuple[str, list[str]]] = []
    for line in _lines(text):
        name, keywords = _facet(line)
        if name and (len(keywords) > 1 or not found or found[-1][1] or not keywords):
            found.append((name, keywords))
        elif found:
            found[-1][1].extend(keywords)
        elif len(keywords) > 2:
            found.append(("", keywords))
    return [(name, keywords) for name, keywords in found if keywords]


def _facet(line: str) -> tuple[str, list[str]]:
    """Name and keywords of one line; one of them may be missing."""
    body = _entry(line) if not _RULE.match(line) else ""
    name, colon, rest = body.partition(":")
    if not colon:
        name, colon, rest = body.partition(" – ")
    if colon and len(name.split()) <= 8:
        if re.fullmatch(r"\W*(?:key ?words?|terms?|phrases?|related terms?)\W*", name, re.IGNORECASE):
            return "", terms(rest)
        return plain(name), terms(rest)
    if _HEADING.match(line) or line.strip().startswith("**"):
        return plain(body)[:80], []
    return "", terms(body)


def _facets_of(data: Any) -> Iterator[tuple[str, list[str]]]:
    if isinstance(data, list):
        for one in data:
            yield from _facets_of(one)
    if not isinstance(data, dict):
        return
    names = [value for key, value in data.items() if re.search("name|facet|title|aspect", key, re.I)]
    if names and isinstance(names[0], str):
        words = [leaf for value in data.values() if isinstance(value, list | dict) for leaf in leaves(value)]
        words = words or [word for value in data.values() if value is not names[0] for word in terms(str(value))]
        yield plain(names[0]), [one for one in map(_entry, words) if one]
        return
    for key, value in data.items():
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            yield plain(key), [one for one in map(_entry, value) if one]
        elif isinstance(value, str):
            yield plain(key), terms(value)
        else:
            yield from _facets_of(value)


_OF_TERMS = r"(?:[ -](?:expansions?|terms?|keywords?|words?|phrases?|list|documents?|side))*\s*+(?:\([^()]{0,60}\))?\W*"
_WANTED = re.compile(
    rf"\W*(?:the )?(?:positives?|wanted|relevant|includ(?:e|ed)|on[- ]topic){_OF_TERMS}", re.IGNORECASE
)
_NEGATIVE = re.compile(rf"\W*(?:the )?(?:negatives?|unwanted|irrelevant){_OF_TERMS}", re.IGNORECASE)
_UNWANTED = re.compile(
    r"(?:.*[^\w-])?(?:unwanted|irrelevant|avoid\w*|exclu\w+|off[- ]topic|not|never|non|misleading|wrong|unrelated|"
    r"confus\w+|homonyms?|near misses)\b.*",
    re.IGNORECASE,
)
"""A label that says anything of the kind is not trusted with wanted terms."""
_INSIDE = re.compile(r"(?<=[\s,;.])(?=(?:positive|negative)(?: (?:expansion|terms|keywords))?\s{0,2}:)", re.IGNORECASE)


def poles(text: str) -> tuple[list[str], list[str]]:
    """Wanted and unwanted terms. Terms that no heading claims for either side belong to neither."""
    wanted: list[str] = []
    unwanted: list[str] = []
    side: list[str] | None = None
    for label, rest in _labels(text[:LONGEST]):
        if _NEGATIVE.fullmatch(label) or _UNWANTED.fullmatch(label):
            side = unwanted
        elif _WANTED.fullmatch(label):
            side = wanted
        if side is not None:
            side += terms(rest)
    return wanted, unwanted


def _labels(text: str) -> Iterator[tuple[str, str]]:
    """The lines, each with the label before it, or with itself as label where it is a heading."""
    data = loose_json(text)
    if isinstance(data, dict):
        yield from ((key.replace("_", " "), "\n".join(leaves(value))) for key, value in data.items())
        return
    text = re.sub(r"<\s*(positive|negative|wanted|unwanted)\s*>", r"\n\1:\n", text, flags=re.IGNORECASE)
    for line in _lines(_INSIDE.sub("\n", text)):
        label, colon, rest = plain(line).partition(":")
        if colon and len(label.split()) <= 10:
            yield plain(label), rest
        elif _HEADING.match(line) or _WANTED.fullmatch(label) or _NEGATIVE.fullmatch(label):
            yield label, ""
        else:
            yield "", line


def leaves(data: Any) -> list[str]:
    """The texts of a JSON value. Of an object that says more than one thing, the one that is the query, if it tells."""
    if isinstance(data, str):
        return [data] if data.lower() not in ("null", "none", "true", "false") and re.search(r"[^\W_]", data) else []
    if isinstance(data, list):
        return [leaf for one in data for leaf in leaves(one)]
    named = [
        value for key, value in data.items() if re.search("query|question|text|rewrit|passage|document", key, re.I)
    ]
    chosen = named if any(isinstance(value, str) for value in named) else list(data.values())
    return [leaf for one in chosen for leaf in leaves(one)]


def loose_json(text: str) -> Any | None:
    """A JSON value as models write it: in a fence, with comments, trailing commas, any quotes, half of it; or None."""
    body = "\n".join(line for line in text[:LONGEST].splitlines() if not _FENCE.match(line))
    start = re.search(r"^[^\S\n]*+(?=[\[{])", _GREETING.sub("", body), re.MULTILINE)
    if not start:
        return None
    body = _GREETING.sub("", body)[start.end() :]
    if re.match(r"\[\d{1,3}\]|\[[^\]\"'“{\[\n]{1,60}\]\s+\w|\{\{", body):  # [1] a footnote, [Title] in running text
        return None
    data, end = _value(body, 0, 0)
    return data if end * 2 >= len(body.rstrip()) else None


_SPACE = re.compile(r"(?:[\s,]|//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)|#[^\n]*)*")
_BARE = re.compile(r"[^,:\]}\n]*")
_PAIRS = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»"}


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    at = _skip(text, at)
    first = text[at : at + 1]
    if first and first in "[{" and depth < DEEPEST:
        return (_array if first == "[" else _object)(text, at + 1, depth + 1)
    if first in _PAIRS and first:
        return _string(text, at)
    bare = _BARE.match(text, at)
    end = bare.end() if bare else at
    return text[at:end].strip(), end


def _array(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    while True:
        at = _skip(text, at)
        if at >= len(text) or text[at] in "]}":
            return found, min(at + 1, len(text))
        value, end = _value(text, at, depth)
        at = max(end, at + 1)
        after = _skip(text, at)
        if text[after : after + 1] == ":":  # a key in a list: its value comes next
            value, at = _value(text, after + 1, depth)
        found.append(value)


def _object(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while True:
        at = _skip(text, at)
        if at >= len(text) or text[at] in "]}":
            return found, min(at + 1, len(text))
        key, end = _value(text, at, depth)
        at = _skip(text, max(end, at + 1))
        if text[at : at + 1] != ":":
            found[str(len(found))] = key
            continue
        value, end = _value(text, at + 1, depth)
        at = max(end, at + 1)
        name = key if isinstance(key, str) else str(len(found))
        found[name if name not in found else f"{name} {len(found)}"] = value


def _string(text: str, at: int) -> tuple[str, int]:
    """A quoted text. Its end is a closing quote before a comma, colon, bracket or the end: don't is one word."""
    close = _PAIRS[text[at]]
    start = at + 1
    while True:
        end = text.find(close, at + 1)
        if end < 0:
            return _unescape(text[start:]), len(text)
        at = end
        if text[end - 1] != "\\" and re.match(r"\s*(?:[,:\]}]|//|\Z|\n)", text[end + 1 : end + 40]):
            return _unescape(text[start:end]), end + 1


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda one: " " if one[1] in "nrt" else one[1], text, flags=re.DOTALL)


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at
