"""What goes with every verb that writes: keys that documents lack are made, keys are saved, the traffic is noted."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from evokey.errors import ServiceFailed
from evokey.ledger.ledger import Ledger
from evokey.search.index import Index
from evokey.search.retriever import Retriever

log = logging.getLogger("evokey")
WATCHED = 32
"""Questions that recall is watched with."""


def make_missing_keys(index: Index, ledger: Ledger, *, again: bool = False) -> None:
    """A crash, or an encoder that failed, left documents without. again: try an encoder again that has failed here."""
    if index.complete(again=again):
        ledger.pools.clear()  # they were taken among fewer documents
        save_keys(index)


def make_missing_keys_at_open(index: Index, ledger: Ledger) -> None:
    """Keys that only cost time are made now, unless another process writes: it makes them. Money is spent only by a
    process that writes."""
    costs = {one.name: one.cost for one in index.retrievers}
    if {costs[name] for name in index.lacking} == {"time"}:
        with ledger.lock_if_free() as free:
            if free:
                index.catch_up()
                make_missing_keys(index, ledger)
    for name, numbers in index.lacking.items():
        log.warning(
            "%d documents have no keys by %s, and it does not find them. Keys are made at the next write, or now "
            "with: evokey doctor --rebuild", len(numbers), name,
        )  # fmt: skip


def save_keys(index: Index, *, force: bool = False) -> None:
    """Keys are derived: failing to write them loses nothing that was acknowledged."""
    try:
        index.save(force=force)
    except OSError as error:
        log.warning("keys could not be written (%s); they stay in memory and are rebuilt when needed", str(error))


def fill_shelves(index: Index) -> None:
    """What was learned is in the ledger, and composed here: an engine that does not keep it loses nothing."""
    try:
        index.fill_shelves()
    except ServiceFailed as error:
        log.warning("what was learned stays in this process (%s)", str(error))


def keep_traffic(index: Index, ledger: Ledger) -> None:
    """Write the queries that were searched to the ledger's sample; those that made room leave every place where they
    were kept encoded, unless a lesson has them or they are protected."""
    gone = ledger.traffic.keep()
    if gone:
        unused = sorted(set(gone) - ledger.lessons.texts() - set(ledger.protected.all()))
        for one in index.retrievers:
            one.forget(unused)


def watch_recall(index: Index, ledger: Ledger) -> None:
    """Have stores that find documents without looking at all compare what they find with what is there."""
    index.background.watch(partial(sample_questions, ledger))


def sample_questions(ledger: Ledger, retriever: Retriever) -> Sequence[Any]:
    """Some that people have asked. Where encoding costs something, only lessons: these are kept encoded."""
    asked = ledger.traffic.queries() if retriever.cost == "nothing" and retriever.reads_text else []
    texts = [*asked, *sorted(ledger.lessons.queries() - {*asked})][:WATCHED]
    return [retriever.lesson(text, {}) for text in texts]
