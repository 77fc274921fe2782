"""The bare libraries that benchmarks/million.py compares with: each builds its index piece by piece, kept on disk."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
K, BATCH = 10, 10_000
WIDTHS = (64, 128, 256, 512, 1000)
"""pgvector takes no more than 1,000."""
Find = Callable[[int], Any]
SetWidth = Callable[[int], None]


def build_usearch(file: Path, vectors: Any, start: int, end: int) -> dict[str, Any]:
    from usearch.index import Index

    index = Index(ndim=vectors.shape[1], metric="ip", dtype="f16", connectivity=16, expansion_add=128)
    if start:
        index.load(str(file))
    began, busy = time.perf_counter(), time.process_time()
    for at in range(start, end, BATCH):
        some = np.array(vectors[at : min(at + BATCH, end)])
        index.add(np.arange(at, at + len(some)), some, threads=1)
    seconds = {"build_seconds": time.perf_counter() - began, "build_processor_seconds": time.process_time() - busy}
    making = file.with_suffix(".tmp")
    index.save(str(making))
    making.replace(file)  # a step that is stopped leaves what the step before has made
    return seconds


def open_usearch(file: Path, asked: Any) -> tuple[Find, SetWidth]:
    from usearch.index import Index

    index = Index(ndim=asked.shape[1], metric="ip", dtype="f16", connectivity=16, expansion_add=128)
    index.load(str(file))

    def widen(width: int) -> None:
        index.expansion_search = width

    return lambda at: index.search(asked[at], K, threads=1).keys, widen


@contextmanager
def postgres(folder: Path) -> Iterator[Any]:
    """A connection to a server whose data stay in the folder."""
    sys.path.append(str(ROOT / "tests"))
    import psycopg
    from postgres_server import Server

    server = Server(folder)
    try:
        with psycopg.connect(server.url, autocommit=True) as connection:
            yield connection
    finally:
        server.stop()


def copy_pgvector(folder: Path, vectors: Any) -> dict[str, Any]:
    count, dimension = vectors.shape
    row = [("fields", ">i2"), ("size", ">i4"), ("number", ">i4"), ("bytes", ">i4"), ("dimension", ">i2")]
    kind = np.dtype([*row, ("unused", ">i2"), ("vector", ">f2", (dimension,))])
    began = time.perf_counter()
    with postgres(folder) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute("DROP TABLE IF EXISTS keys")
        connection.execute(f"CREATE TABLE keys (number int, vector halfvec({dimension}))")
        with connection.cursor().copy("COPY keys (number, vector) FROM STDIN (FORMAT binary)") as copy:
            copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
            for start in range(0, count, BATCH):
                some = vectors[start : start + BATCH]
                rows = np.zeros(len(some), kind)
                rows["fields"], rows["size"], rows["bytes"], rows["dimension"] = 2, 4, 4 + 2 * dimension, dimension
                rows["number"], rows["vector"] = np.arange(start, start + len(some)), some
                copy.write(rows.tobytes())
            copy.write(b"\xff\xff")
    return {"copy_seconds": time.perf_counter() - began}


def index_pgvector(folder: Path) -> dict[str, Any]:
    with postgres(folder) as connection:
        connection.execute("SET maintenance_work_mem = '2500MB'; SET max_parallel_maintenance_workers = 0")
        began = time.perf_counter()
        connection.execute(
            "CREATE INDEX ON keys USING hnsw (vector halfvec_ip_ops) WITH (m = 16, ef_construction = 64)"
        )
        seconds = time.perf_counter() - began
        size = connection.execute("SELECT pg_total_relation_size('keys')").fetchone()
        rows = connection.execute("SELECT count(*) FROM keys").fetchone()
    return {"build_seconds": seconds, "disk_mb": size[0] // 2**20, "rows": rows[0]}


def open_pgvector(connection: Any, asked: Any) -> tuple[Find, SetWidth]:
    texts = ["[" + ",".join(map(repr, one.tolist())) + "]" for one in asked]
    sql = f"SELECT number FROM keys ORDER BY vector <#> %s::halfvec LIMIT {K}"

    def find(at: int) -> Any:
        return np.array([row[0] for row in connection.execute(sql, (texts[at],)).fetchall()])

    return find, lambda width: connection.execute(f"SET hnsw.ef_search = {width}")
