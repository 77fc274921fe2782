"""Immutable folders of arrays on disk, memory-mapped, each with checksums; a manifest names the live ones.

A segment is written to a temporary folder, synced and renamed; the manifest is replaced atomically. A crash leaves
either the old list or the new one, and stray folders that the next writer sweeps away. All of it is derived: what is
missing or damaged is made again from the ledger.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
MANIFEST = "segments.json"
FORMAT = 1


def write_segment(folder: Path, arrays: Arrays) -> str:
    """Write the arrays as a new segment of the folder; return its name."""
    name = uuid.uuid4().hex[:12]
    making = folder / f"{name}.tmp"
    making.mkdir(parents=True)
    sums = {key: _write_array(making / f"{key}.npy", array) for key, array in arrays.items()}
    _write_synced(making / "checksums.json", json.dumps(sums).encode())
    making.rename(folder / name)
    _sync_folder(folder)
    return name


def read_segment(folder: Path, name: str) -> Arrays:
    """The arrays of a segment, memory-mapped."""
    keys = json.loads((folder / name / "checksums.json").read_bytes())
    return {key: np.load(folder / name / f"{key}.npy", mmap_mode="r") for key in keys}


def write_manifest(folder: Path, identity: str, names: list[str]) -> None:
    """Make these segments the live ones, in this order, and sweep away all others."""
    text = json.dumps({"format": FORMAT, "encoder": identity, "segments": names}, indent=1)
    making = folder / f"{MANIFEST}.tmp"
    _write_synced(making, text.encode())
    making.replace(folder / MANIFEST)
    _sync_folder(folder)
    for path in folder.iterdir():
        if path.is_dir() and path.name not in names:
            shutil.rmtree(path, ignore_errors=True)  # a reader on Windows may still hold it; the next sweep gets it


def read_manifest(folder: Path) -> tuple[str, list[str]] | None:
    """Encoder identity and the names of the live segments; None when nothing was ever written."""
    try:
        found = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        return None
    return found["encoder"], list(found["segments"])


def _write_array(path: Path, array: NDArray[Any]) -> int:
    with path.open("wb") as file:
        np.save(file, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    return zlib.crc32(np.ascontiguousarray(array).data)


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
