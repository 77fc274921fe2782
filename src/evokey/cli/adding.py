"""The command `add`: a folder is synchronised, file by file; what was stored stays stored, whatever interrupts it."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.markup import escape

import evokey
from evokey.cli import reading, screen
from evokey.cli.options import HERE, AsJson, At
from evokey.cli.reading import Changes, Found
from evokey.cli.records import Failed, Records, look_through, read_documents
from evokey.errors import EvokeyError, InvalidDocument, UnknownDocument
from evokey.ingest import ChildReader, Selection, Skipped
from evokey.memory import Memory
from evokey.types import Document, Source

BATCH = 2_000
BATCH_CHARACTERS = 8_000_000
"""Documents, and characters of their texts, that are stored at once."""
NAMED = 5
"""Skipped files that are named for each reason."""
NAMED_FAILED = 50


@dataclass
class Outcome:
    added: int = 0
    removed: int = 0
    failed: list[Failed] = field(default_factory=list)


def add(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Files or folders: text, Markdown, HTML, PDF, Word, reStructuredText, notebooks, source code, JSONL, "
            "CSV; BEIR folders."
        ),
    ],
    root: Annotated[
        Path | None,
        typer.Option(help="Ids of files are paths below this folder. Default: the parent of PATHS."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--replace", help="Replace a document with the same id even if it came from another file.")
    ] = False,
    include: Annotated[
        list[str] | None, typer.Option(help="Read only files that match, such as '*.md' or 'docs/**'. May be repeated.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Leave out files or folders that match. May be repeated.")
    ] = None,
    gitignore: Annotated[bool, typer.Option(help="Leave out what .gitignore leaves out.")] = True,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove documents whose files are gone, without asking.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Add nothing if a file cannot be read. Default: name it, and add the rest.")
    ] = False,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes that encode documents, where the encoder runs on this machine.")
    ] = 1,
    at: At = HERE,
    as_json: AsJson = False,
) -> None:
    """Add files and folders, or bring them up to date. Creates the memory if there is none.

    Files that have not changed since they were added are not read again; changed ones are replaced; documents of files
    that are gone are removed with --prune. Interrupted, the same command resumes.
    """
    selection = Selection(tuple(include or ()), tuple(exclude or ()), gitignore)
    with screen.report_errors(as_json), ChildReader() as child:
        found = reading.look(paths, root, selection)
        records = look_through(found.files, child)
        if strict and records.failed:
            raise records.failed[0].error
        with evokey.open(at) as memory, ExitStack() as stack:
            named = reading.name_files(memory, found, records, root, overwrite=overwrite)
            with screen.working("comparing files", as_json):
                changes = reading.compare(memory, found, named)
            if workers > 1:
                stack.enter_context(memory.workers(workers))
            outcome = _Sync(memory, child, as_json, strict).run(records, changes)
            _refuse_nothing(outcome, records, changes)
            outcome.removed = _prune(memory, changes.gone, prune, as_json)
            size = len(memory)
            with screen.working("indexing keys", as_json):
                memory.index.background.wait()
        _report(outcome, changes, records, found, size, as_json)


def _refuse_nothing(outcome: Outcome, records: Records, changes: Changes) -> None:
    """Where every file failed, the first error is the answer."""
    if outcome.failed and not outcome.added and not changes.unchanged and not changes.touched:
        raise outcome.failed[0].error


@dataclass(frozen=True)
class _Sync:
    memory: Memory
    child: ChildReader
    as_json: bool
    strict: bool

    def run(self, records: Records, changes: Changes) -> Outcome:
        outcome = Outcome(failed=list(records.failed))
        checked = list(self._read(changes, outcome, lambda _: None)) if self.strict else None
        outcome.added += _add_all(self.memory, records, self.child, self.as_json)
        if changes.touched:
            self.memory.note_files(changes.touched)
        try:
            with screen.bar("adding files", self.as_json, len(changes.to_read)) as show:
                self._store(self._read(changes, outcome, show) if checked is None else iter(checked), outcome)
        except KeyboardInterrupt:
            self._stop(outcome, changes)
        return outcome

    def _read(
        self, changes: Changes, outcome: Outcome, show: Callable[[int], None]
    ) -> Iterator[tuple[Document, Source]]:
        """Document by document; a file that cannot be read is noted, or an error if that was asked for."""
        for count, (file, source) in enumerate(changes.to_read.values(), 1):
            try:
                [document] = read_documents(file, self.child)
            except InvalidDocument as error:
                if self.strict:
                    raise
                outcome.failed.append(Failed(file.path, error))
            else:
                yield document, source
            show(count)

    def _store(self, documents: Iterator[tuple[Document, Source]], outcome: Outcome) -> None:
        batch: list[tuple[Document, Source]] = []
        characters = 0
        for one in documents:
            batch.append(one)
            characters += len(one[0].text)
            if len(batch) >= BATCH or characters > BATCH_CHARACTERS:
                self._commit(batch, outcome)
                batch, characters = [], 0
        if batch:
            self._commit(batch, outcome)

    def _commit(self, batch: Sequence[tuple[Document, Source]], outcome: Outcome) -> None:
        sources = {document.id: source for document, source in batch}
        self.memory.add([document for document, _ in batch], sources=sources)
        outcome.added += len(batch)

    def _stop(self, outcome: Outcome, changes: Changes) -> NoReturn:
        screen.exit_after_interrupt(
            f"{screen.several(outcome.added, 'document')} stored; {len(changes.to_read)} files were new or changed. "
            f"Run the same command again for the rest: what is stored already is not read again.",
            self.as_json,
        )


def _add_all(memory: Memory, records: Records, child: ChildReader, as_json: bool) -> int:
    """In batches, each stored completely or not at all; an error says how many are stored."""
    count, newest, batch = 0, "", list[Document]()
    try:
        with screen.bar("indexing", as_json, len(records)) as show:
            for batch in _cut(records.documents(child)):
                memory.add(batch, progress=partial(_show_share, show, count, len(batch)))
                count, newest, batch = count + len(batch), batch[-1].id, []
    except (EvokeyError, KeyboardInterrupt) as error:
        if batch and all(_has(memory, one) for one in batch):  # committed before it was interrupted
            count, newest = count + len(batch), batch[-1].id
        told = _describe_stored(count, newest, len(records))
        if isinstance(error, KeyboardInterrupt):
            screen.exit_after_interrupt(told, as_json)
        raise type(error)(f"{error} {told}") from error
    return count


def _cut(documents: Iterator[Document]) -> Iterator[list[Document]]:
    """Batches that are neither too many nor too long."""
    batch, characters = list[Document](), 0
    for one in documents:
        batch.append(one)
        characters += len(one.text)
        if len(batch) >= BATCH or characters > BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _show_share(show: Callable[[int], None], start: int, size: int, share: float) -> None:
    show(start + round(share * size))


def _has(memory: Memory, document: Document) -> bool:
    try:
        return memory.get(document.id) == document
    except UnknownDocument:
        return False


def _describe_stored(count: int, newest: str, total: int) -> str:
    if not count:
        return f"None of the {total} documents was added."
    return (
        f"The first {count} of {total} documents are added, up to {newest!r}. Run the same command again for the rest: "
        f"what is stored already is not encoded again."
    )


def _prune(memory: Memory, gone: Mapping[str, str], prune: bool, as_json: bool) -> int:
    """Remove the documents of files that are gone, if that was asked for, now or when the command was typed."""
    if not gone:
        return 0
    if not prune and not as_json and sys.stdin.isatty() and screen.errors.is_terminal:
        names = ", ".join(_short(Path(path)) for path in list(gone)[:NAMED])
        prune = typer.confirm(f"{screen.several(len(gone), 'file')} gone ({names}). Remove the documents?", err=True)
    return memory.delete(gone.values()) if prune else 0


def _report(outcome: Outcome, changes: Changes, records: Records, found: Found, size: int, as_json: bool) -> None:
    left = [] if outcome.removed else sorted(changes.gone)
    unchanged = changes.unchanged + len(changes.touched)
    if as_json:
        counts = {"added": outcome.added, "unchanged": unchanged, "removed": outcome.removed, "documents": size}
        screen.emit({**counts, "repeated": records.repeated, "gone": left, **_lists(outcome, found)})
    else:
        extra = [f"{count} {what}" for count, what in ((unchanged, "unchanged"), (outcome.removed, "removed")) if count]
        told = "; ".join([f"added {screen.several(outcome.added, 'document')}", *extra, f"the memory holds {size}"])
        screen.say(told)
        _show_skipped(records.repeated, found.skipped)
        if left:
            screen.say(f"[yellow]gone[/] {_names([Path(path) for path in left])}: remove the documents with --prune")
        _show_failed(outcome.failed)
    if outcome.failed:
        raise typer.Exit(screen.FAILED)


def _lists(outcome: Outcome, found: Found) -> dict[str, Any]:
    return {
        "skipped": [{"path": str(one.path), "reason": one.reason} for one in found.skipped],
        "failed": [{"path": str(one.path), "reason": str(one.error)} for one in outcome.failed],
    }


def _show_skipped(repeated: int, skipped: Sequence[Skipped]) -> None:
    if repeated:
        screen.say(f"{screen.several(repeated, 'document')} came twice in a file: the later one counts")
    by_reason = defaultdict[str, list[Path]](list)
    for one in skipped:
        by_reason[one.reason].append(one.path)
    for reason, paths in by_reason.items():
        screen.say(f"[yellow]skipped[/] {screen.several(len(paths), 'file')} {reason}: {_names(paths)}")


def _show_failed(failed: Sequence[Failed]) -> None:
    if failed:
        screen.say(f"[red]not added[/] {screen.several(len(failed), 'file')}:")
    for one in failed[:NAMED_FAILED]:
        screen.say(f"  {escape(str(one.error))}")
    if len(failed) > NAMED_FAILED:
        screen.say(f"  and {len(failed) - NAMED_FAILED} more; --json has them all")


def _names(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return escape(", ".join(map(_short, paths[:NAMED]))) + more


def _short(path: Path) -> str:
    here = Path.cwd()
    return os.fsdecode(path.relative_to(here) if path.is_relative_to(here) else path)
