"""Passages → questions → lessons, some passages at a time. Each batch is written whole: an interrupted run loses the
batch under way and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import NamedTuple

from evokey.errors import BudgetSpent, InvalidInput, InvalidSettings, ServiceFailed
from evokey.evolution.policy import Policy, credits_retrieved
from evokey.ledger.ledger import Ledger
from evokey.llm.many import many
from evokey.llm.prompts import load_packaged
from evokey.llm.request import estimated_prompt, price_of
from evokey.loop.components import Components
from evokey.loop.remember import Feedback, Recorder
from evokey.protocols import LLM
from evokey.search.index import Index
from evokey.seeding.confirming import Confirmer, make_confirmer
from evokey.seeding.reading import Source, read_questions
from evokey.seeding.report import Drop, SeedEstimate, SeedReport
from evokey.seeding.targets import Target, Targets
from evokey.types import SYNTHETIC, Completion, Message, Numbers, Spent

PROMPT = load_packaged("questions", "seeding")
BATCH = 4
"""Passages asked about at once, and written together."""
MAX_TOKENS, QUESTION_TOKENS = 512, 30
"""Tokens of a reply at most; and of a question, for the estimate."""
FAILURES = 8
"""Failed calls in a row after which the model is taken to be gone."""
SAMPLED = 32
"""Passages that the estimate is made from."""
NO_MODEL = (
    "to write questions, seed needs a language model, and this memory has none. Name one: "
    'evokey seed --llm \'{"name": "openai", "model": …}\' (any compatible service, a local one too), or '
    "memory.seed(llm=…); evokey llms lists them all"
)


@dataclass(frozen=True, slots=True)
class SeedOptions:
    per_passage: int
    limit: int | None
    confirm: str
    k: int


class Seed(NamedTuple):
    """A confirmed question."""

    question: str
    rank: int | None


class Asked(NamedTuple):
    """What came of a passage."""

    target: Target
    seeds: Sequence[Seed]
    dropped: Counter[Drop]
    spent: Spent


class Seeder:
    def __init__(self, index: Index, recorder: Recorder, components: Components, options: SeedOptions) -> None:
        if components.llm is None:
            raise InvalidSettings(NO_MODEL)
        self.llm: LLM = components.llm
        self.ledger: Ledger = recorder.ledger
        self._index, self._recorder, self._options = index, recorder, options
        self._targets = Targets(index, self.ledger)
        self._confirmer: Confirmer = make_confirmer(options.confirm, index, components, options.k)
        self._verifier = f"seed/{self._confirmer.identity}/{self.llm.identity}/{PROMPT.hash[:12]}"

    def plan(self, among: Numbers | None) -> list[tuple[int, int]]:
        """The passages to ask about (targets.py)."""
        return self._targets.choose(self._options.limit, among)

    def estimate(self, plan: Sequence[tuple[int, int]]) -> SeedEstimate:
        count, per_passage, apart = len(plan), self._options.per_passage, set(self._index.restricted.tolist())
        sample = [estimated_prompt(self._request(one)) for one in self._targets.fetch(plan[:SAMPLED])]
        calls = count * (1 + per_passage * self._confirmer.calls)
        prompt = calls * sum(sample) // max(len(sample), 1)
        answer = count * per_passage * QUESTION_TOKENS * (1 + self._confirmer.calls)
        restricted = sum(number in apart for number, _ in plan)
        money = price_of(self.llm, prompt, answer)
        return SeedEstimate(self.llm.identity, count, restricted, calls, prompt, answer, money)

    def _request(self, target: Target) -> list[Message]:
        return PROMPT.fill(passage=target.text, count=str(self._options.per_passage))

    def run(
        self, plan: Sequence[tuple[int, int]], report: SeedReport, write: Callable[[], AbstractContextManager[None]]
    ) -> Iterator[SeedReport]:
        """The report after each batch. write: a transaction of the memory's."""
        in_a_row = 0
        for start in range(0, len(plan), BATCH):
            forgets, (asked, failures) = self.ledger.forgets.count, self._ask(plan[start : start + BATCH])
            with write():
                if self.ledger.forgets.count == forgets:  # else it may be what was forgotten
                    report = _add(report, self._keep(asked))
            report = replace(report, failed=report.failed + len(failures))
            in_a_row = 0 if asked else in_a_row + len(failures)
            over = next((one for one in failures if isinstance(one, BudgetSpent)), None)
            last = start + BATCH >= len(plan)
            if failures and not report.asked and (over or last or in_a_row >= FAILURES):
                raise failures[-1]
            if over or in_a_row >= FAILURES:
                yield replace(report, stopped=str(over or failures[-1]))
                return
            yield report

    def _ask(self, places: Sequence[tuple[int, int]]) -> tuple[list[Asked], list[ServiceFailed]]:
        """What came of some passages; and the failures, for those of which nothing came."""
        targets = list(self._targets.fetch(places))
        replies = many(self.llm, [self._request(one) for one in targets], parallel=BATCH, max_tokens=MAX_TOKENS)
        pairs = list(zip(targets, replies, strict=True))
        asked = [self._read(target, reply) for target, reply in pairs if isinstance(reply, Completion)]
        return asked, [reply for reply in replies if isinstance(reply, ServiceFailed)]

    def _read(self, target: Target, reply: Completion) -> Asked:
        """The questions of a reply that are confirmed."""
        known = [lesson.query for lesson in self.ledger.lessons.about(target.document.id)]
        found = read_questions(reply.text, Source(target.text, known, PROMPT.words), self._options.per_passage)
        seeds, dropped, spent = list[Seed](), Counter(found.dropped), reply.spent
        for question in found.texts:
            reason, rank, more = self._confirmer.confirm(question, target)
            spent += more
            if reason is None:
                seeds.append(Seed(question, rank))
            else:
                dropped[reason] += 1
        return Asked(target, seeds, dropped, spent)

    def _keep(self, asked: Sequence[Asked]) -> list[Asked]:
        """Make lessons of what was confirmed, and note the passages; those that were changed meanwhile are left out."""
        there = self.ledger.documents.fetch([one.target.number for one in asked])
        kept = [one for one in asked if one.target.number in there]
        for one in kept:
            document, passage = one.target.document.id, one.target.passage
            for seed in one.seeds:
                said = Feedback(seed.question, {document: 1.0}, (), SYNTHETIC, None, self._verifier)
                self._recorder.record(replace(said, passages={document: [passage]}))
        self.ledger.seeded.put([(one.target.document.id, one.target.hash) for one in kept])
        self.ledger.expansions.count(sum((one.spent for one in asked), Spent()))
        return kept


def _add(report: SeedReport, asked: Sequence[Asked]) -> SeedReport:
    seeds = [seed for one in asked for seed in one.seeds]
    dropped = Counter(report.dropped)
    for one in asked:
        dropped.update({reason.value: count for reason, count in one.dropped.items()})
    return replace(
        report,
        asked=report.asked + len(asked),
        kept=report.kept + len(seeds),
        found_first=report.found_first + sum(seed.rank == 1 for seed in seeds),
        dropped=dict(sorted(dropped.items())),
        spent=sum((one.spent for one in asked), report.spent),
    )


def check_seedable(index: Index, policy: Policy) -> None:
    """Refuse memories that cannot learn from questions a model wrote."""
    if index.given is not None:
        raise InvalidInput(
            "this memory takes its vectors from the caller (encoder 'given'), and a written question has none: give "
            "questions and vectors to feedback(…, vector=…, actor='synthetic')"
        )
    if credits_retrieved(policy):
        raise InvalidInput(
            "the policy 'paper' has no guard and counts every lesson the same, so questions that a model wrote would "
            "count like people's: seed a memory with the policy 'guarded'"
        )
