"""Stores that index keys in the background: what they have made is taken up, what they find is watched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evokey.protocols import IndexingStore
from evokey.search.retriever import Retriever

Ask = Callable[[Retriever], Sequence[Any]]
"""Questions to measure a retriever with."""


class Background:
    def __init__(self, retrievers: Sequence[Retriever]) -> None:
        self._retrievers = {at: one for at, one in enumerate(retrievers) if isinstance(one.store, IndexingStore)}
        self._stores = {at: one.store for at, one in self._retrievers.items() if isinstance(one.store, IndexingStore)}

    def is_ahead(self, frozen: Sequence[Retriever]) -> bool:
        """Whether keys were indexed here that these retrievers do not have yet."""
        return any(frozen[at].base is not store.snapshot for at, store in self._stores.items())

    @property
    def changed(self) -> bool:
        """Whether another process has indexed keys."""
        return any(store.changed for store in self._stores.values())

    @property
    def recall(self) -> Mapping[str, float]:
        """By retriever: of the ten best documents, the share that searches find, where it was measured."""
        found = {one.name: self._stores[at].measured for at, one in self._retrievers.items()}
        return {name: recall for name, recall in found.items() if recall is not None}

    def measure(self, questions: Ask) -> Mapping[str, tuple[float, float]]:
        """The same, measured now, and the share that is to be found."""
        asked = [(one, self._stores[at]) for at, one in self._retrievers.items()]
        return {one.name: (store.recall(questions(one)), store.target) for one, store in asked}

    def watch(self, questions: Ask) -> None:
        """Have the stores see to it that searches find what these questions should find."""
        for at, store in self._stores.items():
            store.watch(questions(self._retrievers[at]))

    def wait(self) -> None:
        """Until what is being indexed is done."""
        for store in self._stores.values():
            store.wait()

    def finish(self) -> None:
        """Index all keys, now."""
        for store in self._stores.values():
            store.finish()

    def stop(self) -> None:
        for store in self._stores.values():
            store.stop()
