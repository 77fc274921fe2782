"""A model that is never asked the same thing twice: answers are kept in a file, by the name of their request."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock

from evokey import registry
from evokey.erasure import PATIENCE, Erasure, scrub
from evokey.errors import InvalidSettings
from evokey.llm.request import Answering, name_of, passed_on, price_of
from evokey.protocols import LLM
from evokey.registry import Named
from evokey.types import Completion, Message

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS answers (name TEXT PRIMARY KEY, text TEXT, model TEXT, finished INTEGER, request TEXT)"
)


class Cached:
    """Sampled answers (a temperature above 0) are meant to differ, and are kept only where sampled says so."""

    def __init__(self, llm: LLM | Named, at: str | Path, *, sampled: bool = False) -> None:
        self.llm: LLM = registry.build("llm", llm)
        self.identity = self.llm.identity
        self._at, self._sampled = Path(at).expanduser(), sampled
        self._asking: dict[str, Lock] = {}
        self._at.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self._open() as answers:
                answers.execute(SCHEMA)
                _add_request(answers)
        except sqlite3.DatabaseError as error:
            raise InvalidSettings(f"cached: {self._at} cannot keep answers ({error}); name another file") from error

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Completion:
        if temperature and not self._sampled:
            return self.llm.complete(messages, max_tokens=max_tokens, temperature=temperature)
        name = name_of(self.identity, messages, max_tokens, temperature)
        with self._asking.setdefault(name, Lock()):
            found = self._lookup(name)
            if found is None:
                found = self.llm.complete(messages, max_tokens=max_tokens, temperature=temperature)
                self._keep(name, messages, found)
        return found

    def stream(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Answering:
        """A kept answer comes in one piece. One that was left before its end is not kept."""
        if temperature and not self._sampled:
            return (yield from passed_on(self.llm, messages, max_tokens, temperature))
        name = name_of(self.identity, messages, max_tokens, temperature)
        found = self._lookup(name)
        if found is not None:
            yield found.text
            return found
        found = yield from passed_on(self.llm, messages, max_tokens, temperature)
        self._keep(name, messages, found)
        return found

    def price(self, prompt_tokens: int, answer_tokens: int) -> float | None:
        return price_of(self.llm, prompt_tokens, answer_tokens)

    def _lookup(self, name: str) -> Completion | None:
        """An answer from the file has cost nothing."""
        with self._open() as answers:
            row = answers.execute("SELECT text, model, finished FROM answers WHERE name = ?", (name,)).fetchone()
        return Completion(row[0], row[1], finished=bool(row[2])) if row else None

    def _keep(self, name: str, messages: Sequence[Message], answer: Completion) -> None:
        """With what was asked: an answer can be forgotten only where it is known what it answers."""
        request = "\n".join(message.text for message in messages)
        row = (name, answer.text, answer.model, answer.finished, request)
        with self._open() as answers:
            answers.execute(
                "INSERT OR REPLACE INTO answers (name, text, model, finished, request) VALUES (?, ?, ?, ?, ?)", row
            )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection for one act, so that threads and processes may share the file."""
        with closing(sqlite3.connect(self._at, timeout=60, isolation_level=None)) as answers:
            yield answers


def forget(file: Path, erasure: Erasure) -> None:
    """Erase answers to requests that quote a forgotten query, answers that quote one, and those of an older version,
    of which nobody knows what was asked."""
    if not erasure.queries:
        return
    with closing(sqlite3.connect(file, timeout=PATIENCE, isolation_level=None)) as answers:
        _add_request(answers)
        rows = answers.execute("SELECT name, request, text FROM answers")
        gone = [(name,) for name, request, text in rows if request is None or erasure.quoted_in((request, text))]
        answers.executemany("DELETE FROM answers WHERE name = ?", gone)
        scrub(answers, file)


def _add_request(answers: sqlite3.Connection) -> None:
    if "request" not in {row[1] for row in answers.execute("PRAGMA table_info(answers)")}:
        answers.execute("ALTER TABLE answers ADD COLUMN request TEXT")
