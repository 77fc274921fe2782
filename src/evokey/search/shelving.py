"""Which overlays go to a shelf of their store, and which shelves stay.

A shelf is called by its epoch, by how often lessons were forgotten before, and by what is on it. Whoever composes an
epoch uses the shelf that has just these rows; a process that publishes puts them there, and clears the others away:
those of epochs long past, of overlays that were composed again since, and all from before a forget. So what a crash has
left goes with the next epoch.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from evokey.protocols import ShelvingStore
from evokey.scoring.dense import DenseBlock
from evokey.search.overlay import Overlay
from evokey.search.retriever import Retriever
from evokey.search.shelved import OnDemand, Shelved
from evokey.search.view import Overlays
from evokey.types import Vectors

KEPT = 4
"""Shelves of so many epochs stay."""
NAME = re.compile(r"e(\d+)r(\d+)h[0-9a-f]{12}")


def use_shelves(overlays: Overlays, retrievers: Sequence[Retriever], epoch: int, redacted: int) -> Overlays:
    """The same overlays; those that are large enough answer by the shelves of their stores, once these are whole.
    redacted: how many epochs lessons were forgotten from."""
    of = {one.name: _use_shelf(overlays.of[one.name], one, epoch, redacted) for one in retrievers}
    return replace(overlays, of=of)


def _use_shelf(overlay: Overlay, retriever: Retriever, epoch: int, redacted: int) -> Overlay:
    store, base, texts = retriever.store, overlay.base, overlay.texts
    if not isinstance(store, ShelvingStore) or not isinstance(base, DenseBlock) or not isinstance(texts, DenseBlock):
        return overlay
    small = not store.shelve_from or len(base) + len(texts) < store.shelve_from
    if small or overlay.shelved or overlay.restricted or overlay.choice.locality or overlay.choice.nothing:
        return overlay
    name = f"e{epoch}r{redacted}h{_digest(overlay, retriever.encoder.identity, base, texts)}"
    slim = replace(
        overlay,
        base=OnDemand(base.vectors, _read_base(retriever, overlay)),
        texts=OnDemand(texts.vectors, _read_texts(retriever, overlay)),
    )
    return replace(slim, shelved=Shelved(name, store.shelf(name), slim))


def _digest(overlay: Overlay, identity: str, base: DenseBlock, texts: DenseBlock) -> str:
    """Of all that the rows on a shelf follow from, and their order."""
    found = hashlib.blake2b(digest_size=6)
    found.update(repr((identity, overlay.step)).encode())
    pull = overlay.pull
    parts = (overlay.touched.documents, overlay.touched.starts, base.vectors, texts.vectors, overlay.norms)
    for part in (*parts, pull.data, pull.indices, pull.indptr):
        found.update(np.ascontiguousarray(part).view(np.uint8).data)
    return found.hexdigest()


def _read_base(retriever: Retriever, overlay: Overlay) -> Callable[[], Vectors]:
    def read() -> Vectors:
        """A document that has gone meanwhile is like nothing."""
        touched = overlay.touched
        keys = retriever.base.fetch(touched.documents)
        vectors = np.zeros((int(touched.starts[-1]), keys.block.dimension or 0), np.float32)
        own = np.isin(touched.owners, keys.documents)
        if int(own.sum()) == len(keys.block):
            vectors[own] = keys.block.vectors
        return vectors

    return read


def _read_texts(retriever: Retriever, overlay: Overlay) -> Callable[[], Vectors]:
    def read() -> Vectors:
        found = retriever.texts(overlay.names)
        assert isinstance(found, DenseBlock)
        return found.vectors

    return read


def fill_shelves(overlays: Overlays, retrievers: Sequence[Retriever], epoch: int, redacted: int) -> None:
    """Put what an epoch has learned on the shelves that it is to answer by, and clear away those out of date."""
    for one in retrievers:
        shelved = overlays.of[one.name].shelved
        if shelved is not None:
            shelved.write()
        for store, name in _shelves(one):
            own = shelved is not None and name == shelved.name
            if not own and _out_of_date(name, epoch, redacted):
                store.clear_shelf(name)


def clear_forgotten(retrievers: Sequence[Retriever], redacted: int) -> None:
    """Clear all shelves away that may have what was forgotten."""
    for one in retrievers:
        for store, name in _shelves(one):
            said = NAME.fullmatch(name)
            if said is None or int(said[2]) != redacted:
                store.clear_shelf(name)


def _shelves(retriever: Retriever) -> Iterator[tuple[ShelvingStore, str]]:
    store = retriever.store
    if isinstance(store, ShelvingStore):
        for name in store.shelves():
            yield store, name


def _out_of_date(name: str, epoch: int, redacted: int) -> bool:
    """Of one that the current epoch does not answer by."""
    said = NAME.fullmatch(name)
    if said is None or int(said[2]) != redacted:
        return True
    return int(said[1]) == epoch or int(said[1]) <= epoch - KEPT
