"""A store as another package would write it: dense and sparse keys that are in another process (distant_server.py)."""

import threading
from collections import defaultdict
from multiprocessing.connection import Client

import numpy as np

from evokey.scoring.block import Found, Keys
from evokey.scoring.dense import DenseBlock
from evokey.scoring.sparse import SparseBlock
from evokey.types import Ranking

KEY = b"distant keys"


class Distant:
    """Keys in another process."""

    kinds = frozenset({"dense", "sparse"})
    exact = False  # its sums run in another order
    changed = True  # others may write at any time

    def __init__(self, space, address):
        host, _, port = address.rpartition(":")
        self._space, self._name = space, f"{space.folder}/{space.identity}"
        self._connection, self._speaking = Client((host, int(port)), authkey=KEY), threading.Lock()
        self._origin, self._followed = None, False
        self._block = SparseBlock if space.encoder.kind == "sparse" else DenseBlock

    def _ask(self, what, *arguments):
        with self._speaking:
            self._connection.send((what, self._name, arguments))
            answer = self._connection.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    # ---- writing

    def open(self, origin):
        self._origin = origin

    def follow(self, live, added, removed):
        first, self._followed = not self._followed, True
        if not first:
            self._ask("remove", list(removed))
            return False
        writer, newest = self._ask("position")
        if newest >= 0 and self._origin is not None and not self._origin.owns(writer, newest):
            self.drop()  # of another ledger, or of one that was restored since
        return self._ask("keep", live.tolist())

    def write(self, keys):
        rows = defaultdict(list)
        for row, number in enumerate(keys.owners.tolist()):
            rows[number].append(_row(keys.block, row))
        self._ask("write", {number: rows[number] for number in keys.covered.tolist()})
        if self._origin is not None:
            self._ask("sign", self._origin.writer)

    def flush(self, *, force=True):
        """Nothing is kept on this side."""

    def check(self):
        return []

    def drop(self):
        self._ask("drop")

    # ---- reading: there is but one state, that of now

    @property
    def snapshot(self):
        return self

    @property
    def version(self):
        return self._ask("version")

    @property
    def dimension(self):
        return self._ask("dimension")

    @property
    def counts(self):
        return _Counts(*self._ask("counts"), lambda terms: self._ask("frequencies", list(terms)))

    def __len__(self):
        return self._ask("size")

    def sizes(self, numbers):
        return np.array(self._ask("sizes", numbers.tolist()), np.int64)

    def fetch(self, numbers):
        rows = self._ask("fetch", numbers.tolist())
        owners = np.array([number for number, some in rows.items() for _ in some], np.int64)
        found = [row for some in rows.values() for row in some]
        if self._block.unit:
            block = self._block(np.stack(found)) if found else self._block.empty()
        else:
            block = self._block.of(found)
        return Keys(np.array(list(rows), np.int64), owners, block)

    def search(self, questions, k, *, without=(), within=None):
        limits = k, np.asarray(without).tolist(), None if within is None else within.tolist()
        found = []
        for question in questions:
            numbers, scores = self._ask("search", self._asked(question), *limits)
            found.append(Found(Ranking(np.array(numbers, np.int64), np.array(scores, np.float64))))
        return found

    def _asked(self, question):
        if self._block.unit:
            return question.vector
        lengths = self._ask("lengths")
        pivots = self._space.encoder.pivots(np.array(lengths, np.float64), question.average)
        weights = dict(zip(question.terms, question.weights, strict=True))
        return weights, None if pivots is None else dict(zip(lengths, pivots.tolist(), strict=True))


class _Counts:
    def __init__(self, rows, average, frequencies):
        self.rows, self.average, self.frequencies = rows, average, frequencies


def _row(block, row):
    if block.unit:
        return block.vectors[row]
    span = slice(*block.counts.indptr[row : row + 2].tolist())
    terms = [block.terms[column] for column in block.counts.indices[span].tolist()]
    return dict(zip(terms, block.counts.data[span].tolist(), strict=True))
