"""Two epochs side by side: documents by what they were taught, queries by what they find."""

from __future__ import annotations

from collections.abc import Mapping

from evokey import explain
from evokey.evolution.evidence import sample
from evokey.evolution.judge import ndcg
from evokey.index import Index
from evokey.ledger.documents import Documents
from evokey.ledger.pins import Pins
from evokey.types import DocumentChange, Epoch, EpochDiff, QueryChange

COMPARED = 400
"""How many taught queries are asked."""


def diff(index: Index, documents: Documents, pins: Pins, before: Epoch, after: Epoch) -> EpochDiff:
    lessons = index.log(max(before.lessons_to, after.lessons_to), _missing(before, after)).taught
    asked = {**pins.numbered(), **lessons.grades}
    queries = sample(list(asked), COMPARED)
    a, b = before.number, after.number
    compared = [_query_change(index, documents, query, asked[query], a, b) for query in queries]
    changed = [change for change in compared if change.before != change.after]
    return EpochDiff(a, b, _document_changes(index, documents, a, b), changed, len(queries))


def _missing(before: Epoch, after: Epoch) -> frozenset[int]:
    """Numbers of lessons that neither epoch has, up to the last that one of them has."""
    last = max(before.lessons_to, after.lessons_to)
    missing = [one.omitted | set(range(one.lessons_to + 1, last + 1)) for one in (before, after)]
    return frozenset(missing[0] & missing[1])


def _query_change(
    index: Index, documents: Documents, query: str, grades: Mapping[int, float], a: int, b: int
) -> QueryChange:
    found = [index.ranked(query, 10, index.overlays(number)).numbers for number in (a, b)]
    ids = [[documents.fetch([number])[number].id for number in one.tolist()] for one in found]
    quality = [ndcg(one, grades) for one in found]
    return QueryChange(query, ids[0], ids[1], quality[0], quality[1])


def _document_changes(index: Index, documents: Documents, a: int, b: int) -> list[DocumentChange]:
    overlays = [index.overlays(number) for number in (a, b)]
    touched = {number for one in overlays for overlay in one.of.values() for number in overlay.documents.tolist()}
    found = []
    for number, document in documents.fetch(sorted(touched)).items():
        taught = [max(len(overlay.taught(number)[0]) for overlay in one.of.values()) for one in overlays]
        moved = [
            {one.name: explain.moved(one, number, known.of[one.name]) for one in index.retrievers} for known in overlays
        ]
        if taught[0] != taught[1] or moved[0] != moved[1]:
            found.append(DocumentChange(document.id, taught[0], taught[1], moved[0], moved[1]))
    return sorted(found, key=lambda change: change.document)
