"""The guard of tuning: is what evolve reaches with a tuned encoder better than what it reaches without?

Both learn the same lessons, without those on the held-out questions, and are asked these. Training has not seen them,
nor wordings that share almost all their words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evokey.evolution.choosing import LARGEST_LOSS, errors_behind
from evokey.evolution.ndcg import ndcg
from evokey.evolution.policy import Log
from evokey.evolution.proposing import propose
from evokey.evolution.publishing import Publisher
from evokey.search.retriever import Retriever
from evokey.search.view import View
from evokey.types import Quality, Scores

ENOUGH = 1.0
"""Standard errors by which held-out questions must do better."""


@dataclass(frozen=True)
class Verdict:
    """nDCG@10 of the held-out questions, with the encoder as it was and with the tuned one."""

    before: Scores
    after: Scores
    related: NDArray[np.bool_]
    """Which of them share a right document with a question that was taught."""

    @property
    def all(self) -> Quality:
        return _quality(self.before, self.after)

    def apart(self, *, related: bool) -> Quality | None:
        """Of those that are related to lessons, or of those that are not; None if there are none."""
        among = self.related == related
        return _quality(self.before[among], self.after[among]) if among.any() else None

    @property
    def refusal(self) -> str | None:
        """Why the tuned encoder is not used; None: it is better, and neither group is worse."""
        if errors_behind(self.after, self.before) < ENOUGH:
            return f"held-out questions {self.all.before:.3f} → {self.all.after:.3f}: not better by a standard error"
        for related, name in ((True, "related"), (False, "unrelated")):
            found = self.apart(related=related)
            if found is not None and found.after < (1 - LARGEST_LOSS) * found.before:
                return f"{name} held-out questions {found.before:.3f} → {found.after:.3f}: worse"
        return None


def _quality(before: Scores, after: Scores) -> Quality:
    return Quality(float(before.mean()), float(after.mean()), len(after))


@dataclass(frozen=True)
class Judge:
    publisher: Publisher
    log: Log
    """All lessons."""
    held_out: Collection[str]
    """Questions that training has not seen."""

    @property
    def asked(self) -> Sequence[str]:
        """Those of them that people asked."""
        return sorted(set(self.held_out) - self.log.taught.synthetic)

    def compare(self, before: Sequence[Retriever], after: Sequence[Retriever]) -> Verdict:
        return Verdict(self._ask(before), self._ask(after), self._related)

    @property
    def _related(self) -> NDArray[np.bool_]:
        grades, apart = self.log.taught.grades, self.held_out
        touched = set[int]().union(*(documents for query, documents in grades.items() if query not in apart))
        return np.array([bool(touched & grades[query].keys()) for query in self.asked], bool)

    def _ask(self, retrievers: Sequence[Retriever]) -> Scores:
        """What held-out questions find after the other lessons were learned."""
        publisher, apart = self.publisher, self.held_out
        omitted = self.log.omitted | {vote.lesson for vote in self.log.votes if vote.query in apart}
        rest = publisher.composer.log(self.log.up_to, omitted)
        report = propose(publisher.setting(retrievers), rest, keep=False)
        epoch = publisher.make_epoch("evolve", report, self.log.up_to, omitted)
        overlays = publisher.composer.compose(epoch, retrievers)
        view, grades = View(retrievers, publisher.index.fusion, overlays), self.log.taught.grades
        return np.array([ndcg(view.rank(query, 10).numbers, grades[query]) for query in self.asked])
