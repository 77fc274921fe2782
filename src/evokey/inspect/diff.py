"""Two epochs side by side: documents by what they were taught, queries by what they find."""

from __future__ import annotations

from collections.abc import Mapping

from evokey.evolution.composer import Composer
from evokey.evolution.folds import sample
from evokey.evolution.ndcg import ndcg
from evokey.evolution.policy import Log
from evokey.evolution.publishing import Draft
from evokey.inspect import explain
from evokey.ledger.ledger import Ledger
from evokey.search.index import Index
from evokey.search.view import View
from evokey.types import DocumentChange, Epoch, EpochDiff, Numbers, QueryChange

COMPARED = 400
"""How many taught queries are asked."""


def diff(
    index: Index, composer: Composer, ledger: Ledger, epochs: tuple[Epoch, Epoch], among: Numbers | None
) -> EpochDiff:
    """among: the documents that a caller who is not the owner may know of; the taught questions are not his then."""
    a, b = (epoch.number for epoch in epochs)
    changed = _document_changes(index, ledger, a, b, among)
    if among is not None:
        return EpochDiff(a, b, changed, [], 0)
    asked = _collect_judged(composer.log(max(epoch.lessons_to for epoch in epochs), _missing(*epochs)), ledger)
    queries = sample(list(asked), COMPARED)
    views = index.view(a), index.view(b)
    compared = [_change(ledger, query, asked[query], views) for query in queries]
    return EpochDiff(a, b, changed, [one for one in compared if one.before != one.after], len(queries))


def preview(index: Index, composer: Composer, ledger: Ledger, draft: Draft) -> EpochDiff:
    """What a draft would change, before it is published: for taught and protected queries, and for searched ones, of
    which nothing is known to be right. Nothing where documents have changed since it was made."""
    if index.position != draft.position:
        return EpochDiff(draft.epoch, draft.epoch + 1, [], [], 0)
    before = index.view(draft.epoch)
    after = View(before.retrievers, before.fusion, draft.overlays)
    asked = _collect_judged(composer.log(draft.up_to, draft.omitted), ledger)
    searched = [query for query in ledger.traffic.queries() if query not in asked]
    queries = [*sample(list(asked), COMPARED // 2), *sample(searched, COMPARED // 2)]
    compared = [_change(ledger, query, asked.get(query), (before, after)) for query in queries]
    changed = [one for one in compared if one.before != one.after]
    return EpochDiff(draft.epoch, draft.epoch + 1, [], changed, len(queries))


def _collect_judged(log: Log, ledger: Ledger) -> Mapping[str, Mapping[int, float]]:
    """Protected and taught queries and what is right for them, restricted documents too."""
    own = {} if log.restricted_judgements is None else log.restricted_judgements.grades
    taught = {**own, **log.taught.grades}
    taught |= {query: {**own[query], **taught[query]} for query in own}
    return {**ledger.protected.by_number(), **taught}


def _missing(before: Epoch, after: Epoch) -> frozenset[int]:
    """Numbers of lessons that neither epoch has, up to the last that one of them has."""
    last = max(before.lessons_to, after.lessons_to)
    missing = [one.omitted | set(range(one.lessons_to + 1, last + 1)) for one in (before, after)]
    return frozenset(missing[0] & missing[1])


def _change(ledger: Ledger, query: str, grades: Mapping[int, float] | None, views: tuple[View, View]) -> QueryChange:
    found = [view.rank(query, 10).numbers for view in views]
    # Another thread may delete what is compared: a document that is gone is in neither list.
    there = ledger.documents.fetch({number for one in found for number in one.tolist()})
    ids = [[there[number].id for number in one.tolist() if number in there] for one in found]
    quality = [None, None] if grades is None else [ndcg(one, grades) for one in found]
    return QueryChange(query, ids[0], ids[1], quality[0], quality[1])


def _document_changes(index: Index, ledger: Ledger, a: int, b: int, among: Numbers | None) -> list[DocumentChange]:
    views = [index.view(number) for number in (a, b)]
    overlays = [view.overlays for view in views]
    touched = {number for one in overlays for overlay in one.of.values() for number in overlay.all_documents.tolist()}
    if among is not None:
        touched &= set(among.tolist())
    found = []
    for number, document in ledger.documents.fetch(sorted(touched)).items():
        taught = [
            max(len(overlay.part(number).find_texts(number)[0]) for overlay in one.of.values()) for one in overlays
        ]
        moved = [
            {one.name: explain.measure_move(one, number, view.overlays.of[one.name]) for one in view.retrievers}
            for view in views
        ]
        if taught[0] != taught[1] or moved[0] != moved[1]:
            found.append(DocumentChange(document.id, taught[0], taught[1], moved[0], moved[1]))
    return sorted(found, key=lambda change: change.document)
