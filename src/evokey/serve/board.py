"""Jobs as all workers of a service see them: in the service's file, with figures and without a name or a question."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evokey.serve.keys import FILE

if TYPE_CHECKING:
    from evokey.serve.jobs import Job

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS jobs (id TEXT PRIMARY KEY, collection TEXT NOT NULL, begun REAL NOT NULL, "
    "worker INTEGER NOT NULL, job TEXT NOT NULL)"
)
KEPT = 100
NAMED = ("actors_left_out", "documents_left_out")
"""What a report says by name: it could not be forgotten here."""


class Board:
    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        with self._open() as file:
            file.execute(SCHEMA)

    def put(self, job: Job) -> None:
        report = job.report and {name: value for name, value in job.report.items() if name not in NAMED}
        told = replace(job, report=report, preview=None).to_dict()
        with self._open() as file:
            file.execute(
                "INSERT OR REPLACE INTO jobs VALUES (?,?,?,?,?)",
                (job.id, job.collection, job.begun, os.getpid(), json.dumps(told)),
            )
            file.execute("DELETE FROM jobs WHERE id NOT IN (SELECT id FROM jobs ORDER BY begun DESC LIMIT ?)", (KEPT,))

    def all(self, collection: str) -> list[dict[str, Any]]:
        """The fields of each job, the newest first; one whose worker has ended has failed."""
        with self._open() as file:
            rows = file.execute(
                "SELECT worker, job FROM jobs WHERE collection = ? ORDER BY begun DESC", (collection,)
            ).fetchall()
        return [_fields(worker, json.loads(told)) for worker, told in rows]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=10, isolation_level=None)) as file:
            yield file


def _fields(worker: int, told: dict[str, Any]) -> dict[str, Any]:
    if told["ended"] is None and not _lives(worker):
        told |= {"state": "failed", "ended": told["begun"], "error": "the service ended"}
    return {name: value for name, value in told.items() if name != "progress"}


def _lives(worker: int) -> bool:
    try:
        os.kill(worker, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
