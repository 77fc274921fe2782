"""The generator's own loss on the gold answer: documents that make the right answer likelier are right.

Loss is the mean negative log-probability of the gold answer's tokens, the lowest over the gold answers. It is asked of
a model that returns log-probabilities (llamacpp), with the documents and without them. The model is a small judge of
facts, but a fair one of what a passage adds: both prompts differ in nothing but the documents.
With SmolLM2 (135M), 25 questions of LoCoMo, one judged passage and three others each, a margin of 1 says yes to 10
with the judged passage and to 1 without it, and 9 of the 10 passages it names are the judged ones. A margin of ½ says
yes to 18 and to 6, and 13 of 17. The margin was chosen on 14 of the 25; on the other 11 it says yes once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol, runtime_checkable

from evokey.errors import InvalidSettings, ServiceFailed
from evokey.llm.prompts import load_packaged
from evokey.types import Attempt, Hit, Message, Ruling, Spent
from evokey.verifiers.rulings import abstain, check, count, first, number_passages, whole

NOTHING = "(none)"


@runtime_checkable
class Scoring(Protocol):
    """A language model that tells how likely it finds a given answer."""

    identity: str

    def logprobs(self, messages: Sequence[Message], answer: str) -> list[float]: ...


class TaskLoss:
    name: ClassVar[str] = "task-loss"
    looks_at: ClassVar[Literal["generation"]] = "generation"

    def __init__(
        self,
        llm: Scoring,
        threshold: float | None = None,
        *,
        margin: float | None = 1.0,
        attribute: bool = True,
        k: int = 5,
        longest: int = 1500,
    ) -> None:
        """Success is a loss at or below the threshold, or lower than without documents by the margin (nats for each
        token); None leaves a way out. attribute: after a success, each document is tried alone, one call each; those
        that gain the margin, and half of what the best one gains, are right. Without it none is named. longest:
        characters of a document."""
        if not isinstance(llm, Scoring):
            raise InvalidSettings(
                f"verifier 'task-loss' needs a model that returns log-probabilities, such as llamacpp, "
                f"not {getattr(llm, 'identity', llm)}"
            )
        count(self.name, k=k, longest=longest)
        check(self.name, threshold=threshold, margin=margin)
        if threshold is None and margin is None:
            raise InvalidSettings("verifier 'task-loss' needs a threshold, a margin, or both")
        self.llm, self.threshold, self.margin = llm, threshold, margin
        self.attribute, self.k, self.longest = attribute, k, longest
        self.prompt = load_packaged(self.name, "verifiers")
        rule = f"{'' if threshold is None else f'{threshold:g}'}/{'' if margin is None else f'{margin:g}'}"
        self.identity = f"task-loss@{k}/{rule}/{llm.identity}/{self.prompt.hash[:12]}"

    def verify(self, attempt: Attempt) -> Ruling:
        """The ruling's score is the loss with the documents: lower is better."""
        golds = [whole(gold) for gold in attempt.expected if gold.strip()]
        if not golds or not attempt.query.strip() or not attempt.hits:
            missing = "expected answer is known" if not golds else "question or document is there"
            return abstain(f"no {missing}")
        try:
            return self._verify(whole(attempt.query), first(attempt.hits, self.k), golds)
        except ServiceFailed as error:
            return abstain(f"{self.llm.identity} did not tell: {error}")

    def _verify(self, query: str, hits: list[Hit], golds: list[str]) -> Ruling:
        loss, without = self.loss(query, hits, golds), math.nan
        if self.margin is not None or self.attribute:
            without = self.loss(query, [], golds)
        if math.isnan(loss) or (self.margin is not None and math.isnan(without)):
            return abstain(f"{self.llm.identity} tells no probability of the answer")
        success = (self.threshold is not None and loss <= self.threshold) or (
            self.margin is not None and without - loss >= self.margin
        )
        tries, grades = 1 + (not math.isnan(without)), dict[str, float]()
        if success and self.attribute:
            tries += len(hits)
            gains = {hit.id: without - self.loss(query, [hit], golds) for hit in hits}
            bar = max(self.margin or 0.0, max(gains.values()) / 2)
            grades = {id: 1.0 for id, gain in gains.items() if gain > 0 and gain >= bar}
        reason = f"loss {loss:.3f} with the documents, {without:.3f} without"
        return Ruling(success, loss, grades, reason, Spent(calls=tries * len(golds)))

    def loss(self, query: str, hits: Sequence[Hit], golds: Sequence[str]) -> float:
        """NaN where the model tells none."""
        messages = self.prompt.fill(query=query, documents=number_passages(hits, self.longest) or NOTHING)
        losses = [_mean(self.llm.logprobs(messages, gold)) for gold in golds]
        return min((loss for loss in losses if not math.isnan(loss)), default=math.nan)


def _mean(logprobs: Sequence[float]) -> float:
    return -sum(logprobs) / len(logprobs) if logprobs else math.nan
