"""What a query says beside its words' meaning: its numbers, names, negations, who and when it asks, what goes where.

Two queries may be near in every vector and still want different things: "turn it on" and "turn it off", "5 mg" and
"50 mg", "from Boston to Denver" and back. A reading holds what must agree. Words that it does not know are taken for
content, so a text in another language asks for more agreement, never for less.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import Stemmer

from evokey.encoders.words import MARKS
from evokey.keys.words import STOP_WORDS

DENIALS = frozenset(
    "not no never neither nor without cannot dont doesnt didnt isnt arent wasnt werent cant couldnt wont wouldnt "
    "shouldnt hasnt havent hadnt aint".split()
)
"""Words that say no and nothing else, contractions typed without their apostrophe among them."""
NEGATIONS = DENIALS | frozenset(
    "none nobody nothing nowhere hardly scarcely barely lack lacks lacked lacking fail fails failed failing failure "
    "unable exclude excludes excluding except absence absent stop stops avoid avoids refuse refuses".split()
)
OPPOSITES = """
more / less fewer
most / least fewest
before / after
above / below beneath
over / under
on / off
in / out
into to / from
up / down
with / without
for / against
inside / outside
earlier early / later late
first / last final
next / last previous
all / some none
always / sometimes never
and / or
increase raise higher high elevate / decrease reduce lower low decline
gain / lose lost loss
win won / lose lost
enable activate / disable deactivate
add insert include / remove delete exclude
start begin began open / stop end close finish
allow permit / forbid block prevent deny
accept approve / reject decline refuse
promote stimulate activation / inhibit suppress inhibition suppression
enhance enhancer worsen / suppress suppressor improve
cause / cure prevent
survive survival / die death mortality
buy bought purchase / sell sold
send sent give gave / receive take took
lock freeze froze frozen / unlock unfreeze
import / export
upload / download
push / pull
encrypt encode compress / decrypt decode decompress
positive / negative
good better best / bad worse worst
safe / dangerous unsafe harmful
healthy / unhealthy
fast faster quick / slow slower
long longer longest / short shorter shortest
large larger largest big bigger biggest / small smaller smallest little
old older oldest / new newer newest young younger youngest
maximum max / minimum min
hot hotter warm / cold colder cool
true right correct / false wrong incorrect
same similar / different
left / right
male men man boy he his him / female women woman girl she her
parent mother father / child children son daughter
north northern / south southern
east eastern / west western
acute / chronic
benefit advantage pros / risk harm disadvantage cons
past / future
credit / debit
internal / external
public / private
arrive arrival / depart departure leave
"""
PREFIXES = "un in im il ir dis de non anti mis re pre post over under hyper hypo up down".split()
KEPT = frozenset(
    "above after again against all alone always another any ask before below best better between beyond both down "
    "during each earlier enough every everyone few first give gives gone good got great hello keep last later least "
    "less maybe more most much near need next nobody none nothing off only other others out over own put same second "
    "see several since soon still take taken takes thank thanks together under until up use used uses using yes".split()
)
"""Stop words that tell one intent from another."""
ASKING = frozenset(
    "please tell know wondering wonder curious explain describe hi hey hello thanks thank want would like help "
    "let question asking gonna wanna im id ill whats wheres whos hows lets ok okay just really actually "
    "exactly basically currently specify inform figure kindly".split()
)
LIGHT = (STOP_WORDS | ASKING) - KEPT
MARKERS = frozenset("from to into onto than by before after via versus vs of in on for with as over under at".split())
NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
} | {
    "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90",
    "hundred": "100", "thousand": "1000", "million": "1000000", "billion": "1000000000", "half": "0.5", "twice": "2",
    "once": "1", "double": "2", "triple": "3",
}  # fmt: skip
SYMBOLS = {"%": " percent ", "$": " dollar ", "€": " euro ", "£": " pound ", "&": " and ", "°": " degree "}
QUESTIONS = (
    ("quantity", r"how (?:many|much|often|long|far|old|big|tall|high|large|fast|soon)"),
    ("time", r"when|what (?:time|date|day|year|month|hour)|which (?:date|day|year|month)"),
    ("place", r"where|(?:what|which) (?:place|city|country|state|town|location)"),
    ("person", r"who|whom|whose|(?:what|which) person"),
    ("reason", r"why|how come|(?:what|which)(?: is| was|'s)?(?: the)? reason"),
)
ASKED = [(kind, re.compile(rf"\b(?:{pattern})\b")) for kind, pattern in QUESTIONS]
FRAMES = re.compile(
    r"\b(?:(?:can|could|would|will|do|if) you(?: please| mind| be able to| know)?"
    r"|(?:tell|show|give|let|help|remind|get|find) (?:me|us)"
    r"|i(?: would|'d| will|'ll)? (?:want|need|like|wish|wonder|am wondering|was wondering|love|have)(?: you)?(?: to)?"
    r"|i'm (?:wondering|curious|trying)|thank you|do i|can i|should i|may i|could i|i can|i should)\b"
)
"""Ways to begin a request, which say nothing about who is meant."""
WHETHER = re.compile(
    r"(?:\W*\b(?:so|and|but|if|whether|hey|hi|please|ok|okay|just)\b)*\W*"
    r"(?:do|does|did|is|are|am|was|were|has|have|had|should|will|can|could|would|may|might|must)\b"
)
PAST = re.compile(
    r"\b(?:did|was|were|had|(?:have|has|i've|you've|'ve)(?: (?:i|you|we|they|he|she|it))? \w+(?:ed|en|nt|ne))\b"
)
FOR_ME = re.compile(r"\b(?:for|to|with) (?:me|us)\b")
FIRST = frozenset("i me my mine we us our ours myself".split())
SECOND = frozenset("you your yours yourself".split())

TOKEN = re.compile(rf"[-+]?\d+(?:[.,:]\d+)*|[^\W\d_](?:[^\W_]++|[{MARKS}]++)*+[+#]*|[^\w\s]|_")
IDENTIFIER = re.compile(
    r"\w(?:_|::|\\|@)\w|^[~.]?/\w|/\w*[./_]|\w\w\.[a-z]|[a-z][A-Z]|^--?[a-zA-Z]|(?<![^\W_])[^\W\d_]+\d"
)
"""What marks a word between spaces as a name made for machines: snake_case, CamelCase, a path, an option, b12."""
EMOJI = "\ufe0f"
"""Says that the sign before it is shown as a picture: no meaning."""
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_stemmer = Stemmer.Stemmer("english", 0)


@dataclass(frozen=True, slots=True)
class Word:
    """A content word."""

    text: str
    stem: str
    name: bool
    """A name has no synonyms."""
    role: str
    """The preposition before it: what "from" and "to" tell apart."""
    negated: bool


@dataclass(frozen=True, slots=True)
class Reading:
    fold: str
    """The query without case, spacing and punctuation."""
    words: tuple[Word, ...]
    numbers: tuple[str, ...]
    identifiers: frozenset[str]
    negations: int
    poles: frozenset[str]
    """Stems that have an opposite."""
    questions: tuple[str, ...]
    """What kinds of things are asked for: time, place, person, reason, quantity."""
    mood: str
    """Whether a fact is asked for, with a yes or no to answer, and of which time; otherwise empty."""
    persons: frozenset[str]


@lru_cache(100_000)
def stem(word: str) -> str:
    return str(_stemmer.stemWord(word))


def _poles() -> dict[str, frozenset[str]]:
    """Stem → the stems of its opposites."""
    opposites: dict[str, set[str]] = {}
    for line in OPPOSITES.strip().splitlines():
        one, other = ([stem(word) for word in side.split()] for side in line.split(" / "))
        for left, right in product(one, other):
            opposites.setdefault(left, set()).add(right)
            opposites.setdefault(right, set()).add(left)
    return {word: frozenset(others) for word, others in opposites.items()}


POLES = _poles()


def read(query: str) -> Reading:
    text = THOUSANDS.sub("", " ".join(unicodedata.normalize("NFKC", query).replace("’", "'").split()))
    spoken = text.casefold().replace(" '", "'")
    tokens = _tokens(text)
    folded = [token.casefold() for token in tokens]
    words, numbers, negations = _content(tokens, folded, _names(tokens, folded))
    return Reading(
        fold=_fold(query, folded),
        words=words,
        numbers=tuple(numbers),
        identifiers=frozenset(part.casefold() for part in _parts(text) if IDENTIFIER.search(part)),
        negations=negations,
        poles=frozenset(map(stem, folded)) & POLES.keys(),
        questions=tuple(kind for kind, pattern in ASKED for _ in pattern.findall(spoken)),
        mood=_mood(spoken),
        persons=_persons(spoken),
    )


def _tokens(text: str) -> list[str]:
    """Words, numbers and signs that are not punctuation; n't is a word of its own."""
    text = re.sub(r"(?i)\b(ca|wo|sha)n\s?'t\b", r"\1n not", text)
    text = re.sub(r"(?i)n\s?'t\b|\bn't\b", " not", text)
    text = re.sub(r"(?i)\s?'(?:s|re|ve|ll|d|m)\b", " ", text)
    for symbol, word in SYMBOLS.items():
        text = text.replace(symbol, word)
    text = re.sub(r"(?<=\w)-(?=\w)", " ", text)
    return [token for token in TOKEN.findall(text) if _meant(token)]


def _meant(token: str) -> bool:
    """Letters, digits, signs such as emoji or <, and the marks that spell in many scripts; not punctuation."""
    return token[0].isalnum() or token[-1].isalnum() or (unicodedata.category(token[0])[0] in "SM" and token != EMOJI)


def _parts(text: str) -> list[str]:
    return [part.strip(".,;:!?\"'()[]{}«»“”") for part in text.split()]


def _fold(query: str, folded: list[str]) -> str:
    return " ".join(folded) or " ".join(query.split())


def _names(tokens: list[str], folded: list[str]) -> list[bool]:
    """Capitals inside a sentence name something; in a headline, where nearly all words have them, they do not."""
    content = [token for token, fold in zip(tokens, folded, strict=True) if token[0].isalpha() and fold not in LIGHT]
    capitals = sum(token[0].isupper() for token in content)
    headline = len(content) > 2 and capitals > 0.7 * len(content)
    return [
        token[:1].isupper() and not headline and (position > 0 or token[1:] != token[1:].lower())
        for position, token in enumerate(tokens)
    ]


def _content(tokens: list[str], folded: list[str], names: list[bool]) -> tuple[tuple[Word, ...], list[str], int]:
    words: list[Word] = []
    numbers: list[str] = []
    negations, negated, role = 0, False, ""
    for position, word in enumerate(folded):
        if word in MARKERS:
            role = word
        if word in NEGATIONS:
            negations, negated = negations + 1, True
        if word in DENIALS:
            continue
        if word[-1].isdigit() and not word[0].isalpha():
            numbers.append(word.lstrip("+"))
            role = ""
        elif word in NUMBER_WORDS:
            if word != "one" or not _pronoun(folded, position):
                numbers.append(NUMBER_WORDS[word])
        elif word not in LIGHT and word not in MARKERS:
            words.append(Word(word, stem(word), names[position], role, negated))
            role, negated = "", False
    return tuple(words), numbers, negations


def _pronoun(folded: list[str], position: int) -> bool:
    return position > 0 and folded[position - 1] in {"the", "this", "that", "which", "a", "another", "any", "no"}


def _mood(spoken: str) -> str:
    found = WHETHER.match(FRAMES.sub(" ", spoken).strip())
    past = "past" if PAST.search(spoken) else ""
    return f"whether {past}".strip() if found else past


def _persons(spoken: str) -> frozenset[str]:
    """Whom it is about; "call Bob for me" is not "call me Bob"."""
    left, found = FOR_ME.subn(" ", FRAMES.sub(" ", spoken))
    words = set(re.findall(r"[a-z]+", left))
    persons = {name for name, some in (("first", FIRST), ("second", SECOND)) if words & some}
    return frozenset(persons | ({"for me"} if found else set()))


@lru_cache(100_000)
def alike(one: str, other: str) -> bool:
    """Whether two words look so much alike that their vectors, made of the same pieces, say nothing."""
    short, long = sorted((one, other), key=len)
    return (
        short[:2] == long[:2]
        or short[-3:] == long[-3:]
        or any(short[start : start + 4] in long for start in range(len(short) - 3))
    )


@lru_cache(100_000)
def opposite(one: str, other: str) -> bool:
    """Whether two words are each other's opposite, by list or by a prefix that turns one into the other."""
    if stem(other) in POLES.get(stem(one), ()):
        return True
    short, long = sorted((one, other), key=len)
    return len(short) > 2 and any(long == prefix + short for prefix in PREFIXES)
