"""How hits are shown: one for each passage, or near-duplicates as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from evokey.encoders.words import split
from evokey.search.passages import Locator
from evokey.types import Hit, Passage

GROUPS = ("document", "passage")
"""What a hit may stand for."""
SHINGLE = 4
"""Words in a row that are compared as one."""
ALIKE = 0.8
"""The share of common shingles from which on two texts say nearly the same."""
LONGEST = 20_000
"""Characters of a text that are compared."""


def by_passage(hits: Iterable[Hit], k: int) -> list[Hit]:
    """The k best passages of found documents. The best of a document has its score, another one a share of it: how near
    it is to the query, beside the best."""
    found = [one for hit in hits for one in _passages(hit)]
    return sorted(found, key=lambda hit: -hit.score)[:k]


def _passages(hit: Hit) -> Iterator[Hit]:
    if not isinstance(hit.locate, Locator):
        yield hit
        return
    located = hit.locate.all()
    most = max(float(located.scores.max()), 1e-12)
    for passage, near in zip(located.passages, located.scores.tolist(), strict=True):
        if near > 0 or len(located.passages) == 1:
            yield replace(hit, score=_lower(hit.score, near / most), locate=partial(_same, passage))


def _same(passage: Passage) -> Passage:
    return passage


def _lower(score: float, share: float) -> float:
    return score * share if score > 0 else score - (1 - share)


def fold(hits: Sequence[Hit]) -> list[Hit]:
    """Of hits that say nearly the same the first, which names the others."""
    kept: list[Hit] = []
    seen: list[frozenset[tuple[str, ...]]] = []
    for hit in hits:
        own = _shingles(hit.document.text)
        place = next((at for at, other in enumerate(seen) if _alike(own, other)), None)
        if place is None:
            kept.append(hit)
            seen.append(own)
        else:
            kept[place] = replace(kept[place], similar=(*kept[place].similar, hit.id))
    return kept


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = split(text[:LONGEST])
    return frozenset(tuple(words[at : at + SHINGLE]) for at in range(max(len(words) - SHINGLE, 0) + 1))


def _alike(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> bool:
    smaller, larger = sorted((len(one), len(other)))
    return smaller >= ALIKE * larger and len(one & other) >= ALIKE * len(one | other)
