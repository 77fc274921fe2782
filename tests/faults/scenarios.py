"""What the killed processes were doing: short lives of small memories, together covering every writing verb."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lensed  # noqa: F401  a policy of its own

import evokey
from evokey.ledger.sqlite import database as sqlite

Step = tuple[str, Mapping[str, Any]]
"""A verb and its arguments."""
SECRET = "quokka"
"""A word that only the lessons have that are forgotten later."""

THINGS = "river castle engine violin glacier lantern orchard compass harbour mirror saddle thimble".split()
DOINGS = "repair paint carry measure polish borrow inherit photograph".split()
NICKNAMES = (
    "bigwet stonepile grumbler squeaker slowice glowpot fruityard pointer boatbed lookback seat fingerhat".split()
)


def documents(start: int, stop: int, note: str = "") -> list[dict[str, Any]]:
    return [
        {
            "id": f"d{number}",
            "title": f"On the {THINGS[number % 12]}",
            "text": f"How to {DOINGS[number % 8]} a {THINGS[number % 12]} in {number} days {note}",
            "metadata": {"kind": THINGS[number % 12], "even": number % 2 == 0},
        }
        for number in range(start, stop)
    ]


def lesson(number: int, **more: Any) -> dict[str, Any]:
    """A question in words the documents do not have; those on one document share a word."""
    query = f"what should I {DOINGS[number % 5]} next, {NICKNAMES[number % 12]} or {number}"
    return {"query": query, "relevant": [f"d{number % 12}"], **more}


def secret(number: int) -> dict[str, Any]:
    return {"query": f"{SECRET} {NICKNAMES[number]}", "relevant": [f"d{number}"], "actor": "mallory"}


def add(start: int, stop: int, note: str = "") -> Step:
    return "add", {"documents": documents(start, stop, note)}


def feedback(number: int, **more: Any) -> Step:
    return "feedback", lesson(number, **more)


OPEN, CLOSE, EVOLVE = ("open", {}), ("close", {}), ("evolve", {})
LOSE_KEYS, MAKE_OLD = ("lose_keys", {}), ("make_old", {})
MANY: Step = ("feedback_many", {"lessons": [*(lesson(number) for number in range(20)), *map(secret, range(4))]})
FORGET: Step = ("forget", {"actor": "mallory"})
ASKED = (
    {"query": "repair the castle engine"},
    {"query": "how many days for a violin"},
    {"query": "squeaker"},
    {"query": lesson(1)["query"]},
    {"query": lesson(2)["query"], "k": 3},
    {"query": secret(1)["query"]},
    {"query": "paint", "where": {"even": True}},
)
PROBE = (add(90, 92, "late"), feedback(3, relevant=["d90"]), EVOLVE)


@dataclass(frozen=True)
class Scenario:
    steps: Sequence[Step]
    encoder: str | None = "bm25"
    policy: str = "guarded"
    asked: Sequence[Mapping[str, Any]] = ASKED
    probe: Sequence[Step] = PROBE
    """Steps that any recovered memory must still be able to take."""


def _axis(number: int) -> list[float]:
    return [1.0 if at == number % 4 else 0.1 * number for at in range(4)]


def _given(start: int, stop: int) -> Step:
    return "add", {"documents": documents(start, stop), "vectors": [_axis(number) for number in range(start, stop)]}


def _given_feedback(number: int) -> Step:
    return "feedback", {**secret(number), "vector": _axis(number + 1)}


SCENARIOS = {
    "make": Scenario([OPEN, CLOSE, OPEN, add(0, 3), CLOSE]),
    "upgrade": Scenario([MAKE_OLD, OPEN, CLOSE, OPEN, add(0, 3), CLOSE]),
    "add": Scenario([OPEN, add(0, 3), add(3, 8), add(8, 9), add(9, 21), add(21, 23), CLOSE, OPEN, add(23, 27), CLOSE]),
    "replace": Scenario(
        [
            OPEN,
            add(0, 12),
            feedback(1),
            feedback(2),
            EVOLVE,
            add(1, 4, "anew"),
            EVOLVE,
            CLOSE,
            OPEN,
            add(1, 2),
            ("add", {"documents": [{**documents(5, 6)[0], "metadata": {"even": True}}]}),
            EVOLVE,
            CLOSE,
        ]
    ),
    "delete": Scenario(
        [
            OPEN,
            add(0, 14),
            feedback(2),
            feedback(3),
            EVOLVE,
            ("delete", {"ids": ["d2", "d7"]}),
            EVOLVE,
            add(2, 3),
            ("delete", {"ids": [f"d{number}" for number in range(8, 14)]}),
            add(20, 25),
            CLOSE,
        ]
    ),
    "teach": Scenario(
        [
            OPEN,
            add(0, 10),
            feedback(1, units=["a gentle pull", "squeaky"]),
            feedback(2, irrelevant=["d5"]),
            EVOLVE,
            ("feedback", {"query": "squeaker", "relevant": {"d3": 2, "d4": 0.5}}),
            EVOLVE,
            EVOLVE,
            CLOSE,
        ]
    ),
    "crossfit": Scenario([OPEN, add(0, 30), MANY, EVOLVE, feedback(21), EVOLVE, add(30, 33), EVOLVE, CLOSE]),
    "forget": Scenario(
        [
            OPEN,
            add(0, 12),
            feedback(1, actor="ann"),
            ("feedback", secret(1)),
            ("feedback", secret(2)),
            EVOLVE,
            FORGET,
            feedback(3),
            EVOLVE,
            ("forget", {"document": "d1"}),
            ("forget", {"query": lesson(3)["query"]}),
            CLOSE,
        ]
    ),
    "forget-crossfit": Scenario([OPEN, add(0, 24), MANY, EVOLVE, FORGET, CLOSE, OPEN, feedback(22), EVOLVE, CLOSE]),
    "travel": Scenario(
        [
            OPEN,
            add(0, 12),
            feedback(1),
            EVOLVE,
            ("protect", {"query": "castle", "relevant": ["d1"]}),
            feedback(2),
            EVOLVE,
            ("rollback", {"epoch": 1}),
            EVOLVE,
            ("release", {"lessons": [2]}),
            EVOLVE,
            ("hold", {"lessons": [1]}),
            EVOLVE,
            ("protect", {"query": "castle", "relevant": []}),
            ("rollback", {"epoch": 0}),
            CLOSE,
        ]
    ),
    "rebuild": Scenario([OPEN, add(0, 9), add(9, 20), CLOSE, LOSE_KEYS, OPEN, CLOSE, OPEN, add(20, 21), CLOSE]),
    "hybrid": Scenario(
        [
            OPEN,
            add(0, 10),
            add(10, 13),
            feedback(1),
            ("feedback", secret(2)),
            EVOLVE,
            ("delete", {"ids": ["d1", "d4"]}),
            add(1, 2),
            add(5, 7, "anew"),
            FORGET,
            CLOSE,
            LOSE_KEYS,
            OPEN,
            feedback(6),
            EVOLVE,
            CLOSE,
        ],
        encoder=None,
    ),
    "hybrid-crossfit": Scenario([OPEN, add(0, 24), MANY, EVOLVE, FORGET, CLOSE], encoder=None),
    "lens": Scenario(
        [OPEN, add(0, 24), MANY, EVOLVE, ("delete", {"ids": ["d20"]}), FORGET, feedback(22), EVOLVE, CLOSE],
        encoder="wordllama",
        policy="lensed",
    ),
    "given": Scenario(
        [OPEN, _given(0, 6), _given_feedback(1), _given_feedback(2), EVOLVE, _given(6, 8), FORGET, CLOSE],
        encoder="given",
        asked=[{"query": f"{number}", "vector": _axis(number)} for number in range(4)],
        probe=[_given(90, 92), ("feedback", {**lesson(3, relevant=["d90"]), "vector": _axis(3)}), EVOLVE],
    ),
}


class Stage:
    """A memory in a folder, and a clock that stands still, so that equal histories have equal ledgers."""

    def __init__(self, folder: Path, encoder: str | None, policy: str = "guarded") -> None:
        self._folder, self._encoder, self._policy = folder, encoder, policy

    def take(self, step: Step) -> None:
        verb, given = step
        if verb == "open":
            self.memory = evokey.open(self._folder, encoder=self._encoder, policy=self._policy, now=lambda: 0.0)
        elif verb == "lose_keys":
            shutil.rmtree(self._folder / "keys")
        elif verb == "make_old":
            self._make_old()
        else:
            getattr(self.memory, verb)(**given)

    def _make_old(self) -> None:
        """A ledger as the first version made it: opening it brings it up to date."""
        self._folder.mkdir(exist_ok=True)
        with patch.object(sqlite, "migrations", return_value=sqlite.migrations()[:1]):
            sqlite.SQLite(self._folder).close()
