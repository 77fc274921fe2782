"""Whether two readings can be the same intent: the first thing they disagree on, or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from evokey.encoders.wordllama import WordLlamaEncoder
from evokey.loop.novelty.reading import POLES, Reading, Word, alike, opposite, stem
from evokey.types import Vectors

NEAR = 0.6
"""Words of at least this cosine are synonyms. WordLlama keeps Boston and Denver (.08) apart, buy and purchase (.79)
together."""
SHORTEST = 3
"""Letters a word must have to have a synonym."""
NOWHERE = -1
MOST_KEPT = 50_000
"""Word vectors that are remembered."""
MOST_WORDS = 64
"""Content words of the longest query that is compared; longer ones are known by exact repetition only."""
STRICT = frozenset(map(stem, "more less fewer most least before after without all some first last next always".split()))
"""Poles that one query may not have alone, small words that they are."""


class Agreement:
    """Compares readings, with WordLlama's word vectors for synonyms, whatever encoder compares the queries."""

    def __init__(self) -> None:
        self._encoder = WordLlamaEncoder()
        self._vectors: dict[str, Vectors] = {}

    def difference(self, one: Reading, other: Reading) -> str | None:
        """What the two disagree on, or None."""
        if one.numbers != other.numbers:
            return f"numbers: {_shown(one.numbers)} and {_shown(other.numbers)}"
        if one.negations != other.negations:
            return "one says no where the other does not"
        if one.fold == other.fold:
            return None
        if one.questions != other.questions:
            return f"what is asked for: {_shown(one.questions)} and {_shown(other.questions)}"
        if one.identifiers != other.identifiers:
            return f"names: {_shown(one.identifiers ^ other.identifiers)}"
        if one.mood != other.mood:
            return "one asks whether it is so, or of another time"
        if one.persons != other.persons:
            return "one speaks of me, the other of you"
        if poles := _opposed(one.poles, other.poles):
            return f"opposites: {poles}"
        return self._by_words(one.words, other.words)

    def _by_words(self, one: Sequence[Word], other: Sequence[Word]) -> str | None:
        if not one or not other:
            return "too few words to compare"
        if max(len(one), len(other)) > MOST_WORDS:
            return f"more than {MOST_WORDS} words are not compared"
        if len(one) == len(other) == 1 and one[0].text != other[0].text:
            return f"one word each, {one[0].text} and {other[0].text}"
        forward, backward = self._counterparts(one, other), self._counterparts(other, one)
        alone = [
            word.text
            for word, found in (*zip(one, forward, strict=True), *zip(other, backward, strict=True))
            if found == NOWHERE
        ]
        if alone:
            return f"only one speaks of {_shown(alone)}"
        shared = {word.stem for word in one} & {word.stem for word in other}
        if 2 * len(shared) < max(len(one), len(other)):
            return "too few words in common"
        if _negated(one, other, forward) or _negated(other, one, backward):
            return "they say no to different things"
        turned = _turned(one, other, forward) or _turned(other, one, backward)
        return f"the other way round: {turned}" if turned else None

    def _counterparts(self, one: Sequence[Word], other: Sequence[Word]) -> list[int]:
        """For each word the place of the same word in the other query, of repeated ones in turn; or of a synonym."""
        places: dict[str, list[int]] = {}
        for place, word in enumerate(other):
            places.setdefault(word.stem, []).append(place)
        taken: Counter[str] = Counter()
        found: list[int] = []
        for word in one:
            same = places.get(word.stem)
            found.append(same[min(taken[word.stem], len(same) - 1)] if same else self._synonym(word, other))
            taken[word.stem] += 1
        return found

    def _synonym(self, word: Word, others: Sequence[Word]) -> int:
        best, place = max((self._similarity(word, other), -place) for place, other in enumerate(others))
        return -place if best >= NEAR else NOWHERE

    def _similarity(self, one: Word, other: Word) -> float:
        if one.name or other.name or min(len(one.text), len(other.text)) < SHORTEST or opposite(one.text, other.text):
            return -1.0
        if alike(one.text, other.text):
            return -1.0
        return float(self._vector(one.text) @ self._vector(other.text))

    def _vector(self, word: str) -> Vectors:
        found = self._vectors.get(word)
        if found is None:
            if len(self._vectors) >= MOST_KEPT:
                self._vectors = {}
            found = self._vectors[word] = self._encoder.queries([word])[0]
        return found


def _opposed(one: frozenset[str], other: frozenset[str]) -> str:
    for word in sorted((one | other) - (one & other)):
        if word in STRICT or (POLES[word] & (other if word in one else one)):
            return word
    return ""


def _negated(one: Sequence[Word], other: Sequence[Word], counterparts: Sequence[int]) -> bool:
    return any(word.negated and not other[found].negated for word, found in zip(one, counterparts, strict=True))


def _turned(one: Sequence[Word], other: Sequence[Word], counterparts: Sequence[int]) -> str:
    """Two words that changed places: their prepositions, or around a third word between them."""
    for i, first in enumerate(one):
        for j in range(i + 1, len(one)):
            second, a, b = one[j], counterparts[i], counterparts[j]
            if first.stem == second.stem or a == b:
                continue
            roles = (first.role, second.role)
            if roles[0] != roles[1] and roles == (other[b].role, other[a].role):
                return f"{first.text}, {second.text}"
            if j == i + 1 and a == b + 1 and second.role and second.role == other[a].role:
                return f"{first.text}, {second.text}"
            if a > b and any(b < counterparts[k] < a for k in range(i + 1, j)):
                return f"{first.text}, {second.text}"
    return ""


def _shown(items: Iterable[str]) -> str:
    return ", ".join(sorted(items)) or "none"
