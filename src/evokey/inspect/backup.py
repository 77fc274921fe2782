"""A copy of a memory, of one moment, made while others search it and write to it."""

from __future__ import annotations

import logging
import os
import shutil
import uuid
from pathlib import Path

from evokey.errors import DamagedLedger, InvalidInput, StorageFailed
from evokey.ledger.sqlite import file
from evokey.ledger.sqlite.file import FILE as LEDGER
from evokey.settings import FILE as SETTINGS
from evokey.settings.trust import MODELS
from evokey.stores.segments import read_manifest, write_manifest
from evokey.tuning.revisions import sweep

log = logging.getLogger("evokey")
TRIES = 5
"""Writers may sweep a segment away while it is copied. It is derived: a backup without keys is whole, too."""


def copy(folder: Path, target: Path) -> None:
    """To a new directory, which is there when it is whole."""
    if target.exists():
        raise InvalidInput(f"{target} exists already; give a directory for the backup that does not")
    making = target.with_name(f"{target.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        making.mkdir(parents=True)
        for keys in sorted((folder / "keys").glob("*/")):
            _copy_keys(keys, making / "keys" / keys.name)
        _copy_revisions(folder, making)
        # Keys first: a ledger may be ahead of its keys, and never behind them.
        for path in _find_databases(folder):
            _copy_database(path, making / path.relative_to(folder))
        shutil.copy2(folder / SETTINGS, making)
        _copy_revisions(folder, making)  # one that was published meanwhile
        sweep(making, file.named_revisions(making))  # one that was dropped meanwhile
        _sync(making)
        making.rename(target)
    except OSError as error:
        raise StorageFailed(
            f"{target} could not be written ({error}); nothing is left of it. Free some space, or give another place"
        ) from error
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _find_databases(folder: Path) -> list[Path]:
    """Not by rglob, which fails where a writer sweeps a folder away meanwhile."""
    found = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return sorted(path for path in found if path.suffix == ".sqlite")


def _copy_keys(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for _ in range(TRIES):
        try:
            manifest = read_manifest(source)
            for name in manifest.segments if manifest else ():
                shutil.copytree(source / name, target / name, dirs_exist_ok=True)
        except (FileNotFoundError, shutil.Error, ValueError, KeyError) as error:
            log.info("keys in %s are copied again (%s)", source, str(error))
            continue
        if manifest is not None:
            write_manifest(target, manifest)  # which sweeps away what an earlier try has left
        return
    shutil.rmtree(target)


def _copy_revisions(folder: Path, target: Path) -> None:
    """Weights of tuned encoders: a folder of them never changes, and may be dropped."""
    for source in sorted((folder / MODELS).glob("*/")):
        copied = target / MODELS / source.name
        if source.suffix or copied.exists():
            continue
        try:
            shutil.copytree(source, copied)
        except (FileNotFoundError, shutil.Error) as error:
            log.info("%s is not copied (%s)", source, str(error))
            shutil.rmtree(copied, ignore_errors=True)


def _copy_database(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    faults = file.copy(source, target)
    if faults and source.name == LEDGER:
        raise DamagedLedger(
            f"{source} is damaged ({faults[0]}), and was not backed up; look closer with: "
            f"evokey doctor --at {source.parent}"
        )
    if faults:
        target.unlink()  # a cache, made again


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDWR)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
