"""Vectors in the wire format of pgvector, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evokey.postgres.connections import Connection
from evokey.types import Numbers, Vectors

HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
END = b"\xff\xff"
PIECE = 4_096
"""Rows sent at a time."""


def text_of(vector: Vectors) -> str:
    """A vector as a value of a statement; the bits come back."""
    return f"[{','.join(map(repr, vector.tolist()))}]"


def write_rows(connection: Connection, table: str, numbers: Numbers, places: Numbers, vectors: Vectors) -> None:
    """Copy rows (number, place, vector) into a table, in PostgreSQL's binary format."""
    if not len(numbers):
        return
    size = vectors.shape[1]
    row = np.dtype(
        [("fields", ">i2"), ("a", ">i4"), ("number", ">i8"), ("b", ">i4"), ("place", ">i4"),
         ("c", ">i4"), ("size", ">i2"), ("unused", ">i2"), ("vector", ">f4", (size,))]
    )  # fmt: skip
    with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT BINARY)") as copy:
        copy.write(HEAD)
        for start in range(0, len(numbers), PIECE):
            part = slice(start, start + PIECE)
            rows = np.zeros(len(numbers[part]), row)
            rows["fields"], rows["a"], rows["b"], rows["c"], rows["size"] = 3, 8, 4, 4 + 4 * size, size
            rows["number"], rows["place"], rows["vector"] = numbers[part], places[part], vectors[part]
            copy.write(rows.tobytes())
        copy.write(END)


def read_rows(rows: Sequence[Any]) -> tuple[Numbers, Numbers, Vectors]:
    """Numbers, places and vectors of rows that were fetched in binary. One without a vector has the place −1, and a
    vector of zeros."""
    numbers, places = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
    told = [row[2] for row in rows]
    length = max((len(one) for one in told if one is not None), default=4)
    joined = b"".join(bytes(length) if one is None else one for one in told)
    parts = np.frombuffer(joined, [("head", ">i4"), ("vector", ">f4", (length // 4 - 1,))])
    return numbers, places, parts["vector"].astype(np.float32).reshape(len(rows), length // 4 - 1)
