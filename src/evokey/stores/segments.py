"""Immutable folders of arrays on disk, memory-mapped, each with checksums; a manifest names the live ones.

A segment is written to a temporary folder, synced and renamed; the manifest is replaced atomically. A crash leaves
either the old list or the new one, and stray folders that the next writer sweeps away. All of it is derived: what is
missing or damaged is made again from the ledger.
"""

from __future__ import annotations

import json
import os
import shutil
import tokenize
import uuid
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from evokey.scoring.block import Arrays

MANIFEST = "segments.json"
FORMAT = 1
WRONG_HEADER = (EOFError, OverflowError, SyntaxError, tokenize.TokenError)
"""numpy's ways to say that the head of a file is damaged, beside ValueError."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The live segments of a folder, in order, and what they were made by and for."""

    encoder: str
    segments: tuple[str, ...]
    writer: str = ""
    """The last that had written documents into the ledger; "" where none was noted."""

    def to_json(self) -> str:
        plain = {"format": FORMAT, "encoder": self.encoder, "segments": list(self.segments), "writer": self.writer}
        return json.dumps({**plain, "checksum": _sum_of(plain)}, indent=1)

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError("it is no manifest")
        if found.pop("checksum", None) not in (None, _sum_of(found)):
            raise ValueError("its checksum is wrong")
        names = found["segments"]
        if not isinstance(names, list) or not all(isinstance(name, str) and name.isalnum() for name in names):
            raise ValueError("it names segments that nobody writes")
        return cls(str(found["encoder"]), tuple(names), str(found.get("writer", "")))


Pieces = Mapping[str, NDArray[Any] | Sequence[NDArray[Any]]]
"""Arrays, or the pieces of which they are made: so none has to fit into memory."""


def new_name() -> str:
    """For a segment."""
    return uuid.uuid4().hex[:12]


def write_segment(folder: Path, arrays: Pieces, name: str | None = None) -> str:
    """Write the arrays as a new segment of the folder; return its name."""
    name = name or new_name()
    making = folder / f"{name}.tmp"
    making.mkdir(parents=True)
    try:
        sums = {key: _write_array(making / f"{key}.npy", array) for key, array in arrays.items()}
        write_synced(making / "checksums.json", json.dumps(sums).encode())
        making.rename(folder / name)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)  # half a segment must not keep a full disk full
        raise
    sync_folder(folder)
    return name


def read_segment(folder: Path, name: str, spare: Collection[str] = ()) -> Arrays:
    """The arrays of a segment, memory-mapped; without those that can be spared, if they are damaged."""
    found = {}
    for key, expected in _sums(folder / name).items():
        try:
            found[key] = _read_array(folder / name / f"{key}.npy", expected)
        except (OSError, ValueError):
            if key not in spare:
                raise
    return found


def write_manifest(folder: Path, manifest: Manifest, making: Collection[str] = ()) -> None:
    """Make its segments the live ones, and sweep away all others but those that are being made."""
    written = folder / f"{MANIFEST}.tmp"
    write_synced(written, manifest.to_json().encode())
    written.replace(folder / MANIFEST)
    sync_folder(folder)
    for path in folder.iterdir():
        if path.is_dir() and path.name.removesuffix(".tmp") not in {*manifest.segments, *making}:
            shutil.rmtree(path, ignore_errors=True)  # a reader on Windows may still hold it; the next sweep gets it


def read_manifest(folder: Path) -> Manifest | None:
    """None when nothing was ever written."""
    try:
        return Manifest.from_json((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        return None


def find_covered(folder: Path) -> NDArray[np.int64]:
    """The documents that the live segments answer for; those of a segment that cannot be read are missing."""
    manifest = read_manifest(folder)
    found = [np.zeros(0, np.int64)]
    for name in manifest.segments if manifest else ():
        with suppress(OSError, ValueError, KeyError):
            found.append(np.asarray(read_segment(folder, name)["covered"]))
    return np.concatenate(found)


def find_damage(folder: Path) -> list[str]:
    """What cannot be trusted in a folder of segments: files that are missing, unreadable, or not what was written."""
    try:
        manifest = read_manifest(folder)
    except (ValueError, KeyError, OSError) as error:
        return [f"{folder / MANIFEST}: {error}"]
    found: list[str] = []
    for name in manifest.segments if manifest else ():
        try:
            sums = _sums(folder / name)
        except (ValueError, OSError) as error:
            found.append(f"{folder / name / 'checksums.json'}: {error}")
            continue
        found += [f"{folder / name / key}.npy: {why}" for key, why in _bad_arrays(folder / name, sums)]
    return found


def _sums(segment: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads((segment / "checksums.json").read_bytes())
    return {_plain(key): expected for key, expected in found.items()}


def _plain(name: str) -> str:
    """A name inside its folder: a directory that somebody hands over leads to no other."""
    if not (
        isinstance(name, str) and name.isprintable() and name not in ("", ".", "..") and not set(name) & set("/\\:")
    ):
        raise ValueError(f"{name!r} is no name of a file in its own folder")
    return name


def _bad_arrays(segment: Path, sums: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    for key, expected in sums.items():
        try:
            if _sum(segment / f"{key}.npy") != expected:
                yield key, "its checksum is wrong"
        except (ValueError, OSError) as error:
            yield key, str(error)


def _write_array(path: Path, array: NDArray[Any] | Sequence[NDArray[Any]]) -> int:
    with path.open("wb") as file:
        if isinstance(array, np.ndarray):
            np.save(file, array, allow_pickle=False)
        else:
            _save_pieces(file, array)
        file.flush()
        os.fsync(file.fileno())
    return _sum(path)


def _save_pieces(file: BinaryIO, pieces: Sequence[NDArray[Any]]) -> None:
    """As one array."""
    shape = (sum(map(len, pieces)), *pieces[0].shape[1:])
    header = {"descr": np.lib.format.dtype_to_descr(pieces[0].dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    for piece in pieces:
        file.write(np.ascontiguousarray(piece).data)


def _read_array(path: Path, expected: int) -> NDArray[Any]:
    # All of it: a number out of range would have compiled code write where it must not, and one within it would rank
    # wrongly without a word. Half a second for a gigabyte.
    if _sum(path) != expected:
        raise ValueError(f"{path}: its checksum is wrong")
    try:
        return np.asarray(np.load(path, mmap_mode="r"))  # a plain array: every slice of a memmap runs Python code
    except WRONG_HEADER as error:
        raise ValueError(f"{path}: {error}") from error


def _sum(path: Path) -> int:
    """Of the whole file: a header that is damaged turns good numbers into others."""
    return zlib.crc32(np.memmap(path, mode="r").data)


def _sum_of(plain: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(plain, sort_keys=True).encode())


def write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
