"""What the embedded stores share: segments of rows in memory or memory-mapped, in a folder of the memory.

A store is a list of segments; adding appends one, small neighbours are merged, removing only marks rows dead. Every
change makes a new immutable state (rows.py), so a search that has begun goes on undisturbed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Generic

import numpy as np

from evokey.errors import EncoderMismatch
from evokey.protocols import Origin, Space
from evokey.scoring.block import NO_NUMBERS, Keys
from evokey.scoring.soundness import check_numbers
from evokey.stores.rows import B, Rows, Segment, covered_by
from evokey.stores.segments import Manifest, find_damage, read_manifest, read_segment, write_manifest, write_segment
from evokey.types import Numbers

UNREADABLE = Manifest("", ())
UNREAD = "keys in %s cannot be read (%s): they are rebuilt from the ledger"
log = logging.getLogger("evokey")


class EmbeddedStore(Generic[B]):
    """Segments in a folder (or in memory alone, without one)."""

    kinds: ClassVar[frozenset[str]]
    exact: ClassVar[bool] = True
    state: ClassVar[type[Rows[B]]]
    persist_at = 1_000
    """Rows held in memory only, before they are written by themselves: making them again is cheap up to here."""

    def __init__(self, space: Space) -> None:
        self._folder, self._space = space.folder, space
        self.rows: Rows[B] = self.state(encoder=space.encoder)
        self._origin: Origin | None = None
        self._loaded: Manifest | None = None
        self._making: frozenset[str] = frozenset()
        """Segments that are being made while others are written."""

    def _set(self, segments: Sequence[Segment[B]], dead: frozenset[int]) -> None:
        self.rows = self.state(tuple(segments), dead, self._space.encoder)

    @property
    def snapshot(self) -> Rows[B]:
        return self.rows

    def open(self, origin: Origin) -> None:
        self._origin = origin

    def follow(self, live: Numbers, added: Sequence[int], removed: Sequence[int]) -> bool:
        if self._load(live):
            return True
        dead = (self.rows.dead - frozenset(added)) | frozenset(removed)
        if dead != self.rows.dead:
            self._set(self.rows.segments, dead)
        return False

    def _load(self, live: Numbers) -> bool:
        """Take up what is on disk, if it changed. Documents that do not live are dead: those that another process has
        added since the ledger was read, until it says so."""
        for read in (self._read, self._read_if_sound):
            manifest = self._manifest()
            if manifest is None or manifest == self._loaded:
                return False
            try:
                self._take_up(manifest, self._segments(manifest, read), live)
                return True
            except (OSError, ValueError, KeyError) as error:
                # Either swept away by the writer since we read the manifest, or damaged.
                log.info("keys in %s are read again (%s)", self._folder, str(error))
        raise AssertionError("the second reading leaves out what it cannot read")

    def _take_up(self, manifest: Manifest, segments: tuple[Segment[B], ...], live: Numbers) -> None:
        covered = covered_by(segments)
        if not self._belong(manifest, covered):
            segments, covered = (), NO_NUMBERS
        self._set(segments, frozenset(np.setdiff1d(covered, live).tolist()))
        self._loaded = manifest

    def _manifest(self) -> Manifest | None:
        if self._folder is None:
            return None
        try:
            return read_manifest(self._folder)
        except (OSError, ValueError, KeyError) as error:
            if self._loaded != UNREADABLE:
                log.warning(UNREAD, self._folder, str(error))
            return UNREADABLE

    def _segments(self, manifest: Manifest, read: Callable[[Path, str], Segment[B] | None]) -> tuple[Segment[B], ...]:
        assert self._folder is not None
        if manifest is not UNREADABLE and manifest.encoder != self._space.identity:
            raise EncoderMismatch(
                f"the keys in {self._folder} were made by {manifest.encoder}, the settings now say "
                f"{self._space.identity}. Vectors of two encoders do not mix: go back to the first, or encode "
                f"everything again with: evokey doctor --reencode"
            )
        held = {segment.name: segment for segment in self.rows.segments}
        found = (held.get(name) or read(self._folder, name) for name in manifest.segments)
        return tuple(one for one in found if one is not None)

    def _belong(self, manifest: Manifest, covered: Numbers) -> bool:
        """Whether keys were made for the documents that this ledger knows by these numbers."""
        if self._origin is None or not len(covered) or self._origin.owns(manifest.writer, int(covered.max())):
            return True
        log.warning(
            "keys in %s were made for other documents (the ledger beside them was restored or replaced): they are "
            "made again from the ledger",
            self._folder,
        )
        return False

    def _read_if_sound(self, folder: Path, name: str) -> Segment[B] | None:
        """One segment that cannot be read costs no other: keys may have been paid for."""
        try:
            return self._read(folder, name)
        except (OSError, ValueError, KeyError) as error:
            log.warning(UNREAD, folder, str(error))
            return None

    @property
    def changed(self) -> bool:
        """Whether another process has written keys since they were loaded."""
        return self._manifest() not in (None, UNREADABLE, self._loaded)

    def write(self, keys: Keys) -> None:
        known = self.rows.covers(keys.covered)
        if known.any():
            keys = keys.take(~known)
        if not len(keys.covered):
            return
        segments = [*self.rows.segments, Segment(keys.block, keys.owners, keys.covered)]
        while len(segments) > 1 and self._mergeable(segments[-2], segments[-1]):
            segments[-2:] = [self._merge(segments[-2:])]
        self._set(segments, self.rows.dead)

    def drop(self) -> None:
        """The files stay until others are flushed in their place."""
        self._set((), frozenset())

    def check(self) -> list[str]:
        return [] if self._folder is None else find_damage(self._folder)

    def flush(self, *, force: bool = True) -> None:
        """Without force, only when it has grown large."""
        unsaved = [segment for segment in self.rows.segments if segment.name is None]
        waiting = sum(len(segment.covered) for segment in unsaved)
        if self._folder is None or not waiting or not (force or waiting >= self.persist_at):
            return
        kept = [segment for segment in self.rows.segments if segment.name is not None]
        while kept and self._is_small(kept[-1], unsaved):
            unsaved.insert(0, kept.pop())
        writer = "" if self._origin is None else self._origin.writer
        self._publish((*kept, self._persist(self._merge(unsaved))), writer)

    def _is_small(self, kept: Segment[B], unsaved: Sequence[Segment[B]]) -> bool:
        """Whether a segment on disk is written again together with what follows it."""
        return len(kept.covered) < 2 * sum(len(segment.covered) for segment in unsaved)

    def _persist(self, segment: Segment[B]) -> Segment[B]:
        assert self._folder is not None
        arrays = {"owners": segment.owners, "covered": segment.covered, **segment.block.arrays()}
        return replace(segment, name=write_segment(self._folder, arrays))

    def _publish(self, segments: Sequence[Segment[B]], writer: str) -> None:
        """Make these the segments, here and on disk; writer: the last that had written documents before them."""
        assert self._folder is not None
        names = tuple(segment.name for segment in segments if segment.name is not None)
        manifest = Manifest(self._space.identity, names, writer)
        write_manifest(self._folder, manifest, self._making)
        self._loaded = manifest
        self._set(segments, self._still_dead(segments))

    def _still_dead(self, segments: Sequence[Segment[B]]) -> frozenset[int]:
        """The dead whose rows still lie in these segments."""
        dead = np.fromiter(self.rows.dead, np.int64, len(self.rows.dead))
        return frozenset(dead[np.isin(dead, covered_by(segments))].tolist())

    def _read(self, folder: Path, name: str) -> Segment[B]:
        # Plain arrays over the mapped files: numpy's own class for these slows every small slice.
        arrays = {key: np.asarray(array) for key, array in read_segment(folder, name).items()}
        check_numbers(arrays["owners"], arrays["covered"])
        self.state.block.check(arrays, len(arrays["owners"]))
        block: B = self.state.block.from_arrays(arrays)  # type: ignore[assignment]
        return Segment(block, arrays["owners"], arrays["covered"], name)

    def _mergeable(self, first: Segment[B], second: Segment[B]) -> bool:
        return first.name is None and len(first.covered) < 2 * len(second.covered)

    def _merge(self, segments: Sequence[Segment[B]]) -> Segment[B]:
        """One segment of the living rows of several."""
        dead = np.fromiter(self.rows.dead, np.int64, len(self.rows.dead))
        alive = [np.flatnonzero(~np.isin(segment.owners, dead)) for segment in segments]
        kept = list(zip(segments, alive, strict=True))
        block: B = self.state.block.join([segment.block.take(rows) for segment, rows in kept])  # type: ignore[assignment]
        owners = np.concatenate([segment.owners[rows] for segment, rows in kept])
        return Segment(block, owners, np.setdiff1d(covered_by(segments), dead))
