"""`memory.tune`: train the encoders from the lessons, compare, and publish revisions that are better.

lessons → training data (pairs.py) → a trained encoder and its keys (training.py: static.py, neural.py) → the guard
(judging.py) → models/<revision>/ and keys/ (revisions.py) → an epoch that names the revision
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evokey.errors import InvalidSettings
from evokey.evolution.folds import sample
from evokey.evolution.policy import Log
from evokey.evolution.proposing import propose
from evokey.evolution.publishing import Publisher
from evokey.search.retriever import Retriever
from evokey.settings.trust import MODELS
from evokey.tuning.judging import Judge, Verdict
from evokey.tuning.pairs import Parts, split
from evokey.tuning.revisions import TRAINING, Revisions, sweep
from evokey.tuning.training import Candidate, Progress, Trainer, is_tunable
from evokey.types import TunedEncoder, TuneReport, TuningCost

log = logging.getLogger("evokey")
LEAST = 250
"""Questions that must have been taught: a fifth of fewer are too few to decide anything."""
MOST = 10_000
"""Questions that are trained on or compared."""
VALIDATION, HELD_OUT = 0.15, 0.2
"""Shares of the questions that training does not see: they say when it stops, and whether the result is better."""


@dataclass(frozen=True)
class Trial:
    """A trained encoder, and what the guard says of it."""

    candidate: Candidate
    verdict: Verdict
    seconds: float

    @property
    def name(self) -> str:
        return self.candidate.retriever.name

    @property
    def reason(self) -> str:
        quality = self.verdict.all
        better = (
            f"held-out questions {quality.before:.3f} → {quality.after:.3f} (nDCG@10, evolve without tuning → with)"
        )
        return f"{self.name}: {self.verdict.refusal or better}"

    def describe(self, revision: str | None = None) -> TunedEncoder:
        verdict = self.verdict
        apart = verdict.apart(related=True), verdict.apart(related=False)
        return TunedEncoder(
            self.name, revision, verdict.refusal is None, self.reason, verdict.all, *apart, self.seconds
        )


@dataclass(frozen=True)
class Tuner:
    publisher: Publisher
    revisions: Revisions

    def costs(self) -> list[TuningCost]:
        """What encoding all documents again will take, for each encoder that can be trained."""
        base = {one.name: one for one in self._base}
        return [self._trainer().cost(base[name]) for name in self.find_tunable()]

    def tune(self, *, dry_run: bool, progress: Progress) -> TuneReport:
        """Train, compare, and publish what is better. dry_run: write nothing."""
        ledger, names = self.publisher.ledger, self.find_tunable()
        taught = self.publisher.composer.log(ledger.lessons.last, ledger.lessons.find_held())
        report = TuneReport(False, "", self.publisher.current, len(taught.taught.queries), [])
        if (refusal := self._refuse(taught)) is not None:
            return replace(report, reason=refusal)
        for cost in self.costs():
            log.info("tune: %s", cost.text)
        if not dry_run:
            sweep(self.revisions.folder, {*ledger.epochs.revisions, TRAINING})
        trials = self._try_each(names, taught, self._trainer(progress))
        reason = "; ".join(one.reason for one in trials)
        report = replace(report, reason=reason, encoders=[one.describe() for one in trials])
        better = [one for one in trials if one.verdict.refusal is None]
        if dry_run:
            report = replace(report, reason=f"dry run: {reason}")
        elif better:
            report = self._publish(better, taught, report)
        shutil.rmtree(self._scratch, ignore_errors=True)
        return report

    @property
    def _scratch(self) -> Path:
        """An interrupted training goes on there; nothing stays when it is done, and forget removes it too."""
        return self.revisions.folder / MODELS / TRAINING

    def _trainer(self, progress: Progress = lambda stage, share: None) -> Trainer:
        publisher = self.publisher
        return Trainer(publisher.index, publisher.ledger, self.revisions.settings, progress, self._scratch)

    def find_tunable(self) -> list[str]:
        """Retrievers whose encoders can be trained; an error that says what is possible if there are none."""
        if self.publisher.ledger.shared:
            raise InvalidSettings(
                "a memory in a database cannot be tuned: weights are files of one directory. Copy it into a directory "
                "(evokey migrate), and tune it there"
            )
        stores = {one.name: (one.store or {}).get("name") for one in self.revisions.settings.retrievers}
        found = [one.name for one in self._base if is_tunable(one) and stores[one.name] == "flat"]
        if not found:
            here = ", ".join(f"{name} in store {store}" for name, store in stores.items())
            raise InvalidSettings(
                f"nothing here can be tuned ({here}): tune trains wordllama and sentence-transformers, with keys in "
                f"the memory's own directory (store 'flat')"
            )
        return found

    def _refuse(self, taught: Log) -> str | None:
        """Why nothing is trained; None: it is."""
        count, publisher = len(set(taught.taught.queries) - taught.taught.synthetic), self.publisher
        if count < LEAST:
            return f"{count} questions were taught; tuning needs {LEAST}, for it must not see all of them"
        tuned = [one for one in publisher.ledger.epochs.all() if one.kind == "tune" and one.revisions]
        if tuned and tuned[-1].revisions == publisher.revisions:
            same = (tuned[-1].lessons_to, tuned[-1].omitted) == (taught.up_to, taught.omitted)
            return f"nothing new since epoch {tuned[-1].number} was tuned" if same else None
        return None

    @property
    def _base(self) -> Sequence[Retriever]:
        """Training begins with the encoders of the settings, whichever revisions searches use."""
        return self.publisher.index.with_revisions({})

    def divide(self, taught: Log) -> Parts:
        """The questions by what they are for. Those that a language model wrote are trained on, and say nothing about
        what people find."""
        parts = split(sample(taught.taught.queries, MOST), VALIDATION, HELD_OUT)
        return replace(parts, validation=parts.validation - taught.taught.synthetic)

    def _try_each(self, names: Sequence[str], taught: Log, trainer: Trainer) -> list[Trial]:
        """One encoder after the other, each beside those that were found better before it."""
        parts, found, best = self.divide(taught), list[Trial](), list(self._base)
        judge = Judge(self.publisher, taught, parts.held_out)
        for name in names:
            at = next(place for place, one in enumerate(best) if one.name == name)
            begin = time.perf_counter()
            candidate = trainer.train(best[at], taught.taught, parts)
            tried = [*best[:at], candidate.retriever, *best[at + 1 :]]
            trainer.progress(f"comparing {name}", 0.0)
            verdict = judge.compare(best, tried)
            trainer.progress(f"comparing {name}", 1.0)
            found.append(Trial(candidate, verdict, time.perf_counter() - begin))
            best = tried if verdict.refusal is None else best
        return found

    def _publish(self, better: Sequence[Trial], taught: Log, report: TuneReport) -> TuneReport:
        """Weights and keys first, then the epoch that names them: after a crash between the two they are swept away."""
        publisher, made = self.publisher, {one.name: self._write(one.candidate) for one in better}
        revisions = {name: one.revision for name, one in made.items()}
        learned = propose(publisher.setting([made.get(one.name, one) for one in self._base]), taught, keep=False)
        told = replace(
            report, encoders=[replace(one, revision=revisions.get(one.retriever)) for one in report.encoders]
        )
        with publisher.ledger.write():
            publisher.ledger.epochs.ask(taught.up_to, taught.omitted)
            epoch = publisher.make_epoch("tune", learned, taught.up_to, taught.omitted)
            written = {**epoch.report, "reason": report.reason, "tuned": report.to_dict()["encoders"]}
            number = publisher.ledger.epochs.append(replace(epoch, revisions=revisions, report=written))
        log.info("epoch %d: %s", number, report.reason)
        return replace(told, published=True, epoch=number)

    def _write(self, candidate: Candidate) -> Retriever:
        """A revision on disk, weights and keys; the retriever that searches with it."""
        name = candidate.retriever.name
        identity = next(one for one in self._base if one.name == name).encoder.identity
        with self.revisions.write(candidate.kind, name, identity, candidate.seen) as (revision, folder):
            candidate.save(folder)
        return self._write_keys(candidate, self.revisions.open(name, revision))

    def _write_keys(self, candidate: Candidate, opened: Retriever) -> Retriever:
        live = self.publisher.index.live
        opened.store.open(self.publisher.ledger.writers)
        opened.store.follow(live, live.tolist(), ())
        opened.store.write(candidate.retriever.base.fetch(live))
        opened.store.flush(force=True)
        return opened.freeze(live)
