"""An encoder that never encodes the same text twice: around any other, with a file that outlives the process.

The file is SQLite in WAL mode, for any number of processes and threads. It holds no text: a row is found by hashes of
the text, and of side and encoder, and holds the vector, the matrix or the bag. It is no truth: a damaged file is
set aside and started again, and where it cannot be written, work goes on and what was encoded is not kept.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
import struct
import threading
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np
from filelock import FileLock

from evokey import registry
from evokey.errors import EncoderMismatch, InvalidSettings
from evokey.protocols import Cost, Encoder
from evokey.registry import Named, name_and_options
from evokey.types import Scores, Spent

log = logging.getLogger(__name__)

FILE = "encoded.sqlite"
HOME = Path("~/.cache/evokey")
KEPT_AT_ONCE = {"time": 64, "money": 1024, "nothing": 4096}
"""Texts encoded before the file hears of them: what a crash or a failing service can cost."""
ASKED_AT_ONCE = 500
SCHEMA = """
CREATE TABLE IF NOT EXISTS encoded (text BLOB, maker BLOB, value BLOB NOT NULL, PRIMARY KEY (text, maker)) WITHOUT ROWID
"""

Side = Literal["documents", "queries"]
STREAMED: Mapping[Side, str] = {"documents": "document", "queries": "query"}
"""The sides as encoders call them that give their answers as they come."""
Key = tuple[bytes, bytes]
"""Hash of the text, and hash of the side and the encoder."""
Place = tuple[int, int]
"""Device and number of a file, which a name may lose to another file."""
Done = TypeVar("Done")


class Kept(Protocol):
    """Key → bytes: the file, or a table of a database."""

    @property
    def path(self) -> Any:
        """What messages call it."""

    def read(self, keys: Sequence[Key]) -> dict[Key, bytes]: ...
    def write(self, values: Mapping[Key, bytes]) -> dict[Key, bytes]: ...
    def erase(self, texts: Sequence[bytes]) -> None: ...
    def close(self) -> None: ...


class Cached:
    kind: ClassVar[str]
    cost: ClassVar[Cost]
    identity: str

    def __init__(self, encoder: Named | Encoder, at: str | None = None) -> None:
        """at: the folder of the file; encoders may share it. Without one it is the user's cache folder."""
        made: Encoder = registry.build("encoder", encoder)
        _refuse_given(made.identity)
        self._begin(made, (Path(at) if at else HOME).expanduser() / FILE)

    @classmethod
    def around(cls, encoder: Encoder, at: Path | Kept, *, in_batches: bool = False) -> Cached:
        """The same for an encoder that is there already, and a file of that name, or what takes its place. in_batches:
        texts are encoded together even where that can change the last bits of a vector."""
        cached = cls.__new__(cls)
        cached._begin(encoder, at)
        cached._singly = cached._singly and not in_batches
        return cached

    @classmethod
    def kind_of(cls, options: Mapping[str, Any]) -> str:
        """The kind follows the encoder inside."""
        if "encoder" not in options:
            raise InvalidSettings("encoder 'cached' needs the encoder inside: {'name': 'cached', 'encoder': 'openai'}")
        inside = options["encoder"]
        if not isinstance(inside, str | Mapping):
            return str(inside.kind)
        name, inner = name_and_options(inside)
        _refuse_given(name)
        return registry.encoder_kind(name, inner)

    def _begin(self, encoder: Any, at: Path | Kept) -> None:
        # Class variables to the protocols; here they follow the encoder inside.
        vars(self).update(kind=encoder.kind, cost=encoder.cost)
        self.identity = encoder.identity
        self._encoder, self._file = encoder, File(at) if isinstance(at, Path) else at
        self._pack, self._unpack = PACKING[encoder.kind]
        self._singly = encoder.cost == "time"
        self._busy: set[Key] = set()
        self._change = threading.Condition()
        self.hits = self.misses = 0

    @property
    def spent(self) -> Spent:
        """What the encoder inside has cost."""
        return getattr(self._encoder, "spent", Spent())

    def documents(self, texts: Sequence[str]) -> Any:
        return self._encode("documents", texts)

    def queries(self, texts: Sequence[str]) -> Any:
        return self._encode("queries", texts)

    def pivots(self, lengths: Scores, average: float) -> Scores | None:
        found: Scores | None = self._encoder.pivots(lengths, average)
        return found

    def idf(self, documents: int, frequency: int) -> float:
        return float(self._encoder.idf(documents, frequency))

    def forget(self, texts: Sequence[str]) -> None:
        """Erase what any encoder that shares the file made of these texts, on both sides."""
        self.erase([hash_texts(text) for text in texts])

    def erase(self, hashes: Sequence[bytes]) -> None:
        """The same by hashes of the texts."""
        self._file.erase(hashes)

    def keep_nothing(self) -> None:
        """From now on what is encoded is kept in memory alone, for who may only read."""
        self._file = Scratch(self._file)

    def close(self) -> None:
        self._file.close()

    def _encode(self, side: Side, texts: Sequence[str]) -> Any:
        if not texts:
            return getattr(self._encoder, side)([])
        maker = hash_texts(side, self.identity)
        keyed = {(hash_texts(text), maker): text for text in texts}
        found, encoded = self._file.read(list(keyed)), 0
        while missing := [key for key in keyed if key not in found]:
            with self._claim(missing) as mine:
                found |= self._file.read(mine)
                made = self._make(side, {key: keyed[key] for key in mine if key not in found})
            found |= made
            found |= self._file.read([key for key in missing if key not in found])
            encoded += len(made)
        with self._change:
            self.misses += encoded
            self.hits += len(texts) - encoded
        return self._arrange([self._unpack(found[hash_texts(text), maker]) for text in texts])

    @contextmanager
    def _claim(self, keys: Sequence[Key]) -> Iterator[list[Key]]:
        """Those of the texts that no other thread is encoding; where there are none, after one of them is done."""
        with self._change:
            mine = [key for key in keys if key not in self._busy]
            if not mine:
                self._change.wait()
            self._busy.update(mine)
        try:
            yield mine
        finally:
            with self._change:
                self._busy.difference_update(mine)
                self._change.notify_all()

    def _make(self, side: Side, keyed: Mapping[Key, str]) -> dict[Key, bytes]:
        """Encoded now, and kept as they come. What comes back is what was kept: a miss gives the bits of a hit."""
        keys, made = list(keyed), dict[Key, bytes]()
        for start in range(0, len(keys), KEPT_AT_ONCE[self.cost]):
            some = keys[start : start + KEPT_AT_ONCE[self.cost]]
            for places, values in self._values(side, [keyed[key] for key in some]):
                packed = {some[place]: self._pack(value) for place, value in zip(places, values, strict=True)}
                made |= self._file.write(packed)
        return made

    def _values(self, side: Side, texts: Sequence[str]) -> Iterator[tuple[Iterable[int], Any]]:
        """Places among the texts and what was made of these: as the answers come, where an encoder gives them so."""
        encode: Callable[[Sequence[str]], Any] = getattr(self._encoder, side)
        if hasattr(self._encoder, "stream"):
            yield from self._encoder.stream(texts, STREAMED[side])
        elif self._singly:
            yield range(len(texts)), [encode([text])[0] for text in texts]
        else:
            yield range(len(texts)), encode(texts)

    def _arrange(self, values: list[Any]) -> Any:
        if self.kind != "dense":
            return values
        if len({len(value) for value in values}) > 1:
            sizes = ", ".join(map(str, sorted({len(value) for value in values})))
            raise EncoderMismatch(
                f"{self._file.path} holds vectors of {sizes} dimensions, all by {self.identity}: the model behind that "
                f"name has changed. Remove the file, or name the new one with the encoder's option revision."
            )
        return np.stack(values)


class Scratch:
    """What another place keeps, and beside it, in memory, what is new."""

    def __init__(self, kept: Kept) -> None:
        self._kept, self._new = kept, dict[Key, bytes]()

    @property
    def path(self) -> Any:
        return self._kept.path

    def read(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        new = {key: self._new[key] for key in keys if key in self._new}
        return {**self._kept.read([key for key in keys if key not in new]), **new}

    def write(self, values: Mapping[Key, bytes]) -> dict[Key, bytes]:
        self._new.update(values)
        return dict(values)

    def erase(self, texts: Sequence[bytes]) -> None:
        self._new = {key: value for key, value in self._new.items() if key[0] not in texts}
        self._kept.erase(texts)

    def close(self) -> None:
        self._kept.close()


class File:
    """Key → bytes, on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._opened_at: Place | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = self._open()
        except (OSError, sqlite3.OperationalError) as error:
            raise InvalidSettings(f"{path} cannot be a cache ({error}); give a folder that can be written") from error

    def read(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        """What is there of these, whole: a value that does not match its checksum is erased."""
        found: dict[Key, bytes] = {}
        for start in range(0, len(keys), ASKED_AT_ONCE):
            found |= self._work_on_file(partial(_select, keys[start : start + ASKED_AT_ONCE]), dict[Key, bytes]())
        broken = [key for key, value in found.items() if not _sound(value)]
        if broken:
            log.warning("%s: %d values are damaged, and are computed again", self.path, len(broken))
            self._work_on_file(
                lambda run: run.executemany("DELETE FROM encoded WHERE text = ? AND maker = ?", broken).rowcount, 0
            )
        return {key: value[CHECKSUM:] for key, value in found.items() if key not in broken}

    def write(self, values: Mapping[Key, bytes]) -> dict[Key, bytes]:
        """Keep what nobody kept before; what comes back is what the file holds now."""
        rows = [(*key, _seal(value)) for key, value in values.items()]

        def insert(connection: sqlite3.Connection) -> int:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                return connection.executemany(
                    "INSERT INTO encoded VALUES (?, ?, ?) ON CONFLICT DO NOTHING", rows
                ).rowcount

        all_new = not rows or self._work_on_file(insert, 0) == len(rows)
        return dict(values) if all_new else {**values, **self.read(list(values))}

    def erase(self, texts: Sequence[bytes]) -> None:
        """Remove all that was made of these texts, from the file's free pages and from files set aside, too."""

        def delete(connection: sqlite3.Connection) -> None:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("DELETE FROM encoded WHERE text = ?", [(text,) for text in texts])
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

        self._work_on_file(delete)
        for path in self.path.parent.glob(f"{self.path.name}.damaged*"):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _work_on_file(self, work: Callable[[sqlite3.Connection], Done], without: Done | None = None) -> Done:
        """Work on the file; on a new one, where it is damaged or gone. Where it cannot be used, go on without it."""
        with self._lock:
            try:
                if self._has_moved():
                    self._renew()
                try:
                    return work(self._connection)
                except sqlite3.DatabaseError as error:
                    if not _is_damage(error):
                        raise
                    self._renew(error)
                    return work(self._connection)
            except sqlite3.OperationalError as error:
                if without is None:
                    raise
                log.warning("%s cannot be used now (%s): what is encoded is not kept", self.path, error)
                return without

    def _has_moved(self) -> bool:
        """Whether the file under this name is no longer the one that was opened."""
        return self._opened_at is None or _place(self.path) != self._opened_at

    def _renew(self, damage: Exception | None = None) -> None:
        self._connection.close()
        damaged, self._opened_at = self._opened_at, None
        self._connection = self._open(damage, damaged)

    def _open(self, damage: Exception | None = None, damaged: Place | None = None) -> sqlite3.Connection:
        """A connection to a sound file. One process at a time, so that a damaged one is set aside once."""
        with FileLock(f"{self.path}.lock"):
            if damage is not None and _place(self.path) == damaged:
                self._set_aside(damage)
            try:
                connection = self._connect()
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self._set_aside(error)
                connection = self._connect()
            self._opened_at = _place(self.path)
        weakref.finalize(self, connection.close)
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables - {"encoded"}:
                raise InvalidSettings(f"{self.path} is a database of something else; give another place for the cache")
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute(SCHEMA)
            connection.text_factory = bytes  # a damaged value may call itself a text, and is none
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_aside(self, error: Exception) -> None:
        aside = next(
            name
            for number in count(1)
            if not (name := self.path.with_name(f"{self.path.name}.damaged{number}")).exists()
        )
        log.warning("%s is damaged (%s): set aside as %s, and started again", self.path, error, aside.name)
        for end in ("-wal", "-shm", ""):
            part = self.path.with_name(self.path.name + end)
            if part.exists():
                part.rename(aside.with_name(aside.name + end))


def _select(keys: Sequence[Key], connection: sqlite3.Connection) -> dict[Key, bytes]:
    asked = (
        f"SELECT text, maker, value FROM encoded WHERE (text, maker) IN (VALUES {', '.join(['(?, ?)'] * len(keys))})"
    )
    rows = connection.execute(asked, [part for key in keys for part in key])
    return {(text, maker): value for text, maker, value in rows}


CHECKSUM = 4


def _seal(value: bytes) -> bytes:
    return struct.pack("<I", zlib.crc32(value)) + value


def _sound(value: Any) -> bool:
    return isinstance(value, bytes) and value[:CHECKSUM] == struct.pack("<I", zlib.crc32(value[CHECKSUM:]))


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the file is to blame. SQL that is refused is ours and right, so the file's own description is wrong."""
    blame = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in blame


def _place(path: Path) -> Place | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def hash_texts(*texts: str) -> bytes:
    """A text as the file knows it."""
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    return hashlib.sha256(b"".join(struct.pack("<Q", len(part)) + part for part in parts)).digest()


def _refuse_given(name: str) -> None:
    if name == "given":
        raise InvalidSettings("encoder 'given' takes its vectors from the caller: there is nothing to cache")


def _pack_vector(vector: Any) -> bytes:
    return np.asarray(vector, "<f4").tobytes()


def _vector(value: bytes) -> Any:
    return np.frombuffer(value, "<f4").astype(np.float32)


def _pack_matrix(matrix: Any) -> bytes:
    return struct.pack("<II", *matrix.shape) + np.ascontiguousarray(matrix, "<f4").tobytes()


def _matrix(value: bytes) -> Any:
    return np.frombuffer(value, "<f4", offset=8).reshape(struct.unpack_from("<II", value)).astype(np.float32)


def _pack_bag(bag: Mapping[str, Any]) -> bytes:
    """As JSON: it keeps whole numbers whole, and every digit of the others."""
    plain = {term: number.item() if isinstance(number, np.generic) else number for term, number in bag.items()}
    return json.dumps(plain, separators=(",", ":")).encode()


PACKING: Mapping[str, tuple[Callable[[Any], bytes], Callable[[bytes], Any]]] = {
    "dense": (_pack_vector, _vector),
    "multi": (_pack_matrix, _matrix),
    "sparse": (_pack_bag, json.loads),
}
