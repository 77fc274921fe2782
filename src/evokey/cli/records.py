"""Files that hold many documents, with ids of their own (JSONL, tables): more than memory need hold at once.

They are looked through first: every document is checked, and of its id 16 bytes are kept. So a file that cannot be read
adds nothing, ids that two files give are found, and of a document that comes twice the later one counts. Then they are
read again, piece by piece, to be stored.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evokey import checks, ingest
from evokey.errors import InvalidDocument
from evokey.ingest import ChildReader, File
from evokey.types import Document, Numbers


@dataclass(frozen=True, slots=True)
class Failed:
    """A file that no document can be made of."""

    path: Path
    error: InvalidDocument


@dataclass(frozen=True, slots=True)
class Records:
    files: Sequence[File]
    replaced: Mapping[int, frozenset[int]]
    """By file: which of its documents a later one in it replaces."""
    marks: NDArray[np.uint64]
    """Two numbers for each id, sorted."""
    owners: Numbers
    """The file of each of these."""
    failed: Sequence[Failed]

    @property
    def repeated(self) -> int:
        """Documents that a later one in the same file replaces."""
        return sum(map(len, self.replaced.values()))

    def __len__(self) -> int:
        return len(self.marks) - self.repeated

    def file_of(self, id: str) -> File | None:
        """The file that has a document of this id."""
        first, second = _mark(id)
        at = int(np.searchsorted(self.marks[:, 0], np.uint64(first)))
        while at < len(self.marks) and int(self.marks[at, 0]) == first:
            if int(self.marks[at, 1]) == second:
                return self.files[int(self.owners[at])]
            at += 1
        return None

    def documents(self, child: ChildReader) -> Iterator[Document]:
        for number, file in enumerate(self.files):
            left_out = self.replaced.get(number, frozenset())
            for place, document in enumerate(read_documents(file, child)):
                if place not in left_out:
                    yield document


def read_documents(file: File, child: ChildReader) -> Iterator[Document]:
    for document in ingest.documents(file, child):
        try:
            yield checks.document(document)
        except InvalidDocument as error:
            raise InvalidDocument(f"{file.path}: {error}") from error


def look_through(files: Sequence[File], child: ChildReader) -> Records:
    """Those of the files that hold many documents. An id that two of them give is an error."""
    sound, failed = list[File](), list[Failed]()
    marks, counts = array("Q"), list[int]()
    for file in files:
        if ingest.named_by_path(file):
            continue
        before = len(marks)
        try:
            for document in read_documents(file, child):
                marks.extend(_mark(document.id))
        except InvalidDocument as error:
            del marks[before:]
            failed.append(Failed(file.path, error))
        else:
            sound.append(file)
            counts.append((len(marks) - before) // 2)
    pairs = np.frombuffer(marks, np.uint64).reshape(-1, 2) if marks else np.zeros((0, 2), np.uint64)
    owners = np.repeat(np.arange(len(sound)), counts)
    order = np.lexsort((np.arange(len(pairs)), pairs[:, 1], pairs[:, 0]))
    pairs, owners = pairs[order], owners[order]
    again = np.flatnonzero((pairs[1:] == pairs[:-1]).all(axis=1))
    for at in again[owners[again] != owners[again + 1]].tolist():
        _refuse_twice(sound[owners[at]], sound[owners[at + 1]], child)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    gone = [(int(owners[at]), int(order[at] - starts[owners[at]])) for at in again.tolist()]
    replaced = {file: frozenset(place for its, place in gone if its == file) for file in {its for its, _ in gone}}
    return Records(sound, replaced, pairs, owners, failed)


def _mark(id: str) -> tuple[int, int]:
    digest = hashlib.blake2b(id.encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def _refuse_twice(one: File, other: File, child: ChildReader) -> None:
    ids = {document.id for document in read_documents(one, child)}
    shared = next(document.id for document in read_documents(other, child) if document.id in ids)
    check_single(shared, other, one)


def check_single(id: str, file: File, other: File) -> None:
    if other != file:
        both = ingest.named_by_path(file) and ingest.named_by_path(other)
        way_out = separate(file.path, other.path) if both else "change one of the ids"
        raise InvalidDocument(f"{other.path} and {file.path} both give a document {id!r}; {way_out}")


def separate(one: Path, other: Path) -> str:
    try:
        example = f", for example --root {os.path.commonpath([one, other])}"
    except ValueError:  # two drives have no common path
        example = ""
    return f"tell them apart with --root DIR (ids are paths below DIR){example}"
