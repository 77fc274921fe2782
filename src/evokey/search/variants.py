"""Retrievers whose encoder was tuned: one for each revision that an epoch has, beside the one of the settings.

Those that searches use follow every change of the documents. The others follow when somebody asks for their epoch: keys
of documents that came since are made then, in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from evokey.ledger.ledger import Ledger
from evokey.search.indexing import Watch, attempt
from evokey.search.retriever import Retriever
from evokey.types import Numbers

Revise = Callable[[str, str], Retriever]
"""Opens the retriever of a name with a revision of its encoder."""


class Variants:
    def __init__(self, ledger: Ledger, retrievers: Sequence[Retriever], revise: Revise | None) -> None:
        self._ledger, self._revise = ledger, revise
        self._made = {(one.name, ""): one for one in retrievers}
        self._followed: dict[str, Numbers] = {}
        """The documents that each has followed."""

    def get(self, retriever: Retriever, revision: str) -> Retriever:
        """The same retriever with a revision of its encoder; "": with that of the settings."""
        wanted = retriever.name, revision
        if wanted not in self._made:
            assert self._revise is not None, "who tunes says how revisions are opened"
            made = self._revise(*wanted)
            made.store.open(self._ledger.writers)
            self._made[wanted] = made
        return self._made[wanted]

    def follow(self, retriever: Retriever, live: Numbers, added: Sequence[int], removed: Sequence[int]) -> bool:
        """Bring the store up to date. One that was out of use is told that all documents were added."""
        before = self._followed.get(retriever.key_space)
        self._followed[retriever.key_space] = live
        if before is not None and len(added) == len(live):
            removed = np.setdiff1d(before, live).tolist()
        return retriever.store.follow(live, added, removed)

    def freeze(self, retriever: Retriever, revision: str, live: Numbers) -> Retriever:
        """The same retriever with a revision of its encoder, and the keys of all these documents."""
        if retriever.revision == revision:
            return retriever
        one = self.get(retriever, revision)
        self.follow(one, live, live.tolist(), ())
        missing = live[one.base.sizes(live) < 0] if len(live) else live
        if len(missing):
            made = attempt(one, self._ledger.documents, missing, self._ledger.words, Watch(len(missing), 1))
            if made.failure is not None:  # an epoch without some of the documents would answer wrongly
                raise made.failure
            for keys in made.keys:
                one.store.write(keys)
        return one.freeze(live)

    def keep_only(self, revisions: Collection[str]) -> None:
        """Let go of the others."""
        self._made = {key: one for key, one in self._made.items() if not key[1] or key[1] in revisions}
