"""Dense keys, millions of them, found by graphs (HNSW, by faiss).

New keys are searched one and all, and written to disk as in the other embedded stores. Once they are many, a thread
makes one segment of them, with a graph: it copies the graph of the segment before, if that is not much larger, and adds
the new rows. Adding does not wait for it, and searches go on with what was there before. Each graph is made as wide as
it takes to find enough (`recall`) of what a look at all rows finds.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import faiss
import numpy as np

from evokey.errors import InvalidSettings
from evokey.protocols import Space
from evokey.scoring.block import NO_NUMBERS, Arrays, Keys
from evokey.scoring.dense import DenseBlock, DenseQuestion
from evokey.scoring.soundness import check_numbers
from evokey.stores.embedded import EmbeddedStore
from evokey.stores.graph import GRAPH, WIDTH, WIDTHS, Graph, calibrate, cut, grow
from evokey.stores.nearest import AnnRows, Dense
from evokey.stores.rows import Segment, covered_by
from evokey.stores.segments import new_name, read_segment, write_segment, write_synced
from evokey.types import Numbers, Vectors

RATIO = 8
"""A graph grows by what follows it unless it is so many times as large: so there are few graphs, and few copies."""
DEAD, WORN = 0.2, 0.02
"""The share of dead documents from which on a graph is built anew; and where it was found to miss too much."""
WIDTH_FILE = "widths.json"
"""Widths and recalls of graphs as they were measured last, by segment."""
log = logging.getLogger("evokey")


class AnnStore(EmbeddedStore[DenseBlock]):
    kinds = frozenset({"dense"})
    exact = False
    rescores: ClassVar[bool] = True
    state = AnnRows
    rows: AnnRows

    def __init__(
        self, space: Space, *, recall: float = 0.95, build_at: int = 5_000, threads: int | None = None
    ) -> None:
        """recall: of the ten best documents, the share that searches are to find. build_at: so many new rows get a
        graph. threads: that build one; all processors but one if it is not said."""
        if not 0 < recall <= 1 or build_at < 1 or (threads is not None and threads < 1):
            raise InvalidSettings(
                f"store 'ann' takes a recall from 0 to 1, and build_at and threads from 1 on; these are {recall}, "
                f"{build_at} and {threads}"
            )
        super().__init__(space)
        self.target, self._build_at = recall, build_at
        self._threads = threads or max((os.cpu_count() or 2) - 1, 1)
        self._lock = threading.RLock()
        self._live = NO_NUMBERS
        self._chosen: tuple[Dense, ...] = ()
        """The segments that it is made of: no others may be made of these meanwhile."""
        self._builder: threading.Thread | None = None
        self._stopped = threading.Event()

    # ---- following and writing, while a graph may be built

    def follow(self, live: Numbers, added: Sequence[int], removed: Sequence[int]) -> bool:
        with self._lock:
            self._live = live
            return super().follow(live, added, removed)

    def write(self, keys: Keys) -> None:
        with self._lock:
            super().write(keys)

    def drop(self) -> None:
        with self._lock:
            super().drop()

    def flush(self, *, force: bool = True) -> None:
        with self._lock:
            unsaved = [segment for segment in self.rows.segments if segment.name is None]
            if unsaved and self._loaded is not None and self.changed:  # another process has built a graph since
                self._load(self._live)
                for one in unsaved:
                    super().write(Keys(one.covered, one.owners, one.block))
            super().flush(force=force)
            self._start_building()

    def _mergeable(self, first: Dense, second: Dense) -> bool:
        return self._is_free(first) and super()._mergeable(first, second)

    def _is_small(self, kept: Dense, unsaved: Sequence[Dense]) -> bool:
        return self._is_free(kept) and super()._is_small(kept, unsaved)

    def _is_free(self, segment: Dense) -> bool:
        return segment.graph is None and not any(segment is one for one in self._chosen)

    def _persist(self, segment: Dense) -> Dense:
        assert self._folder is not None
        return self._read(self._folder, str(super()._persist(segment).name))  # mapped: memory need not hold all keys

    def _read(self, folder: Path, name: str) -> Dense:
        arrays = {key: np.asarray(array) for key, array in read_segment(folder, name, spare={GRAPH, WIDTH}).items()}
        check_numbers(arrays["owners"], arrays["covered"])
        DenseBlock.check(arrays, len(arrays["owners"]))
        return Segment(
            DenseBlock.from_arrays(arrays),
            arrays["owners"],
            arrays["covered"],
            name,
            _read_graph(folder / name, arrays),
        )

    # ---- building

    def _start_building(self) -> None:
        if (self._builder is None or not self._builder.is_alive()) and self._choose():
            self._run(self._build_all)

    def _run(self, work: Callable[[], None]) -> None:
        self._stopped.clear()
        self._builder = threading.Thread(target=work, name="evokey-ann", daemon=True)
        self._builder.start()

    def _build_all(self) -> None:
        try:
            while self._build_one(self._choose):
                pass
        except (OSError, MemoryError, RuntimeError) as error:
            log.warning("no graph was built for the keys in %s (%s): they are all scored", self._folder, str(error))

    def wait(self) -> None:
        if self._builder is not None:
            self._builder.join()

    def finish(self) -> None:
        self.flush()
        self.wait()
        self._stopped.clear()
        self._build_one(self._choose_all)

    def stop(self) -> None:
        self._stopped.set()
        self.wait()

    def _choose_all(self) -> tuple[Dense, ...]:
        """All segments, unless they are one with a graph already."""
        segments = self.rows.segments
        done = len(segments) == 1 and segments[0].graph is not None and not self._is_worn(segments[0])
        return () if done else segments

    def _choose(self) -> tuple[Dense, ...]:
        """The last segments, of which the next one with a graph is to be made."""
        segments = self.rows.segments
        if self._folder is not None and segments and segments[-1].name is None:
            return ()
        worn = next((at for at, one in enumerate(segments) if one.graph is not None and self._is_worn(one)), None)
        if worn is not None:
            return segments[worn:]
        first = len(segments)
        while first and segments[first - 1].graph is None:
            first -= 1
        size = sum(len(segment.owners) for segment in segments[first:])
        if size < self._build_at:
            return ()
        while first and len(segments[first - 1].owners) < RATIO * size:
            first -= 1
            size += len(segments[first].owners)
        return segments[first:]

    def _is_worn(self, segment: Dense) -> bool:
        """Whether too many of its rows are dead, or it was found to miss too much because of these."""
        dead, most = self.rows.dead, WORN if segment.graph.recall < self.target else DEAD
        if len(dead) <= most * len(segment.covered):
            return False
        return float(np.isin(segment.covered, np.fromiter(dead, np.int64, len(dead))).mean()) > most

    def _build_one(self, choose: Callable[[], tuple[Dense, ...]]) -> bool:
        """Whether a segment was built."""
        with self._lock:
            self._chosen, self._making = choose(), frozenset({new_name()})
            chosen, dead = self._chosen, np.fromiter(self.rows.dead, np.int64, len(self.rows.dead))
        try:
            built = self._build(chosen, dead) if any(len(one.owners) for one in chosen) else None
            if built is None:
                return False
            with self._lock:
                return self._swap(chosen, built)
        finally:
            self._chosen, self._making = (), frozenset()

    def _build(self, chosen: Sequence[Dense], dead: Numbers) -> Dense | None:
        """None if it was stopped. The first of the chosen keeps its dead rows if its graph is copied."""
        faiss.omp_set_num_threads(self._threads)  # of this thread
        base = chosen[0] if chosen[0].graph is not None and not self._is_worn(chosen[0]) else None
        rest = [_living(one, dead) for one in chosen if one is not base]
        new = cut([one.block.vectors for one in rest])
        graph = grow(None if base is None else base.graph, new, self._stopped.is_set)
        if graph is None:
            return None
        parts = rest if base is None else [base, *rest]
        owners = np.concatenate([one.owners for one in parts])
        rows = [one.block.vectors for one in parts if len(one.owners)]
        graph = calibrate(graph, rows, ~np.isin(owners, dead), self.target)
        return self._settle(owners, covered_by(parts), rows, graph)

    def _settle(self, owners: Numbers, covered: Numbers, rows: Sequence[Vectors], graph: Graph) -> Dense:
        """The finished segment, on disk if there is one."""
        if self._folder is None:
            return Segment(DenseBlock(np.concatenate(rows)), owners, covered, None, graph)
        arrays: dict[str, Any] = {"owners": owners, "covered": covered, "vectors": rows, **graph.arrays()}
        return self._read(self._folder, write_segment(self._folder, arrays, *self._making))

    def _swap(self, chosen: Sequence[Dense], built: Dense) -> bool:
        """Put a segment in the place of those that it was made of, if they are still there."""
        segments = list(self.rows.segments)
        first = next((at for at, one in enumerate(segments) if one is chosen[0]), None)
        if first is None or [*map(id, segments[first : first + len(chosen)])] != [*map(id, chosen)]:
            return False
        segments[first : first + len(chosen)] = [built]
        if self._loaded is None:
            self._set(segments, self._still_dead(segments))
        else:  # the ledger is not asked: a thread that has it may be waiting for this one
            self._publish(segments, self._loaded.writer)
        return True

    # ---- watching what searches find

    @property
    def measured(self) -> float | None:
        """The recall of the graphs as it was measured last; None where all keys are scored."""
        graphs = [one.graph for one in self.rows.segments if one.graph is not None]
        sizes = [len(graph) for graph in graphs]
        return float(np.average([graph.recall for graph in graphs], weights=sizes)) if graphs else None

    def recall(self, questions: Sequence[DenseQuestion]) -> float:
        return self.rows.recall(questions) if questions else self.measured or 1.0

    def watch(self, questions: Sequence[DenseQuestion]) -> None:
        if questions and self.rows.has_graph and (self._builder is None or not self._builder.is_alive()):
            self._run(partial(self._watch, questions))

    def _watch(self, questions: Sequence[DenseQuestion]) -> None:
        """Widen graphs that miss too much; those that are as wide as can be are built anew if many rows are dead."""
        rows, found = self.rows, list[float]()
        for question in questions:
            if self._stopped.is_set():
                return
            found.append(rows.recall([question]))
        recall = float(np.mean(found))
        with self._lock:
            if rows is not self.rows:
                return
            widen = recall < self.target and rows.width < WIDTHS[-1]
            segments = [_note(one, recall, 2 if widen else 1) for one in rows.segments]
            self._set(segments, rows.dead)
            self._keep_widths(segments)
        if widen:
            self._watch(questions)
        elif recall < self.target:
            log.warning("searches of %s find %.3f of the ten best, less than %.3f", self._folder, recall, self.target)
        self._build_all()

    def _keep_widths(self, segments: Sequence[Dense]) -> None:
        if self._folder is None or not self._folder.is_dir():
            return
        widths = {one.name: [one.graph.width, one.graph.recall] for one in segments if one.graph is not None}
        making = self._folder / f"{WIDTH_FILE}.tmp"
        write_synced(making, json.dumps(widths).encode())
        making.replace(self._folder / WIDTH_FILE)


def _living(segment: Dense, dead: Numbers) -> Dense:
    """Without the rows of dead documents."""
    rows = np.flatnonzero(~np.isin(segment.owners, dead))
    block = segment.block if len(rows) == len(segment.owners) else segment.block.take(rows)
    return Segment(block, segment.owners[rows], np.setdiff1d(segment.covered, dead))


def _note(segment: Dense, recall: float, wider: int) -> Dense:
    if segment.graph is None:
        return segment
    return replace(segment, graph=replace(segment.graph, recall=recall, width=wider * segment.graph.width))


def _read_graph(segment: Path, arrays: Arrays) -> Graph | None:
    """The graph that lies beside the rows; what cannot be read is built again."""
    if GRAPH not in arrays or WIDTH not in arrays:
        return None
    try:
        graph = Graph.read(arrays, arrays["vectors"])
    except ValueError as error:
        log.warning("the graph in %s cannot be used (%s): it is built again", segment, str(error))
        return None
    with suppress(OSError, ValueError, KeyError, TypeError):
        width, recall = json.loads((segment.parent / WIDTH_FILE).read_bytes())[segment.name]
        return replace(graph, width=min(max(int(width), WIDTHS[0]), WIDTHS[-1]), recall=float(recall))
    return graph
