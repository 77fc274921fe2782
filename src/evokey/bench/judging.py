"""Searched questions that nobody has judged, judged by a language model: an answer from what both rankings found, and
the memory's verifier on it. What an accepted answer cites is right; other questions tell nothing, and are left out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evokey import settings as settings_
from evokey.bench.own import DEPTH, Bench, Effect, OwnReport, describe, effect
from evokey.errors import ServiceFailed
from evokey.evolution.folds import sample
from evokey.evolution.ndcg import ndcg
from evokey.loop.components import Components
from evokey.registry import Described
from evokey.types import Attempt, Hit

READ = 5
"""Documents of each ranking that the model reads."""
CALLS = 3
"""For each question: an answer, and its grade with the documents in both orders."""


@dataclass(frozen=True)
class TrafficJudge:
    bench: Bench
    components: Components

    @classmethod
    def of(cls, bench: Bench, llm: Described | None) -> TrafficJudge | None:
        """By a language model, or by the memory's own; None where there is none."""
        memory = bench.memory
        if llm is None and memory.settings.llm is None:
            return None
        parts = {"verifier": "judge"} if llm is None else {"verifier": "judge", "llm": llm}
        settings = settings_.change(memory.settings, **parts)
        return cls(bench, Components(settings, memory.folder, memory.ledger, time.time))

    @property
    def model(self) -> str:
        return "" if self.components.llm is None else self.components.llm.identity

    def choose(self, most: int) -> list[str]:
        """The questions to judge."""
        return sample([one for one in self.bench.memory.traffic() if one not in self.bench.grades], most)

    def add(self, report: OwnReport, questions: Sequence[str]) -> OwnReport:
        """The report of a bench that has run, with what learning does to these questions."""
        found = [scores for query in questions if (scores := self._judge(query)) is not None]
        name = self.model
        if not found:
            told = f"of {len(questions)} searched questions, {name} could judge none"
            return replace(report, judge=name, verdicts=(*report.verdicts, told))
        result: Effect = effect(*np.array(found).T)
        told = f"searched questions, of which {name} could judge {len(found)} of {len(questions)}: {describe(result)}"
        return replace(report, judged_traffic=result, judge=name, verdicts=(*report.verdicts, told))

    def _judge(self, query: str) -> tuple[float, float] | None:
        """nDCG@10 before and after; None where the model cannot tell."""
        before, after = (one.rank(query, DEPTH).numbers.tolist() for one in (self.bench.untaught, self.bench.taught))
        there = self.bench.memory.ledger.documents.fetch({*before, *after})
        read = list(dict.fromkeys(number for pair in zip(before, after, strict=False) for number in pair))[: 2 * READ]
        hits = tuple(Hit(there[number].id, 1.0, there[number]) for number in read if number in there)
        try:
            answer = self.components.answering().answer(query, hits[:READ])
            attempt = Attempt(query, hits, answer)
            ruling = self.components.verifier(attempt).verify(attempt)
        except ServiceFailed:
            return None
        right = {number: ruling.grades.get(one.id, 0.0) for number, one in there.items()}
        right = {number: grade for number, grade in right.items() if grade > 0}
        return (ndcg(before, right), ndcg(after, right)) if ruling.success and right else None
