"""API keys: who may do what, in a file of the service. Only a hash of a key is kept, so nobody can read it there.

A key is `evk_NAME_SECRET`. The secret is 32 random bytes, so a plain SHA-256 is enough: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evokey.errors import InvalidInput, StorageFailed
from evokey.filters import Where

FILE = "service.sqlite"
SCOPES = ("read", "teach", "teach-as", "admin")
ALL = "*"
NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}")
GRACE = 86_400.0
"""Seconds for which the old secret of a key works after a rotation."""
TRUSTED, BELIEVED = 1.0, 1_000
"""Seconds for which a key is not looked up again, and how many keys."""
AUDITED = 100_000
"""Entries of the audit log that are kept."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (
    name TEXT PRIMARY KEY, hash TEXT NOT NULL, old_hash TEXT, old_until REAL, scopes TEXT NOT NULL,
    collections TEXT NOT NULL, actor TEXT NOT NULL, filter TEXT, rate REAL NOT NULL, expires REAL,
    created REAL NOT NULL, revoked INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, key TEXT NOT NULL, action TEXT NOT NULL,
    collection TEXT);
"""


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    scopes: frozenset[str] = frozenset({"read"})
    collections: tuple[str, ...] = (ALL,)
    actor: str = ""
    """Whose feedback it is; the name of the key unless said otherwise."""
    where: Where | None = field(default=None, hash=False)
    """A filter that every request of this key has beside its own."""
    rate: float = 50.0
    """Requests per second; twice as many at once."""
    expires: float | None = None
    created: float = 0.0
    revoked: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name, "scopes": sorted(self.scopes), "collections": list(self.collections),
            "actor": self.actor, "where": self.where, "rate": self.rate, "expires": self.expires,
            "created": self.created, "revoked": self.revoked,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Act:
    """An entry of the audit log: which key did what. A user of a key is named by the lesson, where that can be
    forgotten."""

    number: int
    time: float
    key: str
    action: str
    collection: str | None


class KeyRing:
    def __init__(self, folder: Path, *, now: Callable[[], float] = time.time) -> None:
        self._path, self._now = folder / FILE, now
        self._mutex = threading.Lock()
        self._file: sqlite3.Connection | None = None
        self._found: dict[str, tuple[Key, float]] = {}
        """Keys that were shown lately, by the hash of what was shown, and until when that is believed."""
        with self._open() as file:
            file.execute("PRAGMA journal_mode = WAL")
            file.executescript(SCHEMA)
        self._path.chmod(0o600)

    def create(self, key: Key) -> str:
        """Make a key; returns it as its owner uses it. It is told this once."""
        check(key)
        secret = secrets.token_urlsafe(32)
        key = replace(key, actor=key.actor or key.name, created=self._now())
        where = None if key.where is None else json.dumps(key.where)
        row = (
            key.name, _hash(secret), None, None, json.dumps(sorted(key.scopes)), json.dumps(list(key.collections)),
            key.actor, where, key.rate, key.expires, key.created, 0,
        )  # fmt: skip
        with self._open() as file:
            try:
                file.execute(f"INSERT INTO keys VALUES ({','.join('?' * len(row))})", row)
            except sqlite3.IntegrityError:
                raise InvalidInput(
                    f"there is a key {key.name!r}; rotate it, or choose another name (a name is used once)"
                ) from None
        return f"evk_{key.name}_{secret}"

    def rotate(self, name: str, grace: float = GRACE) -> str:
        """A new secret for a key; the old one works for so many seconds more."""
        secret = secrets.token_urlsafe(32)
        self._found = {}
        with self._open() as file:
            changed = file.execute(
                "UPDATE keys SET old_hash = hash, old_until = ?, hash = ? WHERE name = ? AND revoked = 0",
                (self._now() + grace, _hash(secret), name),
            ).rowcount
        self._check_found(changed, name)
        return f"evk_{name}_{secret}"

    def revoke(self, name: str) -> None:
        self._found = {}
        with self._open() as file:
            changed = file.execute("UPDATE keys SET revoked = 1, old_hash = NULL WHERE name = ?", (name,)).rowcount
        self._check_found(changed, name)

    def all(self) -> list[Key]:
        with self._open() as file:
            return [_key(row) for row in file.execute("SELECT * FROM keys ORDER BY created, name")]

    def find(self, said: str) -> Key | None:
        """The key that somebody shows, if it is one, and neither expired nor revoked. What another process revokes is
        believed for a second more."""
        known, until = self._found.get(_hash(said), (None, 0.0))
        if known is None or until <= self._now():
            known = self._look_up(said)
            self._found = {} if len(self._found) >= BELIEVED else self._found
            if known is not None:
                self._found[_hash(said)] = known, self._now() + TRUSTED
        expired = known is not None and known.expires is not None and known.expires <= self._now()
        return None if expired else known

    def knows(self, said: str) -> bool:
        """Whether `find` need not look into the file."""
        known, until = self._found.get(_hash(said), (None, 0.0))
        return known is not None and until > self._now()

    def _look_up(self, said: str) -> Key | None:
        start, _, rest = said.partition("_")
        name, _, secret = rest.partition("_")
        if start != "evk" or not secret or not NAME.fullmatch(name):
            return None
        with self._open() as file:
            row = file.execute("SELECT * FROM keys WHERE name = ?", (name,)).fetchone()
        if row is None or not _matches(row, secret, self._now()):
            return None
        key = _key(row)
        return None if key.revoked else key

    # ---- the audit log: who did what

    def audit(self, act: Act) -> None:
        with self._open() as file:
            file.execute(
                "INSERT INTO audit (time, key, action, collection) VALUES (?,?,?,?)",
                (self._now(), act.key, act.action, act.collection),
            )
            file.execute("DELETE FROM audit WHERE number <= (SELECT max(number) FROM audit) - ?", (AUDITED,))

    def acts(self, count: int = 100) -> list[Act]:
        """The newest first."""
        with self._open() as file:
            rows = file.execute("SELECT * FROM audit ORDER BY number DESC LIMIT ?", (count,)).fetchall()
        return [Act(*row) for row in rows]

    def _check_found(self, changed: int, name: str) -> None:
        if not changed:
            raise InvalidInput(f"there is no key {name[:80]!r} that is in use; list them with: evokey api-keys list")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """The connection of this process, for one act at a time. It stays open: to close the last one costs a
        checkpoint."""
        try:
            with self._mutex:
                if self._file is None:
                    self._file = sqlite3.connect(self._path, timeout=10, isolation_level=None, check_same_thread=False)
                    weakref.finalize(self, self._file.close)
                    self._file.execute("PRAGMA synchronous = NORMAL")  # a power cut may cost the audit log's last lines
                yield self._file
        except sqlite3.OperationalError as error:
            raise StorageFailed(
                f"{self._path} cannot be used ({error}); free space, or check its permissions"
            ) from error


def check(key: Key) -> None:
    if not NAME.fullmatch(key.name):
        raise InvalidInput(f"a key's name is a-z, 0-9, '.' and '-', at most 63 characters; not {key.name[:80]!r}")
    unknown = sorted(set(key.scopes) - set(SCOPES))
    if unknown or not key.scopes:
        raise InvalidInput(f"a key has some of the scopes {', '.join(SCOPES)}; not {', '.join(unknown) or 'none'}")
    if not 0 < key.rate <= 1e6:
        raise InvalidInput(f"a key may make more than 0 requests a second, not {key.rate}")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _matches(row: Sequence[Any], secret: str, now: float) -> bool:
    said = _hash(secret)
    current = hmac.compare_digest(row[1], said)
    old = row[2] is not None and row[3] > now and hmac.compare_digest(row[2], said)
    return current or old


def _key(row: Sequence[Any]) -> Key:
    name, _, _, _, scopes, collections, actor, where, rate, expires, created, revoked = row
    return Key(
        name, frozenset(json.loads(scopes)), tuple(json.loads(collections)), actor,
        None if where is None else json.loads(where), rate, expires, created, bool(revoked),
    )  # fmt: skip
