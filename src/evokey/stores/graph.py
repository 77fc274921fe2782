"""A graph over the rows of a segment (HNSW, by faiss): it finds rows near a question without looking at all of them.

Its nodes hold vectors of 16-bit numbers, half the size of the rows; what it finds is scored again by the rows
themselves. A graph that is read from disk is a view of the mapped file and never changes: to grow, it is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from evokey.scoring.block import Arrays
from evokey.types import Numbers, Vectors

NEIGHBOURS, BUILD_WIDTH = 64, 128
"""Links of a node, half of them above the lowest level; how many nodes are looked at to place a new one."""
PIECE = 1_000
"""Rows that are added at a time: a build can be stopped in between."""
WIDTHS = (64, 128, 256, 512, 1024)
"""How many nodes a search keeps in view, at the least; more take longer and find more."""
MEASURED_DEPTH = 10
ROUNDING = 2e-4
"""A score by 16-bit numbers differs by less from that of the row."""
ASKED = 64
"""Questions that the width is chosen by."""
GRAPH, WIDTH = "graph", "width"
"""The arrays of a segment that a graph is written as."""


@dataclass(frozen=True)
class Graph:
    index: Any
    width: int = WIDTHS[-1]
    recall: float = 1.0
    """Of the ten best, the share that was found when it was last measured."""
    mapped: NDArray[np.uint8] | None = None
    """The file that the index is a view of."""

    def __len__(self) -> int:
        return int(self.index.ntotal)

    def search(self, vector: Vectors, count: int, width: int, selector: Any = None) -> Numbers:
        """So many rows near a vector, the nearest first; fewer where it finds no more."""
        parameters = faiss.SearchParametersHNSW(efSearch=max(width, count), sel=selector)
        _, found = self.index.search(vector[None], count, params=parameters)
        rows: Numbers = found[0]
        return rows if rows[-1] >= 0 else rows[rows >= 0]

    def arrays(self) -> Arrays:
        return {GRAPH: faiss.serialize_index(self.index), WIDTH: np.array([self.width, self.recall])}

    @classmethod
    def read(cls, arrays: Arrays, rows: Vectors) -> Graph:
        """The graph over these rows. ValueError if it is none."""
        mapped = arrays[GRAPH]
        try:
            index = faiss.read_index(faiss.ZeroCopyIOReader(faiss.swig_ptr(mapped), mapped.size))
        except RuntimeError as error:
            raise ValueError(f"it is no graph ({error})") from error
        _check(index, rows)
        width, recall = arrays[WIDTH].tolist()
        return cls(index, int(width), float(recall), mapped)


def grow(base: Graph | None, pieces: Iterable[Vectors], stopped: Callable[[], bool]) -> Graph | None:
    """A graph of the rows of another one and of these, in this order; None if it was stopped."""
    index = None if base is None else _copy(base)
    for vectors in pieces:
        if index is None:
            kind = faiss.ScalarQuantizer.QT_fp16
            index = faiss.IndexHNSWSQ(vectors.shape[1], kind, NEIGHBOURS // 2, faiss.METRIC_INNER_PRODUCT)
            index.hnsw.efConstruction = BUILD_WIDTH
            index.is_trained = True  # 16-bit numbers have nothing to learn
        if stopped():
            return None
        index.add(vectors)
    return None if index is None else Graph(index)


def _copy(graph: Graph) -> Any:
    source = faiss.serialize_index(graph.index) if graph.mapped is None else np.asarray(graph.mapped)
    index = faiss.deserialize_index(source)
    index.hnsw.efConstruction = BUILD_WIDTH
    return index


def selector(allowed: NDArray[np.bool_]) -> Any:
    """Of the rows that may be found."""
    bits = np.packbits(allowed, bitorder="little")
    found = faiss.IDSelectorBitmap(bits)
    found.kept = bits  # it points into these
    return found


def calibrate(graph: Graph, rows: Sequence[Vectors], living: NDArray[np.bool_], target: float) -> Graph:
    """With the least width that finds enough of what is best for questions; rows: all of the graph, in pieces."""
    questions = sample_questions(rows)
    least = _least_scores(rows, questions, living)
    allowed, found = None if living.all() else selector(living), graph
    for width in WIDTHS:
        parameters = faiss.SearchParametersHNSW(efSearch=width, sel=allowed)
        scores, _ = graph.index.search(questions, MEASURED_DEPTH, params=parameters)
        found = replace(graph, width=width, recall=float((scores >= least[:, None] - ROUNDING).mean()))
        if found.recall >= target:
            break
    return found


def sample_questions(rows: Sequence[Vectors], seed: int = 0) -> Vectors:
    """Where nobody has asked yet: places between rows. It is harder to find from these than from the rows."""
    chance = np.random.default_rng(seed)
    largest = max(rows, key=len)
    one, other = (largest[np.sort(chance.integers(len(largest), size=ASKED))] for _ in range(2))
    between = one + chance.permutation(other)
    lengths = np.linalg.norm(between, axis=1, keepdims=True)
    return np.asarray(between / np.maximum(lengths, 1e-12), np.float32)


def _least_scores(rows: Sequence[Vectors], questions: Vectors, living: NDArray[np.bool_]) -> NDArray[np.float32]:
    """For each question, the least score of the ten best rows."""
    best, start = np.full((len(questions), MEASURED_DEPTH), -np.inf, np.float32), 0
    for piece in cut(rows, 1 << 15):
        scores = questions @ piece.T
        scores[:, ~living[start : start + len(piece)]] = -np.inf
        both = np.concatenate([best, scores], axis=1)
        best = np.partition(both, both.shape[1] - MEASURED_DEPTH, axis=1)[:, -MEASURED_DEPTH:]
        start += len(piece)
    least: NDArray[np.float32] = best.min(axis=1)
    return least


def _check(index: Any, rows: Vectors) -> None:
    """A file may have been made by anybody: no link may lead out of the graph."""
    if type(index) is not faiss.IndexHNSWSQ or (index.ntotal, index.d) != rows.shape:
        raise ValueError("it is no graph of these rows")
    hnsw, count = index.hnsw, len(rows)
    links = _view(hnsw.neighbors, np.int32)
    offsets, levels = _view(hnsw.offsets, np.uint64), _view(hnsw.levels, np.int32)
    wrong = (
        len(offsets) != count + 1
        or len(levels) != count
        or int(offsets[-1]) != len(links)
        or bool((offsets[1:] < offsets[:-1]).any())
        or (count and not 0 <= hnsw.entry_point < count)
        or (len(links) and (int(links.min()) < -1 or int(links.max()) >= count))
        or faiss.downcast_index(index.storage).codes.size() != count * index.storage.sa_code_size()
    )
    if wrong:
        raise ValueError("a link of the graph leads out of it")


def _view(vector: Any, kind: Any) -> NDArray[Any]:
    """A vector of faiss as an array, without a copy."""
    size = vector.size()
    return faiss.rev_swig_ptr(vector.data(), size) if size else np.zeros(0, kind)


def cut(blocks: Sequence[Vectors], size: int = PIECE) -> Iterator[Vectors]:
    """Rows, piece by piece."""
    for vectors in blocks:
        for start in range(0, len(vectors), size):
            yield np.ascontiguousarray(vectors[start : start + size])
