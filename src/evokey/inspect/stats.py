"""What a memory holds, in numbers: of all documents, or of those that a caller may know of."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from evokey.errors import ServiceFailed
from evokey.ledger.ledger import Ledger
from evokey.search.index import Index
from evokey.types import Numbers, Stats

log = logging.getLogger("evokey")
OWNERS: dict[str, Any] = {"calls": 0, "calls_saved": 0, "false_hits": 0, "tokens": 0, "money": 0.0, "bytes": 0}
"""What a caller who is not the owner reads in the place of what was spent and how large the files are."""


def count(index: Index, ledger: Ledger, folder: Path, policy: str, among: Numbers | None) -> Stats:
    """among: the documents that a caller who is not the owner may know of."""
    epoch, inside = ledger.epochs.get(index.epoch), None if among is None else among.tolist()
    lacking, touched = index.without_keys, _find_touched(index, epoch.number)
    lessons, held = len(ledger.lessons), len(ledger.lessons.find_held())
    if inside is not None:
        lacking, touched = lacking.intersection(inside), touched.intersection(inside)
        lessons, held = ledger.lessons.count_about(inside), ledger.lessons.count_about(inside, held=True)
    found = Stats(
        documents=len(ledger.documents) if inside is None else len(inside),
        empty_documents=ledger.documents.count_empty(inside),
        documents_without_keys=len(lacking),
        lessons=lessons,
        set_aside=ledger.lessons.set_aside(inside),
        carried_over=ledger.lessons.carried.count(inside),
        held=held,
        erasing=ledger.forgets.waits_for,
        pending=ledger.lessons.count_pending(epoch.lessons_to, epoch.omitted, inside),
        epoch=epoch.number,
        documents_touched=len(touched),
        retrievers=[one.name for one in index.retrievers],
        recall=index.background.recall,
        policy=policy,
        **_bill(ledger),
        bytes=size(folder) + ledger.bytes,
    )
    return found if inside is None else replace(found, **OWNERS)


def _find_touched(index: Index, epoch: int) -> set[int]:
    """Documents that were taught something."""
    try:
        overlays = index.view(epoch).overlays
    except ServiceFailed as error:
        log.warning("documents that were taught something are not counted: %s", str(error))
        return set()
    return {number for overlay in overlays.of.values() for number in overlay.all_documents.tolist()}


def _bill(ledger: Ledger) -> dict[str, Any]:
    bill = ledger.expansions.bill()
    return {
        "calls": bill.spent.calls,
        "calls_saved": bill.saved,
        "false_hits": bill.false_hits,
        "tokens": bill.spent.prompt_tokens + bill.spent.answer_tokens,
        "money": round(bill.spent.money, 6),
    }


def size(folder: Path) -> int:
    """Bytes of all files. Some may go while they are counted: a writer sweeps old keys away."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(place, name).stat().st_size
    return total
