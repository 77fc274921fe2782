"""Is a memory sound? What is wrong, and what mends it. The ledger is the truth; all else is made again from it."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from evokey import memory as memory_
from evokey.errors import InvalidSettings, NotAllowed
from evokey.ledger.ledger import Ledger
from evokey.ledger.sqlite import file
from evokey.protocols import IndexingStore
from evokey.registry import Named, encoder_cost, name_and_options
from evokey.search.indexing import Watch, attempt, named, reason
from evokey.search.retriever import Retriever
from evokey.search.upkeep import sample_questions
from evokey.settings import (
    FILE,
    FORMAT,
    Settings,
    build_retrievers,
    needs,
    overwrite,
    read,
    read_trusted,
    read_whole,
    settings_of,
    trust,
)
from evokey.settings.opening import EMBEDDED
from evokey.settings.values import RetrieverSettings
from evokey.stores.segments import MANIFEST, find_covered, find_damage, read_manifest
from evokey.tuning import revisions
from evokey.types import EpochReport


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    mended_by: str


log = logging.getLogger("evokey")
REBUILD = "evokey doctor --rebuild"
UNNAMED = f"restoring {FILE} from a backup, if it lost a part; or removing these keys, if the encoder is not wanted"
BACKUP = (
    "restoring the memory from a backup (evokey backup makes one): the ledger is the truth, and nothing else can make "
    "it again. Where ledger.sqlite alone is put back, ledger.sqlite-wal and ledger.sqlite-shm beside it must go first"
)


def examine(folder: Path) -> list[Finding]:
    """Look at everything, change nothing."""
    trust.links(folder)  # raises where reading would wait for good
    found = [Finding(what, BACKUP) for what in file.find_faults(folder)]
    settings = read_whole(folder)
    found += [
        Finding(f"{keys}: keys of an encoder that {FILE} does not name", UNNAMED) for keys in _find_unnamed_keys(folder)
    ]
    found += [Finding(what, REBUILD) for what in _find_faulty_revisions(folder)]
    elsewhere = [one for one in settings.retrievers if one.store and one.store["name"] not in EMBEDDED]
    if elsewhere:
        found += [Finding(what, REBUILD) for what in _find_faults_elsewhere(folder, elsewhere)]
    for retriever in settings.retrievers:
        if retriever in elsewhere:
            continue
        keys = folder / "keys" / retriever.name
        faults = find_damage(keys) or _find_foreign_keys(folder, keys)
        found += [Finding(what, REBUILD) for what in faults]
        if not found and encoder_cost(*name_and_options(retriever.encoder)) != "nothing":
            found += [Finding(what, REBUILD) for what in _find_missing_keys(folder, keys)]
    return found or [Finding(what, REBUILD) for what in _find_low_recall(folder, settings)]


def _find_faulty_revisions(folder: Path) -> list[str]:
    """Weights of tuned encoders that cannot be read, their keys, and what no epoch names."""
    named = file.named_revisions(folder)
    keys = [path for path in sorted(folder.glob("keys/*@*")) if path.name.rpartition("@")[2] in named]
    stray = [path for path in revisions.paths(folder) if path.name.rpartition("@")[2] not in named]
    faults = [*revisions.find_faults(folder, named), *(what for one in keys for what in find_damage(one))]
    return [*faults, *(f"{path}: of a tuned encoder that no epoch names" for path in stray)]


def _find_low_recall(folder: Path, settings: Settings) -> list[str]:
    """Stores that do not look at all keys, and find too little: by some questions that people have asked."""
    if not any(one.store and one.store["name"] == "ann" for one in settings.retrievers):
        return []
    try:
        memory = memory_.open(folder)
    except NotAllowed as error:
        return [str(error)]
    with memory:
        recalls = memory.index.background.measure(partial(sample_questions, memory.ledger))
    return [
        f"{folder / 'keys' / name}: searches find {recall:.3f} of the ten best documents, and are to find {target:.3f}"
        for name, (recall, target) in recalls.items()
        if recall < target
    ]


def examine_shared(memory: memory_.Memory) -> list[str]:
    """What is wrong with a memory in a database, whose own checks are for who runs it (amcheck, checksums)."""
    found = [what for one in memory.index.retrievers for what in one.store.check()]
    for name, numbers in memory.index.lacking.items():
        found.append(f"{len(numbers)} documents have no keys by {name}: it does not find them until the next write")
    return found


def _find_faults_elsewhere(folder: Path, retrievers: Sequence[RetrieverSettings]) -> list[str]:
    """Keys that are in a store of another package: it says itself what is wrong with them."""
    try:
        settings = replace(read_trusted(folder, trust.allowances(folder)), retrievers=tuple(retrievers))
    except NotAllowed as error:
        return [str(error)]
    return [what for one in build_retrievers(settings, folder) for what in one.store.check()]


def _find_unnamed_keys(folder: Path) -> list[Path]:
    """Keys of encoders that the settings do not have: these may be cut, or an earlier change of encoder was."""
    names = {one.name for one in read_whole(folder).retrievers}
    found = (path.parent for path in folder.glob(f"keys/*/{MANIFEST}"))
    return sorted(path for path in found if path.name.partition("@")[0] not in names)


def _find_foreign_keys(folder: Path, keys: Path) -> list[str]:
    """Keys beside a ledger that they were not made from."""
    manifest, numbers = read_manifest(keys), find_covered(keys)
    if manifest is None or not len(numbers) or file.owns_keys(folder, manifest.writer, int(numbers.max())):
        return []
    return [f"{keys}: made for other documents than the ledger has (it was restored or replaced); they are not used"]


def _find_missing_keys(folder: Path, keys: Path) -> list[str]:
    """Keys that cost nothing may be in memory only, and are made at open; all others belong on disk."""
    ids = file.document_ids(folder)
    missing = [ids[number] for number in np.setdiff1d(list(ids), find_covered(keys)).tolist()]
    if not missing:
        return []
    return [f"{keys}: {len(missing)} without keys: {named(missing)}. A search by {keys.name} does not find them"]


def rebuild(folder: Path) -> int:
    """Make all derived files again; returns the number of documents. Nobody else may be writing meanwhile.

    Keys that cost time or money are kept where they are sound, and only the others made. Old keys go when the new ones
    are on disk.
    """
    settings = read_trusted(folder, trust.allowances(folder))
    with Ledger(folder) as ledger:
        ledger.lock()
        for one in build_retrievers(settings, folder):
            _renew(one, ledger, keep=one.cost != "nothing")
            one.save(force=True)
            if isinstance(one.store, IndexingStore):
                one.store.finish()
        ledger.pools.clear()
        count, dropped = len(ledger.documents), _mend_revisions(folder, ledger)
    if dropped:
        with memory_.open(folder) as memory:
            memory.refit()
    return count


def _mend_revisions(folder: Path, ledger: Ledger) -> bool:
    """Drop tuned encoders whose weights cannot be read, and their keys; and keys that cannot be, which are made again.
    Returns whether an encoder was dropped."""
    named = ledger.epochs.revisions
    lost = {name for name in named if revisions.find_faults(folder, [name])}
    ledger.drop_revisions(lost)
    revisions.sweep(folder, named - lost)
    for keys in folder.glob("keys/*@*"):
        if find_damage(keys):
            shutil.rmtree(keys)
    return bool(lost)


def reencode(folder: Path, encoders: Sequence[Named] = ()) -> tuple[int, EpochReport | None]:
    """Encode documents and lessons again, with these encoders or with what the settings say now, and learn again.

    Nothing learned is lost: lessons are texts. Returns the number of documents and what was published. An encoder that
    fails changes nothing: settings and keys are replaced when all new keys are there. One that refuses a document
    leaves it without keys.
    """
    settings = replace(read(folder / FILE), format=FORMAT)  # made as a new memory is
    if encoders:
        chosen = settings_of(encoder=list(encoders), keys=settings.retrievers[0].keys)
        settings = replace(settings, retrievers=chosen.retrievers, objects=chosen.objects)
    said = needs(replace(Settings(), retrievers=settings.retrievers), folder) if encoders else []
    known = [*trust.allowances(folder), *(one.allowance for one in said)]
    trust.check([*trust.links(folder), *needs(settings, folder)], known, folder)
    if any(one.encoder["name"] == "given" for one in settings.retrievers):
        raise InvalidSettings(
            "encoder 'given' takes its vectors from the caller: add the documents again with new ones"
        )
    made = build_retrievers(settings, folder)
    with Ledger(folder) as ledger:
        ledger.lock()
        for one in made:
            _renew(one, ledger, keep=False)
        ledger.drop_revisions(ledger.epochs.revisions)  # they were trained from the encoders of before
        overwrite(folder, settings)
        for one in made:
            one.store.flush()
        revisions.sweep(folder, ())
        _sweep(folder, {one.name for one in made})
    with memory_.open(folder) as memory:
        found = len(memory), memory.refit()
    for one in made:
        one.save()  # until here, what was paid for is found again if learning fails
    return found


def _renew(retriever: Retriever, ledger: Ledger, *, keep: bool) -> None:
    """Make the keys of all documents, or of those that have none, in memory; an encoder that fails is an error."""
    live = ledger.documents.live()
    retriever.store.open(ledger.writers)
    if keep:
        retriever.store.follow(live, (), ())
    else:
        retriever.store.drop()
    missing = live[retriever.base.sizes(live) < 0]
    encoding = attempt(retriever, ledger.documents, missing, ledger.words, Watch(len(missing), 1))
    if encoding.failure is not None:
        raise encoding.failure
    if encoding.refused:
        why = reason(next(iter(encoding.refused.values())))
        log.warning("%s stays without keys by %s: %s", named(list(encoding.refused)), retriever.name, why)
    for keys in encoding.keys:
        retriever.store.write(keys)


def _sweep(folder: Path, names: set[str]) -> None:
    """Keys of encoders that the settings no longer name."""
    for path in (folder / "keys").iterdir():
        if path.name not in names:
            shutil.rmtree(path, ignore_errors=True)
