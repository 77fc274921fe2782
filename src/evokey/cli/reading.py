"""What `add` reads: files become documents with ids, and no document replaces another one without being asked to."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.markup import escape

import evokey
from evokey import checks, ingest
from evokey.cli import screen
from evokey.errors import InvalidDocument
from evokey.ingest import File, Skipped
from evokey.types import Document

NAMED = 5
"""Skipped files that are named for each reason."""


@dataclass(frozen=True, slots=True)
class Reading:
    documents: Sequence[tuple[Document, File]]
    skipped: Sequence[Skipped]
    repeated: int = 0
    """Documents that a later one in the same file replaces."""

    @property
    def sources(self) -> dict[str, str]:
        """Path by id, of the documents whose id is a path."""
        return {one.id: file.source for one, file in self.documents if ingest.named_by_path(file)}


def read(paths: Iterable[Path], root: Path | None) -> Reading:
    """All documents, checked before the first is added."""
    listings = [ingest.listing(path, root) for path in paths]
    files = {file.path: file for one in reversed(listings) for file in reversed(one.files)}
    documents = [(document, file) for file in reversed(files.values()) for document in _documents(file)]
    skipped = dict.fromkeys(one for listing in listings for one in listing.skipped if one.path not in files)
    return _unique(Reading(documents, list(skipped)))


def _documents(file: File) -> Iterator[Document]:
    for document in ingest.documents(file):
        try:
            yield checks.document(document)
        except InvalidDocument as error:
            raise InvalidDocument(f"{file.path}: {error}") from error


def _unique(found: Reading) -> Reading:
    """An id that two files give is an error; given twice in one file, the later one counts."""
    latest: dict[str, tuple[Document, File]] = {}
    for document, file in found.documents:
        _, other = latest.get(document.id, (document, file))
        if other != file:
            both = ingest.named_by_path(file) and ingest.named_by_path(other)
            way_out = _separate(file.path, other.path) if both else "change one of the ids"
            raise InvalidDocument(f"{other.path} and {file.path} both give a document {document.id!r}; {way_out}")
        latest[document.id] = document, file
    repeated = found.repeated + len(found.documents) - len(latest)
    return replace(found, documents=list(latest.values()), repeated=repeated)


def settle(memory: evokey.Memory, found: Reading, root: Path | None, *, overwrite: bool) -> Reading:
    """The ids under which the memory knows these files, or has none of that name."""
    known = memory.ids_from(found.sources.values())
    if root is None:
        _check_unrooted(memory, found, known)
    named = [(_keep_id(document, file, known, root), file) for document, file in found.documents]
    settled = _unique(replace(found, documents=named))
    if not overwrite:
        _check_sources(memory, settled.sources)
    return settled


def _keep_id(document: Document, file: File, known: dict[str, str], root: Path | None) -> Document:
    """A file that was added before keeps its id."""
    id = known.get(file.source, document.id)
    if id == document.id or not ingest.named_by_path(file):
        return document
    if root is not None:
        raise InvalidDocument(
            f"{file.path} is in the memory as {id!r}, and --root would add it again as {document.id!r}; "
            f"without --root it is replaced where it is"
        )
    return replace(document, id=id, metadata={**document.metadata, "path": id})


def _check_sources(memory: evokey.Memory, sources: dict[str, str]) -> None:
    for id, before in memory.sources(sources).items():
        path = sources[id]
        if before is None:
            raise InvalidDocument(
                f"{path} would replace the document {id!r}, which did not come from this file; give other ids with "
                f"--root DIR (ids are paths below DIR), or replace it with --replace"
            )
        if before != path:
            way_out = _separate(Path(path), Path(before))
            raise InvalidDocument(
                f"{path} would replace the document {id!r}, which came from {before}; {way_out}; "
                f"or, if the file has moved, replace it with --replace"
            )


def _check_unrooted(memory: evokey.Memory, found: Reading, known: dict[str, str]) -> None:
    """Memories of the first evokey have ids without the folder's name: the same files must not come in twice."""
    bare = {id.partition("/")[2]: path for id, path in found.sources.items() if path not in known and "/" in id}
    for id, source in memory.sources(bare).items():
        if source is None and memory.get(id).metadata.get("path") == id:
            folder = Path(bare[id][: -len(id) - 1])
            raise InvalidDocument(
                f"an earlier version added a file as {id!r} and did not note from where. If it was {bare[id]}, replace "
                f"it with: --root {folder} --replace. If not, add it beside with: --root {folder.parent}"
            )


def _separate(one: Path, other: Path) -> str:
    try:
        example = f", for example --root {os.path.commonpath([one, other])}"
    except ValueError:  # two drives have no common path
        example = ""
    return f"tell them apart with --root DIR (ids are paths below DIR){example}"


def show_skipped(found: Reading) -> None:
    if found.repeated:
        screen.say(f"{screen.several(found.repeated, 'document')} came twice in a file: the later one counts")
    by_reason = defaultdict[str, list[Path]](list)
    for one in found.skipped:
        by_reason[one.reason].append(one.path)
    for reason, paths in by_reason.items():
        names = ", ".join(map(_short, paths[:NAMED]))
        more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
        screen.say(f"[yellow]skipped[/] {screen.several(len(paths), 'file')} {reason}: {escape(names)}{more}")


def _short(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
