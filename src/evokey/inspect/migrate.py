"""A memory into another place: a directory or a database, with the same store or another one.

The copy is made under a name of its own, beside the target, and gets the target's name when it is whole: when every
table has the same checksum, and searches find the same. An attempt that was interrupted goes on where it was. The
source is only read.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from evokey import memory as memory_
from evokey import registry
from evokey.errors import InvalidInput, MigrationFailed, NotAMemory
from evokey.ledger import copying
from evokey.ledger.ledger import Ledger
from evokey.ledger.sqlite import file
from evokey.postgres.address import Address
from evokey.protocols import IndexingStore
from evokey.search.retriever import TAUGHT, Retriever
from evokey.settings import (
    FILE,
    HUMAN,
    Settings,
    build_retrievers,
    check,
    overwrite,
    place,
    read,
    required_allowances,
    shared_folder,
    spell,
    to_toml,
    trust,
)
from evokey.settings.values import encoder_kind, store_kinds
from evokey.tuning import revisions
from evokey.types import Hit

PIECE = 1_000
"""Documents whose keys are copied at a time."""
ASKED = 100
"""Queries that both are asked in the end; a fifth where asking costs something."""
ENOUGH = 0.99
"""The share of the first ten hits that must be the same, where a store does not look at all keys."""
Progress = Callable[[str, float], None]
"""Is told what is being done, and which share of it is done."""


@dataclass(frozen=True, slots=True)
class Migration:
    """What was copied, and how it was checked."""

    documents: int
    lessons: int
    epochs: int
    tables: int
    """With equal checksums."""
    queries: int
    """That both were asked, in the current epoch and in the untaught index."""
    overlap: float
    """The share of the first ten hits that both have, on average."""
    equal_scores: bool
    """Whether all these hits have the same scores, to the bit."""


class Directory:
    """A new directory: made beside it."""

    database = None

    def __init__(self, at: Path) -> None:
        if at.exists() and (not at.is_dir() or any(at.iterdir())):
            raise InvalidInput(f"{at} exists already; give a new directory")
        self._at, self.folder = at, at.with_name(f"{at.name}.migrating")
        self.folder.mkdir(parents=True, exist_ok=True)

    def keep(self, settings: Settings) -> None:
        overwrite(self.folder, settings)

    def open_ledger(self) -> AbstractContextManager[Ledger]:
        return Ledger(self.folder)

    def open_memory(self, settings: Settings) -> memory_.Memory:
        return memory_.Memory(self.folder, settings)

    def finish(self) -> None:
        if self._at.exists():
            self._at.rmdir()
        self.folder.rename(self._at)
        overwrite(self._at, read(self._at / FILE))  # what the user allowed is noted for this place

    def discard(self) -> None:
        shutil.rmtree(self.folder)

    def close(self) -> None:
        """Nothing is held."""


class Schema:
    """A new schema of a database: made under another name."""

    def __init__(self, at: Address) -> None:
        load = registry.load("ledger", "postgres")
        if load.exists(at):
            raise InvalidInput(f"{at} exists already; give another name")
        self._at = at
        self.database: Any = load(replace(at, unfinished=True))
        self.folder = shared_folder(self.database)

    def keep(self, settings: Settings) -> None:
        self.database.keep_settings(to_toml(settings), replace=True)
        shared_folder(self.database)
        trust.record(self.folder, required_allowances(settings, self.folder))

    def open_ledger(self) -> AbstractContextManager[Ledger]:
        return nullcontext(Ledger(self.database))  # which is closed in the end

    def open_memory(self, settings: Settings) -> AbstractContextManager[memory_.Memory]:
        return nullcontext(memory_.Memory(self.folder, settings, database=self.database))

    def finish(self) -> None:
        self.database.rename(self._at)

    def discard(self) -> None:
        self.database.drop()

    def close(self) -> None:
        self.database.close()


def migrate(
    source: Path | Address,
    target: Path | Address,
    store: Any = None,
    progress: Progress = lambda *_: None,
    *,
    restart: bool = False,
) -> Migration:
    """Copy a memory. store: of the copy's keys; without one, those that fit its place. restart: from the beginning,
    without what an earlier attempt has left."""
    with ExitStack() as stack:
        old = stack.enter_context(_open_source(source))
        new: Directory | Schema = Schema(target) if isinstance(target, Address) else Directory(target)
        if restart:
            new.discard()
            new.close()
            new = Schema(target) if isinstance(target, Address) else Directory(target)
        stack.callback(new.close)
        settings = _fit_stores(old.settings, store, shared=new.database is not None)
        _check_revisions(old, settings, shared=new.database is not None)
        new.keep(settings)
        with new.open_ledger() as ledger:
            copying.copy(old.ledger, ledger, lambda share: progress("copying the ledger", share))
            _copy_keys(old, build_retrievers(settings, new.folder, new.database), ledger, progress)
            _copy_files(old.folder, new)
            _copy_revisions(old, new)
            tables = _compare_tables(old.ledger, ledger)
        with new.open_memory(settings) as made:
            done = _compare_searches(old, made, tables, progress)
        new.finish()
        return done


def _open_source(source: Path | Address) -> memory_.Memory:
    if isinstance(source, Address):
        return memory_.open_shared(source, make=False)
    if not (place(source) / FILE).exists():
        raise NotAMemory(f"there is no memory at {source}")
    return memory_.open(source)


def _fit_stores(settings: Settings, store: Any, *, shared: bool) -> Settings:
    """The same settings with stores for the place. A database has dense keys in it; a directory has its own stores."""
    wanted = None if store is None else spell("store", store)
    found = []
    for one in settings.retrievers:
        kind = encoder_kind(one.encoder, settings.objects)
        if wanted is not None and kind in store_kinds(wanted, settings.objects):
            found.append(replace(one, store=wanted))
        elif one.store is not None and "uri" in one.store:
            raise InvalidInput(
                f"the keys of {one.name} are in store {one.store['name']!r}, elsewhere, and belong to the source: name "
                f"a store for the copy (--store flat; or --store with its uri and another name)"
            )
        elif shared and kind == "dense":
            found.append(replace(one, store={"name": "pgvector"}))
        elif shared or (one.store is not None and one.store["name"] == "pgvector"):
            found.append(replace(one, store=None))
        else:
            found.append(one)
    return check(replace(settings, retrievers=tuple(found)), trusted=True)


def _copy_keys(old: memory_.Memory, retrievers: Sequence[Retriever], ledger: Ledger, progress: Progress) -> None:
    """Not made again: they may have cost something, or depend on what the documents were then."""
    live = ledger.documents.live()
    for before, after in zip(old.index.with_revisions({}), retrievers, strict=True):
        after.store.open(ledger.writers)
        after.store.follow(live, (), ())
        missing = live[after.base.sizes(live) < 0]
        for start in range(0, len(missing), PIECE):
            after.store.write(before.base.fetch(missing[start : start + PIECE]))
            after.store.flush(force=False)
            progress(f"copying the keys of {after.name}", min((start + PIECE) / len(missing), 1.0))
        after.store.flush()
        if isinstance(after.store, IndexingStore):
            progress(f"indexing the keys of {after.name}", 0.0)
            after.store.finish()  # its thread must not write into a folder that gets another name


def _copy_files(old: Path, new: Directory | Schema) -> None:
    """The questions that wait for people; and taught texts that were paid for, from directory to directory. A database
    has them in a table, which fills as texts are asked for."""
    taught = old.glob(f"keys/*/{TAUGHT}") if new.database is None else ()
    for path in (*taught, *old.glob(HUMAN)):
        target = new.folder / path.relative_to(old)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        if faults := file.copy(path, target):
            raise MigrationFailed(f"{path} could not be copied: {faults[0]}")


def _check_revisions(old: memory_.Memory, settings: Settings, *, shared: bool) -> None:
    """Tuned encoders are files beside keys in a directory's own store."""
    tuned = {name for epoch in old.epochs() for name in epoch.revisions}
    moved = [one.name for one in settings.retrievers if one.name in tuned and (one.store or {}).get("name") != "flat"]
    if tuned and (shared or moved):
        raise InvalidInput(
            f"the encoder of {', '.join(sorted(tuned))} was tuned, and its weights are files beside keys in store "
            f"'flat'. Migrate into a directory with that store; or drop the tuned encoder first with: evokey doctor "
            f"--reencode"
        )


def _copy_revisions(old: memory_.Memory, new: Directory | Schema) -> None:
    """Weights and keys of tuned encoders, those that epochs name."""
    named = old.ledger.epochs.revisions
    for path in revisions.paths(old.folder):
        if path.name.rpartition("@")[2] in named:
            shutil.copytree(path, new.folder / path.relative_to(old.folder), dirs_exist_ok=True)
    trust.record(new.folder, [one.allowance for one in trust.models(new.folder)])


def _compare_tables(old: Ledger, new: Ledger) -> int:
    found, wanted = copying.checksums(new), copying.checksums(old)
    different = sorted(table for table in wanted if found[table] != wanted[table])
    if different:
        raise MigrationFailed(
            f"the copy differs from the source in {', '.join(different)}: the source was changed while it was copied. "
            f"Remove the unfinished copy (--restart), and try again while nobody writes"
        )
    return len(wanted)


def _compare_searches(old: memory_.Memory, new: memory_.Memory, tables: int, progress: Progress) -> Migration:
    questions = list(_questions(old))
    shares, equal = [], True
    for done, (query, vector) in enumerate(questions, 1):
        for epoch in {0, old.epoch}:
            first, second = (_hits(one.search(query, 10, epoch=epoch, vector=vector)) for one in (old, new))
            shares.append(len(first.keys() & second.keys()) / max(len(first), len(second), 1) if first or second else 1)
            equal = equal and first == second
        progress("comparing searches", done / len(questions))
    overlap = float(np.mean(shares)) if shares else 1.0
    exact = all(one.store.exact for memory in (old, new) for one in memory.index.retrievers)
    if overlap < (1.0 if exact else ENOUGH):
        raise MigrationFailed(
            f"the copy finds other documents: {overlap:.3f} of the first ten are the same. Nothing was put in place; "
            f"the source is as it was"
        )
    return Migration(len(new), len(new.ledger.lessons), len(new.epochs()) - 1, tables, len(questions), overlap, equal)


def _hits(hits: Sequence[Hit]) -> Mapping[str, float]:
    return {hit.id: hit.score for hit in hits}


def _questions(memory: memory_.Memory) -> Iterator[tuple[str, Any]]:
    """What was taught, what was searched, and what documents begin with; or, where callers hand vectors in, those of
    documents."""
    size = ASKED if all(one.cost == "nothing" for one in memory.index.retrievers) else ASKED // 5
    documents = memory.index.live[:: max(1, len(memory.index.live) // size)][:size].tolist()
    if memory.index.given is not None:
        yield from ((entry.document.id, entry.vector) for entry in memory.ledger.documents.entries(documents))
        return
    texts = [*sorted(memory.ledger.lessons.queries())[:size], *memory.ledger.traffic.queries()[:size]]
    for one in memory.ledger.documents.fetch(documents).values():
        texts.append(" ".join(f"{one.title} {one.text}".split()[:12]))
    yield from ((text, None) for text in dict.fromkeys(texts[: 2 * size]) if text)
