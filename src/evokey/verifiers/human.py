"""People as verifiers: attempts wait in a file until somebody has looked; then their word is the ruling.

verify() puts an attempt into the queue and abstains, or returns what was answered. The same question with the same
answer and documents, in any order, is asked once. Any number of processes may share the file.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from evokey.erasure import PATIENCE, Erasure, scrub
from evokey.errors import InvalidInput, InvalidSettings
from evokey.types import Attempt, Document, Ruling, digest
from evokey.verifiers.rulings import abstain, credit_citations, whole

SCHEMA = """CREATE TABLE IF NOT EXISTS questions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE NOT NULL, asked TEXT NOT NULL, time REAL NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'answered', 'skipped')),
    success INTEGER, grades TEXT, actor TEXT, answered REAL)"""


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is shown."""

    id: int
    query: str
    answer: str | None
    documents: tuple[Document, ...]
    cites: tuple[str, ...]
    expected: tuple[str, ...]
    time: float


class Human:
    name: ClassVar[str] = "human"
    looks_at: ClassVar[Literal["both"]] = "both"

    def __init__(self, at: str | Path, *, now: Callable[[], float] = time.time) -> None:
        self._at, self._now = Path(at).expanduser(), now
        self.identity = self.name
        try:
            self._at.parent.mkdir(parents=True, exist_ok=True)
            with self._open() as file:
                file.execute(SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise InvalidSettings(f"human: {self._at} cannot keep a queue ({error}); name another file") from error

    def verify(self, attempt: Attempt) -> Ruling:
        if not attempt.hits and (attempt.answer is None or not attempt.answer.text.strip()):
            return abstain("nothing was found or answered")
        asked, name = _question_fields(attempt), _name(attempt)
        try:
            with self._open() as file:
                row = file.execute("SELECT state, success, grades FROM questions WHERE name = ?", (name,)).fetchone()
                if row is None:
                    file.execute(
                        "INSERT OR IGNORE INTO questions (name, asked, time) VALUES (?, ?, ?)",
                        (name, json.dumps(asked), self._now()),
                    )
        except sqlite3.Error as error:
            return abstain(f"the queue {self._at} does not answer: {error}")
        if row is None or row[0] != "answered":
            return abstain("a person skipped it" if row and row[0] == "skipped" else "it waits for a person")
        success = None if row[1] is None else bool(row[1])
        ruling = Ruling(success, None, json.loads(row[2] or "{}"), "a person said so")
        return ruling if ruling.grades else credit_citations(ruling, attempt)

    def ask(self, attempt: Attempt) -> int:
        """Put an attempt into the queue, once, whether or not it was skipped before; returns its number."""
        name = _name(attempt)
        with self._open() as file:
            file.execute(
                "INSERT INTO questions (name, asked, time) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE "
                "SET state = CASE state WHEN 'skipped' THEN 'pending' ELSE state END",
                (name, json.dumps(_question_fields(attempt)), self._now()),
            )
            row = file.execute("SELECT number FROM questions WHERE name = ?", (name,)).fetchone()
        return int(row[0])

    def drop(self, id: int) -> None:
        """Take a question back that nobody has answered."""
        with self._open() as file:
            file.execute("PRAGMA secure_delete = ON")
            file.execute("DELETE FROM questions WHERE number = ? AND state = 'pending'", (id,))

    def question(self, id: int) -> Question:
        """A question, open or not."""
        with self._open() as file:
            row = file.execute("SELECT number, asked, time FROM questions WHERE number = ?", (id,)).fetchone()
        if row is None:
            raise InvalidInput(f"no question {id} was asked; pending() lists the open ones")
        return _question(*row)

    def pending(self) -> list[Question]:
        """What waits, oldest first."""
        with self._open() as file:
            rows = file.execute(
                "SELECT number, asked, time FROM questions WHERE state = 'pending' ORDER BY number"
            ).fetchall()
        return [_question(*row) for row in rows]

    def answer(
        self, id: int, success: bool | None, grades: Mapping[str, float] | None = None, *, actor: str | None = None
    ) -> None:
        """A person's word: whether it was right, and which of the shown documents were (above 0) or were not (below
        0). Said again, the later word counts. success None: only the grades are said."""
        with self._open() as file:
            row = file.execute("SELECT asked FROM questions WHERE number = ?", (id,)).fetchone()
            if row is None:
                raise InvalidInput(f"no question {id} was asked; pending() lists the open ones")
            _check(_question(id, row[0], 0.0), grades or {})
            said = (None if success is None else int(success), json.dumps(dict(grades or {})), actor, self._now(), id)
            file.execute(
                "UPDATE questions SET state = 'answered', success = ?, grades = ?, actor = ?, answered = ? "
                "WHERE number = ?",
                said,
            )

    def skip(self, id: int) -> None:
        """Nobody will tell: it abstains from now on, and waits no more."""
        with self._open() as file:
            if not file.execute("UPDATE questions SET state = 'skipped' WHERE number = ?", (id,)).rowcount:
                raise InvalidInput(f"no question {id} was asked; pending() lists the open ones")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection for one act, so that threads and processes may share the file."""
        with closing(sqlite3.connect(self._at, timeout=60, isolation_level=None)) as file:
            yield file


def forget(queue: Path, erasure: Erasure) -> None:
    """Erase questions that are to be forgotten, and what was answered."""
    with closing(sqlite3.connect(queue, timeout=PATIENCE, isolation_level=None)) as file:
        rows = file.execute("SELECT number, asked, grades, actor FROM questions").fetchall()
        gone = [
            (number,)
            for number, asked, grades, actor in rows
            if erasure.covers(json.loads(asked)["query"], actor, json.loads(grades or "{}"))
        ]
        file.executemany("DELETE FROM questions WHERE number = ?", gone)
        scrub(file, queue)


def _check(question: Question, grades: Mapping[str, float]) -> None:
    shown = {document.id for document in question.documents}
    for id, grade in grades.items():
        if id not in shown:
            raise InvalidInput(f"question {question.id} showed no document {id!r}; it showed {sorted(shown)}")
        if isinstance(grade, bool) or not isinstance(grade, int | float) or not math.isfinite(grade):
            raise InvalidInput(f"the grade of {id!r} is a finite number, not {grade!r}")


def _name(attempt: Attempt) -> str:
    shown = sorted(whole(f"{hit.id}\0{hit.document.title}\0{hit.document.text}") for hit in attempt.hits)
    return digest(whole(attempt.query), whole(attempt.answer.text) if attempt.answer else "", *shown)


def _question_fields(attempt: Attempt) -> dict[str, object]:
    return {
        "query": whole(attempt.query),
        "answer": whole(attempt.answer.text) if attempt.answer else None,
        "documents": [
            [whole(part) for part in (hit.id, hit.document.text, hit.document.title)] for hit in attempt.hits
        ],
        "cites": [whole(id) for id in attempt.answer.citations] if attempt.answer else [],
        "expected": [whole(gold) for gold in attempt.expected],
    }


def _question(number: int, asked: str, asked_at: float) -> Question:
    told = json.loads(asked)
    documents = tuple(Document(*parts) for parts in told["documents"])
    return Question(
        number, told["query"], told["answer"], documents, tuple(told["cites"]), tuple(told["expected"]), asked_at
    )
