"""Revisions of encoders on disk: `models/<revision>/` in the memory's directory, and keys of their own.

A revision is written to a temporary folder, synced and renamed: it is there whole, or not at all. It counts when an
epoch names it; one that no epoch names (a crash came before the epoch was written, or a lesson that it was trained on
was forgotten) is swept away.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evokey.encoders.wordllama import TunedWordLlama, WordLlamaEncoder, token_table
from evokey.errors import DamagedRevision, EncoderMismatch
from evokey.search.retriever import Retriever
from evokey.settings import Settings, assemble, build_encoder, trust
from evokey.settings.trust import MODEL, MODELS
from evokey.stores.segments import new_name, sync_folder, write_synced
from evokey.types import Numbers, Vectors

CARD, SEEN = "revision.json", "seen.npy"
STATIC, NEURAL = "static", "sentence-transformers"
TOKENS, VECTORS = "tokens.npy", "vectors.npy"
TRAINING = "training"
"""A folder beside the revisions, for what an interrupted training needs to go on."""
FORMAT = 1


@dataclass(frozen=True)
class Seen(Container[str]):
    """Queries that training has seen, by hashes."""

    hashes: frozenset[int]

    @classmethod
    def read(cls, file: Path) -> Seen:
        return cls(frozenset(np.load(file, allow_pickle=False).tolist()))

    def __contains__(self, query: object) -> bool:
        return isinstance(query, str) and _hash(query) in self.hashes


def _hash(query: str) -> int:
    return int.from_bytes(hashlib.sha256(query.encode("utf-8", "surrogatepass")).digest()[:8], "big")


@dataclass(frozen=True, slots=True)
class Card:
    """What a revision says of itself."""

    kind: str
    retriever: str
    base: str
    """The identity of the encoder that training began with."""
    sums: Mapping[str, int]
    """Checksums of its files."""

    @classmethod
    def read(cls, folder: Path) -> Card:
        found = json.loads((folder / CARD).read_bytes())
        if found["format"] != FORMAT:
            raise ValueError(f"its format is {found['format']}, and this evokey reads {FORMAT}: upgrade it")
        return cls(str(found["kind"]), str(found["retriever"]), str(found["base"]), dict(found["sums"]))

    def write(self, folder: Path) -> None:
        told = {"format": FORMAT, "kind": self.kind, "retriever": self.retriever, "base": self.base, "sums": self.sums}
        write_synced(folder / CARD, json.dumps(told, indent=1).encode())


@dataclass(frozen=True)
class Revisions:
    """Those of one memory."""

    settings: Settings
    folder: Path

    def open(self, name: str, revision: str) -> Retriever:
        """The retriever of a name with a revision of its encoder."""
        at, one = self.folder / MODELS / revision, next(one for one in self.settings.retrievers if one.name == name)
        base = build_encoder(self.settings, one)
        with _readable(at):
            card = read_sound(self.folder, revision)
            seen = Seen.read(at / SEEN)
            if card.base != base.identity:
                raise EncoderMismatch(
                    f"{at} was trained from {card.base}, the settings now say {base.identity}. Go back to the first, "
                    f"or encode everything again, which drops the revision, with: evokey doctor --reencode"
                )
            encoder = _load(card, at, base, revision)
        retriever = assemble(self.settings, one, encoder, keys_of(self.folder, name, revision))
        retriever.revision, retriever.seen = revision, seen
        return retriever

    @contextmanager
    def write(self, kind: str, retriever: str, base: str, seen: Iterable[str]) -> Iterator[tuple[str, Path]]:
        """A new revision: its name, and the folder to put its files into. It is in place when this ends well."""
        revision = new_name()
        making = self.folder / MODELS / f"{revision}.tmp"
        making.mkdir(parents=True)
        try:
            yield revision, making
            np.save(making / SEEN, np.array(sorted(map(_hash, seen)), np.uint64))
            files = sorted(path for path in making.rglob("*") if path.is_file())
            for path in files:
                _sync(path)
            sums = {path.relative_to(making).as_posix(): _sum(path) for path in files}
            Card(kind, retriever, base, sums).write(making)
            making.rename(making.with_name(revision))
            sync_folder(making.parent)
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            raise
        trust.record(self.folder, [one.allowance for one in trust.models(self.folder)])


def _load(card: Card, at: Path, base: Any, revision: str) -> Any:
    """Where the memory was opened, its models were allowed (settings/trust.py)."""
    if card.kind == STATIC and type(base) is WordLlamaEncoder:
        return TunedWordLlama(*read_table(at), revision)
    if card.kind == NEURAL and hasattr(base, "with_weights"):
        return base.with_weights(at / MODEL, revision)
    raise ValueError(f"{card.base} has no revisions of the kind {card.kind!r}")


def write_table(folder: Path, tokens: Numbers, vectors: Vectors) -> None:
    """Of a static encoder: the tokens whose vectors differ, and these."""
    np.save(folder / TOKENS, np.asarray(tokens, np.int64))
    np.save(folder / VECTORS, np.asarray(vectors, np.float32))


def read_table(folder: Path) -> tuple[Numbers, Vectors]:
    tokens, vectors = (np.load(folder / name, allow_pickle=False) for name in (TOKENS, VECTORS))
    size, dimension = token_table().shape
    sound = tokens.ndim == 1 and vectors.shape == (len(tokens), dimension) and np.isfinite(vectors).all()
    if not sound or (len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < size):
        raise ValueError("its vectors do not fit the encoder")
    return tokens.astype(np.int64), vectors.astype(np.float32)


def keys_of(folder: Path, name: str, revision: str) -> Path:
    """Where the keys of a revision are: no retriever's own name has this sign in it."""
    return folder / "keys" / f"{name}@{revision}"


def read_sound(folder: Path, revision: str) -> Card:
    """The card of a revision whose files are what was written; an OSError, ValueError or KeyError if they are not."""
    at = folder / MODELS / revision
    if not revision.isalnum():  # the ledger may be a stranger's, and a path leads anywhere
        raise ValueError("its name is none that evokey gives")
    card = Card.read(at)
    for name, expected in card.sums.items():
        if not (at / name).resolve().is_relative_to(at.resolve()) or _sum(at / name) != expected:
            raise ValueError(f"the checksum of {name} is wrong")
    return card


@contextmanager
def _readable(at: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedRevision(
            f"{at} holds weights of a tuned encoder and cannot be read ({error}). Restore it from a backup; or go back "
            f"to the encoder of the settings with: evokey doctor --rebuild"
        ) from error


def find_faults(folder: Path, revisions: Collection[str]) -> list[str]:
    """What is wrong with the revisions that epochs name."""
    found = []
    for name in sorted(revisions):
        try:
            read_sound(folder, name)
        except (OSError, ValueError, KeyError, TypeError) as error:
            found.append(f"{folder / MODELS / name}: {error}")
    return found


def sweep(folder: Path, revisions: Collection[str]) -> None:
    """Remove weights and keys of all other revisions."""
    for path in paths(folder):
        if path.name.rpartition("@")[2] not in revisions:
            shutil.rmtree(path)


def paths(folder: Path) -> Sequence[Path]:
    """Weights and keys of revisions."""
    return sorted([*folder.glob(f"{MODELS}/*"), *folder.glob("keys/*@*")])


def _sum(path: Path) -> int:
    total = 0
    with path.open("rb") as file:
        while piece := file.read(1 << 22):
            total = zlib.crc32(piece, total)
    return total


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
