"""Keys in a process of their own, behind a socket: numbers, vectors and counted terms, and nothing of evokey.

    python distant_server.py        serves, and prints where

It scores as it likes, with other bits than evokey's own stores have.
"""

import sys
import threading
from collections import Counter, defaultdict
from multiprocessing.connection import Listener

import numpy as np

KEY = b"distant keys"


class Space:
    """The keys of one retriever, in the server: rows by document number."""

    def __init__(self):
        self.rows, self.writer, self.revision = {}, "", 0

    def position(self):
        return self.writer, max(self.rows, default=-1)

    def keep(self, live):
        """Documents of later numbers may be another process's, which is ahead."""
        last = max(live, default=-1)
        self.remove([number for number in self.rows if number <= last and number not in set(live)])
        return bool(self.rows)

    def remove(self, numbers):
        self.revision += sum(self.rows.pop(number, None) is not None for number in numbers)

    def write(self, rows):
        self.rows |= {number: some for number, some in rows.items() if number not in self.rows}
        self.revision += 1

    def sign(self, writer):
        self.writer = writer

    def drop(self):
        self.rows, self.writer, self.revision = {}, "", self.revision + 1

    def version(self):
        return self.revision

    def size(self):
        return sum(bool(some) for some in self.rows.values())

    def dimension(self):
        return next((len(some[0]) for some in self.rows.values() if some), None)

    def sizes(self, numbers):
        return [len(self.rows[number]) if number in self.rows else -1 for number in numbers]

    def fetch(self, numbers):
        return {number: self.rows[number] for number in numbers if number in self.rows}

    def lengths(self):
        return sorted({sum(row.values()) for some in self.rows.values() for row in some})

    def counts(self):
        lengths = [sum(row.values()) for some in self.rows.values() for row in some]
        return len(lengths), sum(lengths) / max(len(lengths), 1)

    def frequencies(self, terms):
        held = Counter(term for some in self.rows.values() for row in some for term in row)
        return [held[term] for term in terms]

    def search(self, asked, k, without, within):
        left_out, found = set(without), []
        for number in sorted(self.rows if within is None else set(within) & self.rows.keys()):
            if number not in left_out and self.rows[number]:
                best = max(self._score(row, asked) for row in self.rows[number])
                if best > 0 or not isinstance(asked, tuple):
                    found.append((-best, number))
        best = sorted(found)[:k]
        return [number for _, number in best], [-score for score, _ in best]

    def _score(self, row, asked):
        if not isinstance(asked, tuple):
            return float(row.astype(np.float64) @ asked)
        weights, pivots = asked
        pivot = 0.0 if pivots is None else pivots[sum(row.values())]
        shares = {term: count / (count + pivot) if pivots else count for term, count in row.items() if term in weights}
        return sum(weights[term] * share for term, share in reversed(shares.items()))


def serve():
    spaces, lock = defaultdict(Space), threading.Lock()
    listener = Listener(("127.0.0.1", 0), authkey=KEY)
    sys.stdout.write(f"127.0.0.1:{listener.address[1]}\n")
    sys.stdout.flush()

    def answer(connection):
        while True:
            try:
                what, name, arguments = connection.recv()
            except (EOFError, OSError):
                return
            with lock:
                try:
                    connection.send(getattr(spaces[name], what)(*arguments))
                except Exception as error:  # noqa: BLE001 - whoever asked hears of it
                    connection.send(error)

    while True:
        threading.Thread(target=answer, args=(listener.accept(),), daemon=True).start()


if __name__ == "__main__":
    sys.exit(serve())
