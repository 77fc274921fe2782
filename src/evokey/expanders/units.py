"""Pieces of text → units: each short, meaning something alone, said once, and nothing that the model only repeated.

| from       | a unit is                                                   |
|------------|-------------------------------------------------------------|
| a passage  | a sentence, with those that lean on it (It …, This …)       |
| a list     | an entry                                                    |
| facets     | a facet: its name and its keywords                          |
| terms      | a handful of terms, because one word alone is ambiguous     |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from evokey.encoders.words import WORD, fold
from evokey.types import Unit

MOST = 16
"""Units of an expansion."""
LONGEST = 400
"""Characters of a unit."""
HANDFUL = 6
"""Terms of a unit."""
ALIKE = 0.9
"""Share of common words from which on two units say the same."""
CONSIDERED = 400
"""Pieces that are looked at, at most."""

_LEANS = re.compile(
    r"(?:it|its|this|that|these|those|they|their|he|she|his|her|such|both|also|however|moreover|furthermore|therefore|"
    r"thus|hence|consequently|additionally|in addition|as a result|for (?:example|instance)|in contrast)\b",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\W*(?:(?:i am|i['’]m|we are|we['’]re)? ?(?:very |so |really )?sorry\b|(?:i|we) apologi[sz]e|"
    r"as an? (?:ai|artificial intelligence|large language|language|virtual)(?: language)?(?: model| assistant|,)|"
    r"(?:however, |but |unfortunately, )?i(?: am|['’]m)? (?:cannot|can not|can['’]t|could not|won['’]t|will not|"
    r"unable to|not able to|do not|don['’]t) (?:\w+ )?(?:help|assist|provide|answer|fulfil+|comply|generate|create|"
    r"write|access|browse|engage|discuss|give|offer|find|see|do|process|complete|rewrite|expand|have|know|understand|"
    r"support)\b|"
    r"(?:please|could you|can you) (?:please )?(?:provide|clarify|specify|share|give)\b.{0,40}"
    r"\b(?:me|more|your|further|context|details)\b|"
    r"ich kann (?:dir |ihnen )?(?:dabei |das )?(?:leider )?nicht|es tut mir leid|je ne (?:peux|suis) pas|désolée?\b|"
    r"lo siento|no puedo (?:ayudar|responder|proporcionar)|抱歉|对不起|很抱歉|作为(?:一个|一名)?(?:人工智能|AI)|"
    r"我无法|我不能|申し訳|죄송)",
    re.IGNORECASE,
)
_ABOUT_TASK = re.compile(
    r"(?:the|this|that|each|your|my) (?:\w+ ){0,4}?"
    r"(task|input|output|query|answer|passage|response|facet|expansion|searcher)(?: \w+){0,2}? "
    r"(?:is|are|was|should|must|will|can|provides?|discuss\w*|concludes?|contains?|explains?|includes?|begins?)\b"
)
_ANNOUNCING = frozenset(
    "the a question query statement claim answer passage correct answering for to is here s how given".split()
)
_OPPOSITES = frozenset("no not never without non neither nor cannot none against".split())


def tidy(
    pieces: Iterable[Unit], query: str, prompt: str = "", *, most: int = MOST, longest: int = LONGEST
) -> tuple[Unit, ...]:
    """The units worth keeping, in order: no blank, refusal, stammer, echo of query or prompt, and nothing twice."""
    asked, told = normal(query), _runs(normal(prompt))
    kept: list[Unit] = []
    seen: list[str] = []
    considered = list(pieces)[:CONSIDERED]
    for number, piece in enumerate(considered, 1):
        unit = Unit(shorten(piece.text, longest), piece.positive)
        said = normal(unit.text)
        cut_off = bool(told) and number == len(considered) and any(one.startswith(said) for one in [asked, *seen])
        repeated = any(said == other or _alike(said, other) for other in seen)
        seen.append(said)
        if said and not (
            cut_off
            or repeated
            or _REFUSAL.match(unit.text)
            or _stammers(said)
            or _echoes_query(said, asked)
            or _echoes_prompt(said, asked, told)
        ):
            kept.append(unit)
    return _fewer(kept, most)


def _stammers(said: str) -> bool:
    """A model that has lost its way says the same words over and over."""
    count = max(said.count(" ") - 1, 0)
    return count >= 12 and len(_runs(said)) * 2 < count


def _echoes_query(said: str, asked: str) -> bool:
    """The query, or the query with an announcement: "Question: …"."""
    rest = said.replace(asked, " ", 1) if asked.count(" ") > 2 else said
    return said == asked or (rest != said and set(rest.split()) <= _ANNOUNCING)


def _echoes_prompt(said: str, asked: str, told: frozenset[str]) -> bool:
    """Half of it, three words at a time, is the prompt's; or it speaks about the task instead of the topic."""
    runs = _runs(said)
    if runs and len(runs & told) * 2 >= len(runs):
        return True
    about = _ABOUT_TASK.match(said)
    return bool(told and about and about[1] not in asked.split())


def _runs(said: str) -> frozenset[str]:
    words = said.split()
    return frozenset(" ".join(words[at : at + 3]) for at in range(len(words) - 2))


def _fewer(units: Sequence[Unit], most: int) -> tuple[Unit, ...]:
    """The first of each polarity, both in proportion: a long wanted list does not push the unwanted one out."""
    wanted = [unit for unit in units if unit.positive]
    unwanted = [unit for unit in units if not unit.positive]
    room = min(len(unwanted), most // 3 if wanted else most)
    room = max(room, most - len(wanted))
    return (*wanted[: max(most - len(unwanted[:room]), 0)], *unwanted[:room])


def passage(sentences: Iterable[str], longest: int = LONGEST) -> list[Unit]:
    """A sentence each; one that leans on the sentence before, or says too little alone, is joined to it."""
    found: list[str] = []
    for sentence in sentences:
        leans = bool(_LEANS.match(sentence)) or (sentence.count(" ") < 2 and sentence.isascii())
        if found and leans and len(found[-1]) + len(sentence) < longest:
            found[-1] = f"{found[-1]} {sentence}"
        else:
            found.append(sentence)
    return [Unit(text) for text in found]


def handfuls(terms: Iterable[str], positive: bool = True, query: str = "") -> list[Unit]:
    """Terms in groups, each term once; what the query itself says is left out."""
    asked = normal(query)
    once = {normal(term): term for term in reversed([term for term in terms if not _REFUSAL.match(term)])}
    kept = [term for said, term in reversed(once.items()) if said and said != asked]
    groups = [kept[at : at + HANDFUL] for at in range(0, len(kept), HANDFUL)]
    if len(groups) > 1 and len(groups[-1]) == 1:
        groups[-2:] = [[*groups[-2], *groups[-1]]]
    return [Unit(", ".join(group), positive) for group in groups]


def shorten(text: str, longest: int = LONGEST) -> str:
    """White space made single, control characters out, and the end cut off between words where it is too long."""
    text = "".join(" " if not one.isprintable() else one for one in text).encode("utf-8", "ignore").decode()
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    cut = text[:longest]
    space = cut.rfind(" ")
    return (cut[:space] if space > longest // 2 else cut).rstrip(" ,;:(")


def normal(text: str) -> str:
    """What a text says, whatever its case and punctuation."""
    return " ".join(WORD.findall(fold(text)))


def _alike(one: str, other: str) -> bool:
    """Whether two texts differ in a word or two that decide nothing: neither a number, nor a no, nor the order."""
    words, others = one.split(), other.split()
    common, differing = set(words) & set(others), set(words) ^ set(others)
    if len(common) < ALIKE * (len(common) + len(differing)):
        return False
    if any(word in _OPPOSITES or any(sign.isdigit() for sign in word) for word in differing):
        return False
    return [word for word in words if word in common] == [word for word in others if word in common]
