"""Lessons of an epoch → overlays, for every retriever: composed to the same bits wherever the ledger is read."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import chain
from typing import Any

from evokey.evolution import restricted as restricted_
from evokey.evolution.grid import NOTHING
from evokey.evolution.policy import Log, Policy
from evokey.ledger.ledger import Ledger
from evokey.ledger.lessons import NONE, Omitted
from evokey.search.fusion import Fusion
from evokey.search.overlay import UNTAUGHT, Overlay
from evokey.search.reach import Neighbours
from evokey.search.retriever import Retriever
from evokey.search.view import Overlays
from evokey.types import ALL_HEARD, Epoch, LeftOut, Reach


class Composer:
    def __init__(
        self, ledger: Ledger, policy: Policy, fusion: Fusion, restricted: str | None = None, *, shared: bool = False
    ) -> None:
        """restricted: the field of the metadata that marks restricted documents, if any are; shared: whether unnamed
        feedback comes from many people."""
        self._ledger, self._policy, self._fusion, self._field = ledger, policy, fusion, restricted
        self._shared = shared
        self._reading = threading.Lock()
        self._read: tuple[Any, Log] | None = None

    def compose(self, epoch: Epoch, retrievers: Sequence[Retriever]) -> Overlays:
        """What an epoch has learned."""
        untaught = Overlays.untaught(self._fusion)
        if not epoch.choice and (self._field is None or not epoch.lessons_to):
            return untaught
        since, log = self._ledger.forgets.count, self.log(epoch.lessons_to, epoch.omitted, epoch.left_out)
        taught, beyond = dict[str, Overlay](), dict[str, Overlay]()
        for one in retrievers:
            choice = epoch.choice.get(one.name, NOTHING)  # an epoch older than an encoder taught it nothing
            restricted = (
                None
                if log.restricted_judgements is None
                else restricted_.overlay(one, log.restricted_judgements, choice)
            )
            learned = UNTAUGHT if choice.nothing else self._policy.overlay(one, log, choice)
            taught[one.name], beyond[one.name] = learned.beside(restricted), UNTAUGHT.beside(restricted)
        weights = epoch.weights if epoch.weights.keys() == taught.keys() else untaught.weights
        near = _neighbours(retrievers, epoch.reach, log)
        self.drop_forgotten(log, since, retrievers)
        weighed = any(one.kind == "sparse" and self._depends_on_corpus(taught[one.name]) for one in retrievers)
        return Overlays(taught, weights, near, Overlays(beyond, untaught.weights) if near else None, weighed)

    def _depends_on_corpus(self, overlay: Overlay) -> bool:
        """Which chunk a text matches follows BM25's weights."""
        return self._policy.depends_on_corpus or any(part.touched.several for part in overlay.parts)

    def drop_forgotten(self, log: Log, since: int, retrievers: Sequence[Retriever]) -> None:
        """Keep nothing encoded of what was forgotten while it was read; since: how many forgets there had been."""
        if self._ledger.forgets.count == since:
            return
        lessons = [log.taught] if log.restricted_judgements is None else [log.taught, log.restricted_judgements]
        texts = {text for one in lessons for text in (*one.queries, *one.wrong, *chain(*one.units.values()))}
        for one in retrievers:
            one.forget(sorted(texts - self._ledger.lessons.texts()))

    def log(self, up_to: int, omitted: Omitted = NONE, left_out: LeftOut = ALL_HEARD) -> Log:
        """The lessons up to a number, without some. The last reading is kept for as long as it says what the ledger
        says: a published epoch is composed from what was read to propose it."""
        restricted = () if self._field is None else tuple(self._ledger.documents.find_restricted(self._field).tolist())
        said = up_to, omitted, left_out
        state = *said, self._ledger.lessons.extent(up_to), self._ledger.documents.position(), restricted
        with self._reading:
            if self._read is None or self._read[0] != state:
                self._read = state, Log(self._ledger, up_to, omitted, self._field, self._shared, left_out)
            return self._read[1]


def _neighbours(retrievers: Sequence[Retriever], reach: Reach | None, log: Log) -> Neighbours | None:
    """The taught queries that a question must be near to."""
    measure = next((one for one in retrievers if reach is not None and one.name == reach.retriever), None)
    return None if reach is None or measure is None else Neighbours(measure, log.taught.judged, reach)
