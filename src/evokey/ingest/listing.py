"""Which files a path stands for, what each is called, and what was left out.

The id of a file that is one document is its path below a named root: of a folder that is added, the folder above it, so
that `notes/` gives `notes/today.md`; of a single file its own folder; or the root that the caller names.
Links inside a folder are not followed: they may lead out of it, or in circles. Hidden files and folders are left out,
and so is what .gitignore leaves out, or the caller.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from evokey.errors import InvalidDocument
from evokey.ingest.ignoring import EVERYTHING, Rules, Selection
from evokey.ingest.kinds import EXTRA, KNOWN, lacking

BEIR = "corpus.jsonl"
BEIR_PARTS = {BEIR, "queries.jsonl", "qrels"}
UNKNOWN, LINK, SPECIAL = "of unknown kind", "behind a link", "of a special kind (pipe, socket or device)"
BESIDE = f"beside {BEIR}, which is read alone"
LACKING = f"of a kind that needs: {EXTRA}"


@dataclass(frozen=True, slots=True)
class File:
    path: Path
    """Absolute."""
    id: str
    """Its path below the root."""

    @property
    def source(self) -> str:
        """The path as it can be stored, whatever bytes it has."""
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Skipped:
    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    files: tuple[File, ...]
    skipped: tuple[Skipped, ...] = ()


def listing(path: Path, root: Path | None = None, selection: Selection = EVERYTHING) -> Listing:
    """The files to read under a path, in the order of their names."""
    whole = _absolute(path)
    if whole.is_dir():
        return _folder(path, whole, root, selection)
    if not os.path.lexists(whole):
        raise InvalidDocument(f"{path} does not exist")
    if whole.suffix.lower() not in KNOWN:
        raise InvalidDocument(
            f"{path} is of unknown type; known types are {', '.join(sorted(KNOWN))}, and folders of these"
        )
    if not whole.is_file():
        raise InvalidDocument(f"{path} is a pipe, socket, device or broken link, not a file; add a file in its place")
    if lacking(whole):
        raise InvalidDocument(f"{path} is {LACKING}")
    return Listing((File(whole, _id(whole, root or whole.parent)),))


def _folder(said: Path, folder: Path, root: Path | None, selection: Selection) -> Listing:
    found = sorted(_walk(folder, Rules(folder, selection)))
    if (folder / BEIR).is_file():
        parts = [(path, reason) for path, reason in found if path.relative_to(folder).parts[0] not in BEIR_PARTS]
        skipped = tuple(Skipped(path, reason or BESIDE) for path, reason in parts)
        return Listing((File(folder / BEIR, BEIR),), skipped)
    paths = [path for path, reason in found if not reason]
    if not paths:
        raise InvalidDocument(f"{said} contains no file of a known type ({', '.join(sorted(KNOWN))})")
    return Listing(
        tuple(File(path, _id(path, root or folder.parent)) for path in paths),
        tuple(Skipped(path, reason) for path, reason in found if reason),
    )


def _walk(folder: Path, rules: Rules) -> Iterator[tuple[Path, str]]:
    """Everything below a folder that is not hidden, with the reason to leave it out, or none."""
    for above, folders, names in os.walk(folder, onerror=_refuse):
        here = Path(above)
        rules.enter(here)
        folders[:] = [name for name in folders if not name.startswith(".")]
        links = [name for name in folders if (here / name).is_symlink()]
        closed = {name: reason for name in folders if (reason := rules.reason(here / name, folder=True))}
        folders[:] = [name for name in folders if name not in closed]
        yield from ((here / name, reason) for name, reason in closed.items() if name not in links)
        for name in (*links, *names):
            if not name.startswith("."):
                path = here / name
                yield path, _reason(path) or rules.reason(path, folder=False)


def _reason(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return LINK
    if not stat.S_ISREG(mode):
        return SPECIAL
    if path.suffix.lower() not in KNOWN:
        return UNKNOWN
    return LACKING if lacking(path) else ""


def _refuse(error: OSError) -> NoReturn:
    raise InvalidDocument(
        f"{error.filename} cannot be read: {error.strerror}; make it readable, or move it out of the folder"
    ) from error


def _id(path: Path, root: Path) -> str:
    try:
        return path.relative_to(_absolute(root)).as_posix()
    except ValueError:
        raise InvalidDocument(f"{path} is not below the root {root}; name a folder above it") from None


def _absolute(path: Path) -> Path:
    """Not resolved: a link that the caller names keeps its name, wherever it leads today."""
    return Path(os.path.abspath(path))  # noqa: PTH100
