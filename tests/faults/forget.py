"""Search every byte of many memories after a forget: `python tests/faults/forget.py` (or make forget-check).

Each memory is taught a few hundred lessons, about a third of them by somebody who is then forgotten. Words by which
these lessons, their units, what a model answered to them, who gave them and the vectors that came with them are
recognised are looked for in all files of its directory: before the forget they are there, afterwards none may be.
Some memories are killed in the midst of the forget, some are read by another process meanwhile, some write what another
process had searched before. The counts go to benchmarks/results/forget.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import paid
from boundaries import Boundaries, install

import evokey
from evokey.encoders.cached import hash_texts
from evokey.verifiers.human import Human

RESULT = Path(__file__).parents[2] / "benchmarks" / "results" / "forget.json"
FAST = Path("/dev/shm")
NOBODY, EVE = "sam", "zqevelyn01"
WORDS = "apple river stone light music garden winter castle bridge window".split()


@dataclass
class Trial:
    """One memory, and what must not be found in it."""

    folder: Path
    chance: random.Random
    settings: dict[str, Any]
    needles: set[bytes] = field(default_factory=set)

    def open(self) -> evokey.Memory:
        return evokey.open(self.folder, **self.settings)

    @property
    def given(self) -> bool:
        return self.settings["encoder"] == "given"

    def secret(self) -> str:
        word = "zq" + "".join(self.chance.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(8))
        self.needles |= {word.encode(), paid.mark(word).encode()}
        return word

    def text(self, *words: str) -> str:
        return " ".join([*words, *self.chance.choices(WORDS, k=self.chance.randrange(1, 40))])

    def fill(self, lessons: int) -> None:
        with self.open() as memory:
            documents = [{"id": f"d{n}", "text": self.text()} for n in range(20)]
            memory.add(documents, vectors=np.eye(20) if self.given else None)
            self.teach(memory, lessons)
            memory.evolve()

    def teach(self, memory: evokey.Memory, lessons: int) -> None:
        """In several transactions, as pages are split and joined in the course of time."""
        said = [self.lesson(f"q{number}") for number in range(lessons)]
        while said:
            at = self.chance.randrange(1, 60)
            memory.feedback_many(said[:at])
            said = said[at:]

    def lesson(self, name: str) -> dict[str, Any]:
        secret = self.chance.random() < 1 / 3
        said: dict[str, Any] = {"relevant": [f"d{self.chance.randrange(20)}"], "actor": EVE if secret else NOBODY}
        said["query"] = self.text(name, self.secret()) if secret else self.text(name)
        if self.given:
            vector = np.asarray([self.chance.gauss(0, 1) for _ in range(20)], np.float32)
            said["vector"] = vector / np.linalg.norm(vector)
            self.needles |= {said["vector"].tobytes()} if secret else set()
        elif self.chance.random() < 0.5:
            said["units"] = [self.text(self.secret()) if secret else self.text()]
        if secret:
            self.needles |= {EVE.encode(), *(hash_texts(text) for text in [said["query"], *said.get("units", ())])}
        return said

    def found(self) -> dict[str, int]:
        """Files that hold something that was forgotten, and how much."""
        contents = {path.name: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        counts = {name: sum(needle in content for needle in self.needles) for name, content in contents.items()}
        return {name: count for name, count in counts.items() if count}


# ---- what happens to a memory between its lessons and the search


def plain(trial: Trial) -> None:
    trial.fill(300)
    yes(trial.found(), "nothing is found even before")
    with trial.open() as memory:
        yes(memory.forget(actor=EVE).erased, "the forget is pending")
    no_trace(trial)


def held(trial: Trial) -> None:
    """Lessons on hold, a rollback, and a forget lesson by lesson."""
    trial.fill(120)
    with trial.open() as memory:
        memory.hold(one.number for one in memory.lessons(actor=EVE)[::2])
        memory.evolve()
        memory.rollback(1)
        memory.rollback(0)
        for one in memory.lessons(actor=EVE):
            memory.forget(query=one.query)
        memory.forget(actor=EVE)  # nothing is left that she taught
    no_trace(trial)


def killed(trial: Trial) -> None:
    trial.fill(150)
    yes(trial.found(), "nothing is found even before")
    kill_forgetting(trial)
    with trial.open() as memory:
        if memory.lessons(actor=EVE):  # it was killed before it had begun
            memory.forget(actor=EVE)
    no_trace(trial)


def kill_forgetting(trial: Trial) -> None:
    """At some write that it makes: one of the first, or any."""
    steps = trial.chance.randrange(trial.chance.choice([60, 240]))
    with forked() as child:
        if child == 0:
            install(at := Boundaries())
            memory = trial.open()
            at.die_at = len(at.seen) + steps
            memory.forget(actor=EVE)
            os.kill(os.getpid(), signal.SIGKILL)


def read_meanwhile(trial: Trial) -> None:
    """Another process reads the ledger: the forget is pending, and the next writer finishes it."""
    trial.fill(150)
    with closing(sqlite3.connect(trial.folder / "ledger.sqlite")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM lessons").fetchone()
        with trial.open() as memory:
            done = memory.forget(actor=EVE)
            yes(not done.erased and "reading the ledger" in str(done.pending), f"it says {done}")
            yes(memory.stats().erasing, "stats do not say so")
    with trial.open() as memory:
        yes(not memory.stats().erasing, "opening does not finish it")
    no_trace(trial)


def searched_elsewhere(trial: Trial) -> None:
    """Another process had searched for what is forgotten, and writes afterwards."""
    trial.fill(100)
    with trial.open() as memory:
        asked = [one.query for one in memory.lessons(actor=EVE)]
        ready, go = os.pipe(), os.pipe()
        with forked() as child:
            if child == 0:
                with trial.open() as other:
                    for query in asked:
                        other.search(query)
                    os.write(ready[1], b".")
                    os.read(go[0], 1)
                    other.search("apple river")
                    other.feedback("apple stone", relevant=["d1"])
                    other.evolve()
            else:
                os.read(ready[0], 1)
                memory.forget(actor=EVE)
                memory.close()
                os.write(go[1], b".")
    no_trace(trial)


def paid_for(trial: Trial, forget: Callable[[Trial], None] | None = None) -> None:
    """Through the loop: a paid encoder, a model whose answers are kept, a person who answers, expansions."""
    with trial.open() as memory:
        memory.add([{"id": f"d{n}", "text": trial.text()} for n in range(20)])
        trial.teach(memory, 60)
        for number in range(12):
            secret = number % 3 == 0
            query = trial.text(f"l{number}", trial.secret()) if secret else trial.text(f"l{number}")
            trial.needles |= {hash_texts(query)} if secret else set()
            memory.learn(query, actor=EVE if secret else NOBODY)
            queue = Human(trial.folder / "human.sqlite")
            for one in queue.pending():
                queue.answer(one.id, True, {one.documents[0].id: 1}, actor=EVE if secret else NOBODY)
            yes(memory.learn(query, actor=EVE if secret else NOBODY).lesson, "nothing was learned")
            memory.search(query)
        memory.evolve()
    files = trial.found()
    for name in ("ledger.sqlite", "human.sqlite", "taught.sqlite", "answers.sqlite", "recorded.jsonl"):
        yes(any(file.startswith(name) for file in files), f"{name} holds nothing even before: {files}")
    (forget or forget_eve)(trial)
    no_trace(trial)
    with trial.open() as memory:
        yes(memory.stats().lessons > 40, "more was forgotten than was asked")


def forget_eve(trial: Trial) -> None:
    with trial.open() as memory:
        yes(memory.forget(actor=EVE).erased, "the forget is pending")


def paid_and_killed(trial: Trial) -> None:
    def kill(trial: Trial) -> None:
        kill_forgetting(trial)
        with trial.open() as memory:
            if memory.lessons(actor=EVE):
                memory.forget(actor=EVE)

    paid_for(trial, kill)


KINDS: dict[str, tuple[Callable[[Trial], None], int, str]] = {
    "300 lessons": (plain, 25, "bm25"),
    "held and rolled back": (held, 10, "bm25"),
    "killed while forgetting": (killed, 25, "bm25"),
    "read meanwhile": (read_meanwhile, 8, "bm25"),
    "searched elsewhere": (searched_elsewhere, 10, "bm25"),
    "vectors of the caller": (plain, 6, "given"),
    "paid": (paid_for, 8, "paid"),
    "paid, killed while forgetting": (paid_and_killed, 8, "paid"),
}


def settings(folder: Path, encoder: str) -> dict[str, Any]:
    if encoder != "paid":
        return {"encoder": encoder}
    recorded = {"name": "recorded", "at": str(folder / "recorded.jsonl"), "mode": "record", "llm": "marking"}
    llm = {"name": "cached", "at": str(folder / "answers.sqlite"), "llm": recorded}
    return {"encoder": ["bm25", "paid"], "llm": llm, "expander": "hyde", "verifier": "human"}


class Left(AssertionError):
    pass


def yes(holds: object, otherwise: str) -> None:
    if not holds:
        raise Left(otherwise)


def no_trace(trial: Trial) -> None:
    yes(not (left := trial.found()), f"what was forgotten is still in {left}")


@contextmanager
def forked() -> Iterator[int]:
    """A second process with the same code: 0 in the child, which ends with the block."""
    child = os.fork()
    try:
        yield child
        if child == 0:
            os._exit(0)
    except BaseException as error:
        if child == 0:
            sys.stderr.write(f"{error!r}\n")
            os._exit(1)
        raise
    finally:
        if child:
            os.waitpid(child, 0)


def run(kind: str, number: int, base: Path) -> str | None:
    """Try one memory; returns what went wrong."""
    trouble, _, encoder = KINDS[kind]
    folder = base / "memory"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        trouble(Trial(folder, random.Random(f"{kind} {number}"), settings(folder, encoder)))
    except Left as error:
        return str(error)
    return None


def speed(base: Path, lessons: int = 40_000, documents: int = 40_000) -> dict[str, float]:
    """How long a forget takes in a large ledger, beside the size of what it writes anew and of what it leaves alone."""
    folder, chance = base / "large", np.random.default_rng(1)
    with evokey.open(folder, encoder="bm25", traffic=0) as memory:
        memory.add([{"id": f"d{n}", "text": "apple " * 10 + str(n)} for n in range(10)])
        memory.save()
        texts = [" ".join(map(str, chance.integers(1000, size=10))) for _ in range(lessons)]
        database = memory.ledger._database
        with database.write():
            rows = [(text, "[]", "sam", "feedback", 0.0, "[]") for text in texts]
            database.run_many(f"INSERT INTO lessons({LESSON}) VALUES (?,?,?,?,?,?)", rows)
            database.run_many("INSERT INTO verdicts SELECT number, 'd1', 'x', 1.0 FROM lessons", [()])
            pools = [("bm25", text, chance.bytes(800), chance.bytes(800), 10, 0) for text in texts]
            database.run_many("INSERT OR REPLACE INTO pools VALUES (?,?,?,?,?,?)", pools)
        database.empty_log(1.0)
        anew = (folder / "ledger.sqlite").stat().st_size
        with database.write():
            other = [(f"x{n}", "", "word " * 1500, "{}", "h") for n in range(documents)]
            database.run_many("INSERT INTO documents(id, title, text, metadata, hash) VALUES (?,?,?,?,?)", other)
        database.empty_log(1.0)
        alone = (folder / "ledger.sqlite").stat().st_size - anew
        memory.index.catch_up = lambda **_: None  # type: ignore[method-assign]  # the documents are not indexed
        begun, worked = time.perf_counter(), time.process_time()
        memory.forget(query="nobody asked this")
        seconds, busy = time.perf_counter() - begun, time.process_time() - worked
        memory.ledger.close()
        memory._closed = True
    return {"GB of lessons": anew / 1e9, "GB of documents": alone / 1e9, "seconds": seconds,
            "seconds per GB of lessons": seconds / (anew / 1e9),
            "processor seconds per GB of lessons": busy / (anew / 1e9)}  # fmt: skip


LESSON = "query, units, actor, verifier, time, retrieved"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kind", choices=KINDS, help="only this kind")
    parser.add_argument("--number", type=int, help="only this memory of each kind")
    options = parser.parse_args()
    complete = options.kind is options.number is None
    paid.register()
    base = Path(tempfile.mkdtemp(prefix="evokey-forget-", dir=FAST if FAST.is_dir() else None))
    rows, failures, large = [], 0, {}
    try:
        if complete:
            with tempfile.TemporaryDirectory() as disk:
                large = {name: round(value, 2) for name, value in speed(Path(disk)).items()}
            sys.stdout.write(f"{large}\n")
        for kind, (_, count, _) in KINDS.items():
            if options.kind in (None, kind):
                begun = time.perf_counter()
                numbers = range(count) if options.number is None else [options.number]
                wrong = {number: found for number in numbers if (found := run(kind, number, base))}
                failures += len(wrong)
                rows.append({"kind": kind, "memories": len(numbers), "with a trace left": len(wrong)})
                sys.stdout.write(f"{rows[-1]} {time.perf_counter() - begun:.0f} s {wrong or ''}\n")
                sys.stdout.flush()
    finally:
        shutil.rmtree(base)
    if complete:
        total = {"memories": sum(row["memories"] for row in rows), "with a trace left": failures}
        RESULT.write_text(json.dumps({**total, "kinds": rows, "a large ledger": large}, indent=1) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
