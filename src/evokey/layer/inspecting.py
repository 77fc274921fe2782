"""A layer looked into: why a document ranks where it does, what two epochs change, what there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evokey.errors import UnknownDocument
from evokey.evolution.folds import sample
from evokey.evolution.ndcg import ndcg
from evokey.inspect.stats import size
from evokey.layer.engine import DEPTH, Engine
from evokey.layer.fitting import NAME
from evokey.layer.learned import Learned, Scored
from evokey.layer.pools import NAME as ENGINE
from evokey.layer.scoring import RECALL
from evokey.ledger.ledger import Ledger
from evokey.types import (
    Contribution,
    Document,
    DocumentChange,
    EpochDiff,
    Explanation,
    Hit,
    QueryChange,
    Ranking,
    Stats,
    View,
)

POLICY = "guarded"
COMPARED = 400
"""How many taught queries are compared."""


def explain(
    learned: Learned, ledger: Ledger, engine: Engine, asked: tuple[str, str | None], filters: Mapping[str, Any]
) -> Explanation:
    """asked: a document's id, and a query or None."""
    id, query = asked
    lessons = ledger.lessons.about(id)
    if not ledger.documents.has(id):
        raise UnknownDocument(f"no lesson and no result of the search function has named {id!r}; check the spelling")
    if query is None:
        return Explanation(id, lessons, None, None, None, [], lesson_count=len(lessons))
    near, hits = learned.compare(query), engine.ask(query, DEPTH, filters)
    told: dict[str, Any] = {"lesson_count": len(lessons), "in_reach": near is not None}
    before = _rank(hits, id)
    if near is None:
        return Explanation(id, lessons, query, before, before, [], **told)
    limited = engine.limits(filters)
    scored = learned.score(near, hits, DEPTH, lambda ids: engine.allow(ids, filters), limited=limited)
    after = learned.rank(near, hits, DEPTH, lambda ids: engine.allow(ids, filters), limited=limited)
    views = [_view(learned, scored, learned.place[id])] if id in learned.place else []
    return Explanation(id, lessons, query, before, _rank(after, id), views, **told)


def _rank(hits: Sequence[Hit], id: str) -> int | None:
    return next((at for at, hit in enumerate(hits, 1) if hit.id == id), None)


def _view(learned: Learned, scored: Scored, place: int) -> View:
    """A document's score, taken apart: shares of the range of the engine's scores."""
    choice, teaching = learned.plan.choice, learned.teaching
    own = teaching.right.texts[teaching.starts[place] : teaching.starts[place + 1]]
    likeness = scored.likeness**choice.kernel
    row = (
        choice.step * teaching.pull(choice.spread)[[place]].toarray()[0]
        - choice.demotion * teaching.push[[place]].toarray()[0]
    )
    amounts = {text: float(row[text] * likeness[text]) for text in np.flatnonzero(row).tolist()}
    recalled = RECALL * (float(scored.parts.recall[place]) - (choice.penalty or 0.0) * scored.opening.penalty)
    base, after = float(scored.base[place]), float(scored.after[place])
    best = "taught question" if recalled > base + sum(amounts.values()) else "taught questions together"
    nearest = int(own[np.argmax(scored.likeness[own])]) if len(own) else None
    strongest = sorted(amounts, key=lambda text: -abs(amounts[text]))
    return View(
        NAME,
        0.0,
        base,
        after,
        best if after != base else "engine",
        None if nearest is None else teaching.texts[nearest],
        [Contribution(teaching.texts[text], amounts[text]) for text in strongest],
        [],
        probability=scored.opening.probability,
        share=scored.opening.share,
    )


def diff(before: Learned, after: Learned, ledger: Ledger) -> EpochDiff:
    stored, known = ledger.pools.get(ENGINE), _collect_judged(before, after, ledger)
    queries = sample([query for query in known if query in stored], COMPARED)
    changes = []
    for query in queries:
        hits = read_hits(stored[query].ranking, ledger)
        first, second = (rank_kept(one, query, hits) for one in (before, after))
        if first != second:
            quality = [
                ndcg(_places(ids, known[query]), dict(enumerate(known[query].values()))) for ids in (first, second)
            ]
            changes.append(QueryChange(query, first, second, *quality))
    return EpochDiff(before.epoch.number, after.epoch.number, _documents(before, after), changes, len(queries))


def _collect_judged(before: Learned, after: Learned, ledger: Ledger) -> dict[str, dict[str, float]]:
    """What is right for taught and protected queries: ids and grades."""
    found: dict[str, dict[str, float]] = {}
    for one in (before, after):
        pairs = one.teaching.right
        for document, text, grade in zip(pairs.documents, pairs.texts, pairs.grades, strict=True):
            found.setdefault(one.teaching.texts[text], {})[one.ids[document]] = float(grade)
    return {**found, **{query: grades for query, grades in ledger.protected.all().items() if grades}}


def read_hits(pool: Ranking, ledger: Ledger) -> list[Hit]:
    """Results of the engine that are kept, as it returned them; without texts."""
    rows = ledger.documents.fetch(pool.numbers.tolist())
    pairs = zip(pool.numbers.tolist(), pool.scores.tolist(), strict=True)
    return [Hit(rows[one].id, score, Document(rows[one].id, "")) for one, score in pairs if one in rows]


def rank_kept(learned: Learned, query: str, hits: Sequence[Hit], k: int = 10) -> list[str]:
    """The first ids, as an owner sees them, where the engine returns these hits."""
    near = learned.compare(query)
    if near is None:
        return [hit.id for hit in hits[:k]]
    found = learned.rank(near, hits, k, lambda ids: {id: Document(id, "") for id in ids}, limited=False)
    return [hit.id for hit in found]


def _places(ids: Sequence[str], grades: Mapping[str, float]) -> list[int]:
    """Each id as its place among the judged ones; −1: nobody judged it."""
    place = {id: at for at, id in enumerate(grades)}
    return [place.get(id, -1) for id in ids]


def _documents(before: Learned, after: Learned) -> list[DocumentChange]:
    counts = [
        {id: int(many) for id, many in zip(one.ids, np.diff(one.teaching.starts), strict=True)}
        for one in (before, after)
    ]
    ids = sorted({id for some in counts for id in some})
    taught = [(id, counts[0].get(id, 0), counts[1].get(id, 0)) for id in ids]
    return [DocumentChange(id, first, second, {}, {}) for id, first, second in taught if first != second]


def count(learned: Learned, ledger: Ledger, folder: Path) -> Stats:
    epoch, lessons = learned.epoch, ledger.lessons
    return Stats(
        documents=len(ledger.documents),
        empty_documents=0,
        documents_without_keys=0,
        lessons=len(lessons),
        set_aside=lessons.set_aside(),
        carried_over=0,
        held=len(lessons.find_held()),
        erasing=ledger.forgets.waits_for,
        pending=lessons.count_pending(epoch.lessons_to, epoch.omitted),
        epoch=epoch.number,
        documents_touched=len(learned.ids),
        retrievers=list(learned.likeness.names),
        recall={},
        policy=POLICY,
        calls=0,
        calls_saved=0,
        false_hits=0,
        tokens=0,
        money=0.0,
        bytes=size(folder),
    )
