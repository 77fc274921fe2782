"""Results by setting and system, ready to be compared."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from evokey.bench import significance
from evokey.bench.measures import MAIN
from evokey.bench.runs import Result
from evokey.bench.significance import Comparison
from evokey.bench.systems import JUDGED, LIVE, REFERENCE, TRAINED, UNTAUGHT

Row = dict[str, Any]
FIRST = (UNTAUGHT, REFERENCE, "paper", "nudge-n", "nudge-m", *TRAINED, "expansion", LIVE, "bm25s", JUDGED)
"""The order of the systems; others follow by name."""
UNLEARNED = (UNTAUGHT, "bm25s", JUDGED)
"""Systems that learn nothing."""


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """What a comparison is made within."""

    dataset: str
    encoder: str
    protocol: str
    rate: float | None = None
    units: str | None = None
    wrong: int = 0
    noise: float = 0.0
    verifier: str | None = None
    shown: int = 0

    @classmethod
    def of(cls, result: Result) -> Setting:
        return cls(**{one.name: result[one.name] for one in fields(cls) if one.name in result})

    @property
    def how(self) -> str:
        parts = [f"{self.protocol} {self.rate:g}" if self.rate is not None else self.protocol]
        parts += [f"units {self.units}"] if self.units is not None else []
        parts += [f"wrong {self.wrong}"] if self.wrong else []
        parts += [f"noise {self.noise:g}"] if self.noise else []
        parts += [f"shown {self.shown}"] if self.shown else []
        parts += [f"verifier {self.verifier}"] if self.verifier is not None else []
        return ", ".join(parts)


class Grid:
    """Results by setting and system."""

    def __init__(self, found: Iterable[Result]) -> None:
        self._cells: dict[Setting, dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
        for one in found:
            self._cells[Setting.of(one)][one["policy"]].append(one)

    @property
    def settings(self) -> list[Setting]:
        return sorted(self._cells, key=lambda one: (one.protocol, one.rate or 0, one.encoder, one.dataset))

    @property
    def policies(self) -> list[str]:
        return in_order({policy for cells in self._cells.values() for policy in cells})

    def of(self, setting: Setting) -> Mapping[str, list[Result]]:
        cells = self._cells[setting]
        return {policy: cells[policy] for policy in in_order(cells)}

    def mean(self, setting: Setting, policy: str, group: str = "metrics", measure: str = MAIN) -> float | None:
        """Over seeds; None where there is no such result or no such query."""
        found = [one[group][measure] for one in self._cells[setting].get(policy, ()) if one.get(group)]
        return statistics.fmean(found) if found else None

    def by_query(self, setting: Setting, policy: str, seeds: Iterable[int] | None = None) -> dict[str, float]:
        """Each tested query's mean over the seeds that tested it."""
        found = self._cells[setting].get(policy, ())
        return significance.average(one["values"] for one in found if seeds is None or one["seed"] in seeds)

    def seeds(self, setting: Setting, policy: str) -> set[int]:
        return {one["seed"] for one in self._cells[setting].get(policy, ())}

    def compare(self, setting: Setting, one: str, other: str) -> Comparison:
        """Two systems over the seeds that both have."""
        shared = self.seeds(setting, one) & self.seeds(setting, other)
        return significance.compare(self.by_query(setting, one, shared), self.by_query(setting, other, shared))


def in_order(policies: Iterable[str]) -> list[str]:
    place = {policy: number for number, policy in enumerate(FIRST)}
    return sorted(policies, key=lambda policy: (place.get(policy.partition(":")[0], len(FIRST)), policy))
