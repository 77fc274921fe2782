"""What `add` reads: files become documents with ids, and no document replaces another one without being asked to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import evokey
from evokey import ingest
from evokey.cli.records import Records, check_single, separate
from evokey.errors import InvalidDocument
from evokey.ingest import File, Selection, Skipped
from evokey.types import Source


@dataclass(frozen=True, slots=True)
class Found:
    """Files under the paths that were named."""

    files: Sequence[File]
    skipped: Sequence[Skipped]
    folders: Sequence[str]
    """Those of the paths that are folders."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What became of the files that are one document each, by id."""

    to_read: Mapping[str, tuple[File, Source]]
    unchanged: int
    touched: Mapping[str, Source]
    """Files with another time that hold what they held."""
    gone: Mapping[str, str]
    """Files that are no more: path → id."""


def look(paths: Iterable[Path], root: Path | None, selection: Selection) -> Found:
    paths = list(paths)
    listings = [ingest.listing(path, root, selection) for path in paths]
    files = {file.path: file for one in reversed(listings) for file in reversed(one.files)}
    skipped = dict.fromkeys(one for listing in listings for one in listing.skipped if one.path not in files)
    folders = [os.path.abspath(path) for path in paths if path.is_dir()]  # noqa: PTH100 - links keep their names
    return Found(list(reversed(files.values())), list(skipped), folders)


def name_files(
    memory: evokey.Memory, found: Found, records: Records, root: Path | None, *, overwrite: bool
) -> dict[str, File]:
    """The ids of files that are one document each: those under which the memory knows them, or new ones."""
    files = [file for file in found.files if ingest.named_by_path(file)]
    known = {path: id for path, (id, _) in memory.files(file.source for file in files).items()}
    if root is None:
        _check_unrooted(memory, {file.id: file.source for file in files}, known)
    named: dict[str, File] = {}
    for file in files:
        id = _keep_id(file, known, root)
        check_single(id, file, records.file_of(id) or named.get(id, file))
        named[id] = replace(file, id=id)
    if not overwrite:
        _check_sources(memory, {id: file.source for id, file in named.items()})
    return named


def _keep_id(file: File, known: Mapping[str, str], root: Path | None) -> str:
    """A file that was added before keeps its id."""
    id = known.get(file.source, file.id)
    if id != file.id and root is not None:
        raise InvalidDocument(
            f"{file.path} is in the memory as {id!r}, and --root would add it again as {file.id!r}; "
            f"without --root it is replaced where it is"
        )
    return id


def compare(memory: evokey.Memory, found: Found, named: Mapping[str, File]) -> Changes:
    """Which files have changed: by size and time, and where these differ by what they hold."""
    known = memory.files(file.source for file in named.values())
    to_read, touched, unchanged = dict[str, tuple[File, Source]](), dict[str, Source](), 0
    for id, file in named.items():
        owner, before = known.get(file.source, ("", Source("")))
        now = ingest.source(file)
        if owner == id and before == replace(now, hash=before.hash):
            unchanged += 1
            continue
        now = ingest.source(file, ingest.file_bytes(file.path))
        if owner == id and (before.hash, before.reader) == (now.hash, now.reader):
            touched[id] = now
        else:
            to_read[id] = file, now
    here = {file.source for file in found.files}
    below = {path: id for folder in found.folders for path, id in memory.files_below(folder).items()}
    gone = {path: id for path, id in below.items() if path not in here and not os.path.lexists(path)}
    return Changes(to_read, unchanged, touched, gone)


def _check_sources(memory: evokey.Memory, sources: dict[str, str]) -> None:
    for id, before in memory.sources(sources).items():
        path = sources[id]
        if before is None:
            raise InvalidDocument(
                f"{path} would replace the document {id!r}, which did not come from this file; give other ids with "
                f"--root DIR (ids are paths below DIR), or replace it with --replace"
            )
        if before != path:
            way_out = separate(Path(path), Path(before))
            raise InvalidDocument(
                f"{path} would replace the document {id!r}, which came from {before}; {way_out}; "
                f"or, if the file has moved, replace it with --replace"
            )


def _check_unrooted(memory: evokey.Memory, named: Mapping[str, str], known: Mapping[str, str]) -> None:
    """Memories of the first evokey have ids without the folder's name: the same files must not come in twice."""
    bare = {id.partition("/")[2]: path for id, path in named.items() if path not in known and "/" in id}
    for id, source in memory.sources(bare).items():
        if source is None and memory.get(id).metadata.get("path") == id:
            folder = Path(bare[id][: -len(id) - 1])
            raise InvalidDocument(
                f"an earlier version added a file as {id!r} and did not note from where. If it was {bare[id]}, replace "
                f"it with: --root {folder} --replace. If not, add it beside with: --root {folder.parent}"
            )
