"""Small memories to which faults happen, and how it is told whether one of them took harm.

A trial copies a prepared memory, takes seeded steps, and meets a fault. Its twin takes the same steps without one.
What the trial leaves must equal, bit for bit, the twin after the steps that were acknowledged, or after these and the
one that was under way: the rows of the ledger, rankings and scores at once, and again after both were written to. The
doctor must find nothing. Where keys could be those of other documents, they must rank as keys made anew do.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scenarios import ASKED, DOINGS, NICKNAMES, PROBE, THINGS, Step, documents, lesson

import evokey
from evokey.errors import EvokeyError
from evokey.inspect import doctor
from evokey.stores.embedded import EmbeddedStore

EmbeddedStore.persist_at = 4  # few rows: segments are written and merged often
DERIVED = ("pools", "migrations", "sqlite_sequence", "writers")
BASES: dict[str, Any] = {"bm25": "bm25", "hybrid": None}
WAY_OUT = re.compile(
    r"evokey (doctor|backup|allow|evolve|add)|try again|restore|wait until|make room|remove|upgrade|give |give:|check |"
    r"leave out|change its|open it|go back|make it|search in a copy|take the memory|is written as|write that file|"
    r"retry|set |choose |say |use |raise |lower |is it running|correct it|ask again|send less|name the",
    re.IGNORECASE,
)
"""What a caller is told to do. An error without one leaves him alone with it."""
Rankings = list[list[tuple[str, float]]]
Rows = dict[str, list[Any]]
QUERIES = (*(one for one in ASKED if "where" in one or one["query"] == "squeaker"), ASKED[0], ASKED[3])


SEEN: dict[Path, Any] = {}
"""Of prepared memories, what they hold: worked out once."""


class Harm(AssertionError):
    """What no fault may do; `kind` is a column of the table."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind


@dataclass(frozen=True)
class Seen:
    """What is found in a memory: at once, and after it was written to again."""

    ledger: Rows
    rankings: Rankings
    ledger_later: Rows
    rankings_later: Rankings

    @property
    def content(self) -> Rows:
        return {table: self.ledger[table] for table in ("documents", "facts", "lessons", "verdicts", "pins")}

    @property
    def items(self) -> int:
        """Acknowledged documents, lessons and epochs."""
        return sum(len(self.ledger[table]) for table in ("documents", "lessons", "epochs"))


@dataclass
class Trial:
    """A place for one fault, and what was seen while it happened."""

    home: Path
    base: Path
    chance: random.Random
    options: dict[str, Any] = field(default_factory=dict)
    """Arguments with which the memory is opened."""
    errors: list[str] = field(default_factory=list)
    checked: int = 0
    server: Any = None
    """The service that it asks, if it has one."""
    seen_live: Any = None
    """What the process itself found after the fault."""
    place: Path | None = None
    """Another folder for the memory than the usual one."""

    def __post_init__(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        self.folder = (self.place or self.home) / "kb"
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.base, self.folder)

    def open(self, folder: Path | None = None) -> evokey.Memory:
        return evokey.open(folder or self.folder, now=lambda: 0.0, **self.options)

    def copy(self, name: str, of: Path | None = None) -> Path:
        shutil.rmtree(self.home / name, ignore_errors=True)
        shutil.copytree(of or self.folder, self.home / name)
        return self.home / name

    @contextmanager
    def meets(self) -> Iterator[None]:
        """Whatever is raised in here must be an error of ours that tells a way out."""
        try:
            yield
        except KeyboardInterrupt:
            self.errors.append("KeyboardInterrupt")
        except EvokeyError as error:
            self.errors.append(type(error).__name__)
            if not WAY_OUT.search(str(error)):
                raise Harm("no way out", f"{type(error).__name__}: {error}") from error
        except Harm:
            raise
        except Exception as error:
            raise Harm("raw error", f"{type(error).__name__}: {error}") from error

    @property
    def untouched(self) -> Seen:
        """What the prepared memory holds."""
        if self.base not in SEEN:
            SEEN[self.base] = next(self.twin([]).after(0))
        return SEEN[self.base]

    def twin(self, steps: Sequence[Step], of: Path | None = None) -> Twin:
        return Twin(self, self.copy("twin", of or self.base), steps)

    def look(self, folder: Path | None = None) -> Seen:
        """At what a fault left, on disk."""
        with self.meets():
            seen = examine(self.open, folder or self.folder)
            found = doctor.examine(folder or self.folder)
            if found:
                raise Harm("unsound", f"afterwards the doctor finds {found}")
            return seen
        raise Harm("lost", f"the memory does not open again: {self.errors[-1]}")

    def compare_with_new_keys(self, seen: Seen) -> None:
        """Keys that are made anew from the ledger must rank alike."""
        copy = self.copy("unkeyed")
        shutil.rmtree(copy / "keys", ignore_errors=True)
        with self.meets(), self.open(copy) as memory:
            if rank(memory) != seen.rankings_later:
                raise Harm("wrong ranking", "keys that are made anew from the ledger rank otherwise")

    def compare(self, seen: Seen, allowed: Iterator[Seen]) -> None:
        tried = []
        for one in allowed:
            if seen == one:
                self.checked += one.items
                return
            tried.append(one)
        kind = "wrong ranking" if any(seen.ledger == one.ledger for one in tried) else "lost"
        raise Harm(kind, "\n".join(difference(seen, one) for one in tried))

    def compare_content(self, seen: Seen, allowed: Iterator[Seen]) -> None:
        """Epochs aside: what is there, and what is found now."""
        for wanted in allowed:
            if seen.content != wanted.content:
                raise Harm("lost", difference(seen, wanted))
            if (seen.rankings[::2], seen.rankings_later[::2]) != (wanted.rankings[::2], wanted.rankings_later[::2]):
                raise Harm("wrong ranking", difference(seen, wanted))
            self.checked += wanted.items


@dataclass
class Twin:
    """The same memory without a fault."""

    trial: Trial
    folder: Path
    steps: Sequence[Step]
    _seen: dict[int, Seen] = field(default_factory=dict)
    _ranked: dict[int, Rankings] = field(default_factory=dict)

    def after(self, *counts: int) -> Iterator[Seen]:
        """What it holds after so many steps; each is only worked out when it is asked for."""
        for count in dict.fromkeys(min(count, len(self.steps)) for count in counts):
            if count not in self._seen:
                self._seen[count] = examine(self.trial.open, self._at(count))
            yield self._seen[count]

    def ranked(self, count: int) -> Rankings:
        if count not in self._ranked:
            with self.trial.open(self._at(count)) as memory:
                self._ranked[count] = rank(memory)
        return self._ranked[count]

    def _at(self, count: int) -> Path:
        copy = self.trial.copy("after", self.folder)
        with self.trial.open(copy) as memory:
            for step in self.steps[:count]:
                memory = take(memory, step, lambda: self.trial.open(copy))
            memory.close()
        return copy


def take(memory: evokey.Memory, step: Step, open: Callable[[], evokey.Memory]) -> evokey.Memory:
    verb, given = step
    if verb == "reopen":
        memory.close()
        return open()
    getattr(memory, verb)(**given)
    return memory


def examine(open: Callable[[Path], evokey.Memory], folder: Path) -> Seen:
    """Look at a memory, write to it, and look again."""
    with open(folder) as memory:
        ledger, rankings = read_ledger(folder), rank(memory)
        for verb, given in PROBE:
            getattr(memory, verb)(**given)
        later = rank(memory)
    return Seen(ledger, rankings, read_ledger(folder), later)


def rank(memory: evokey.Memory) -> Rankings:
    return [
        [(hit.id, hit.score) for hit in memory.search(**one, epoch=epoch)] for one in QUERIES for epoch in (None, 0)
    ]


def read_ledger(folder: Path) -> Rows:
    """All rows of all tables but those that are derived."""
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr)
            for name in sorted(set(names) - set(DERIVED))
        }


def difference(found: Seen, wanted: Seen) -> str:
    lines = []
    for part in ("ledger", "ledger_later"):
        one, other = getattr(found, part), getattr(wanted, part)
        for table in one.keys() | other.keys():
            if one.get(table) != other.get(table):
                lines.append(f"{part} {table}: found {one.get(table)} wanted {other.get(table)}"[:600])
    for part in ("rankings", "rankings_later"):
        if getattr(found, part) != getattr(wanted, part):
            lines.append(f"{part}: found {getattr(found, part)} wanted {getattr(wanted, part)}"[:600])
    return "\n".join(lines)


# ---- what is done to memories


def prepare(folder: Path, encoder: Any, **options: Any) -> None:
    """Without a sample of the traffic: trials look at their memories more often than their twins."""
    with evokey.open(folder, encoder=encoder, now=lambda: 0.0, traffic=0, **options) as memory:
        memory.add(documents(0, 12))
        for number in (1, 2, 3, 14):
            memory.feedback(**lesson(number, actor="ann" if number % 2 else None))
        memory.evolve()
        memory.protect("polish the mirror", ["d9"])
        memory.add(documents(12, 14))


def program(trial: Trial, count: int) -> list[Step]:
    """Seeded steps, each of which a memory takes that took those before it: what it refuses is left out."""
    found: list[Step] = []
    folder = trial.copy("program", trial.base)
    memory = trial.open(folder)
    try:
        for number in range(count):
            step = _step(trial.chance, number)
            with suppress(EvokeyError):
                memory = take(memory, step, lambda: trial.open(folder))
                found.append(step)
    finally:
        memory.close()
    return found


def _step(chance: random.Random, number: int) -> Step:
    new = 20 + 10 * number
    at = chance.randrange(14)
    steps: list[tuple[int, Step]] = [
        (4, ("add", {"documents": documents(new, new + chance.randint(1, 6))})),
        (2, ("add", {"documents": documents(at, at + 2, f"anew {number}")})),
        (2, ("delete", {"ids": [f"d{at}"]})),
        (3, ("feedback", {**lesson(chance.randrange(12), units=["squeaky"] if at % 2 else None)})),
        (2, ("feedback_many", {"lessons": [_wording(chance) for _ in range(3)]})),
        (3, ("evolve", {})),
        (1, ("forget", {"actor": "ann"})),
        (1, ("forget", {"query": lesson(chance.choice([1, 2, 3, 14]))["query"]})),
        (1, ("forget", {"document": f"d{at}"})),
        (1, ("protect", {"query": f"{chance.choice(DOINGS)} it", "relevant": [f"d{at}"]})),
        (1, ("hold", {"lessons": [chance.randint(1, 4)]})),
        (1, ("release", {"lessons": [chance.randint(1, 4)]})),
        (1, ("rollback", {"epoch": chance.randint(0, 1)})),
        (1, ("save", {})),
        (2, ("reopen", {})),
    ]
    return chance.choices([step for _, step in steps], [weight for weight, _ in steps])[0]


def _wording(chance: random.Random) -> dict[str, Any]:
    at = chance.randrange(12)
    return {"query": f"{chance.choice(DOINGS)} my {NICKNAMES[at]} {chance.choice(THINGS)}", "relevant": [f"d{at}"]}


def summary(step: Step) -> str:
    return f"{step[0]} {json.dumps(step[1], default=repr)[:80]}"
