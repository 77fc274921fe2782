"""Trains the gate: from held-out queries, of which it is known whether the other folds taught one of their documents,
and from rewordings of taught queries, which are about something taught."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evokey.evolution.folds import FOLDS, fold_of
from evokey.evolution.openings import CrossFitted, Gate
from evokey.search.gate import probability
from evokey.types import Scores

RIDGE = 1.0
ROUNDS = 30
CONSTANT = 1e-6
"""How little the constant is held back by the ridge."""
DIGITS = 6
ALIKE = 1e-6
"""A signal that differs by less is the same for all questions, and says nothing: its slope is 0."""


class Asked(Protocol):
    """Some queries, as a trial asks them."""

    @property
    def queries(self) -> Sequence[str]: ...

    @property
    def related(self) -> NDArray[np.bool_]:
        """Which of them are about something taught."""
        ...

    def signals(self, variant: Any, /, *, as_unrelated: bool = False) -> Scores:
        """What the gate sees of each; variant: a lens, or whatever else the signals depend on."""
        ...


class Gates(NamedTuple):
    whole: Gate
    held_out: Sequence[CrossFitted]
    """Of held-out queries, fold by fold."""
    reworded: CrossFitted


class Examples(NamedTuple):
    signals: Scores
    labels: NDArray[np.bool_]
    """Whether it is about something taught."""


def train(folds: Sequence[Asked], rewordings: Asked, variant: Any) -> Gates:
    held_out, again = [_examples(trial, variant) for trial in folds], rewordings.signals(variant)
    own = np.array([fold_of(query.rpartition("\n")[0]) for query in rewordings.queries], np.int64)

    def fit_without(fold: int | None) -> Gate:
        kept = again if fold is None else again[own != fold]
        some = [held_out[at] for at in range(FOLDS) if at != fold]
        signals = np.concatenate([*(one.signals for one in some), kept])
        return fit(signals, np.concatenate([*(one.labels for one in some), np.ones(len(kept), bool)]))

    gates = [fit_without(fold) for fold in range(FOLDS)]
    found = [_judge(gate, trial, variant) for gate, trial in zip(gates, folds, strict=True)]
    judged = [_judge(gate, rewordings, variant) for gate in gates]
    at = np.arange(len(own))
    reworded = [np.array([one[kind] for one in judged]).reshape(FOLDS, -1)[own, at] for kind in (0, 1)]
    return Gates(fit_without(None), found, CrossFitted(*reworded))


def _examples(trial: Asked, variant: Any) -> Examples:
    """Each held-out query; one that is related a second time, as if nobody had taught anything about its documents."""
    related = trial.related
    apart = trial.signals(variant, as_unrelated=True)[related]
    labels = np.concatenate([related, np.zeros(len(apart), bool)])
    return Examples(np.concatenate([trial.signals(variant), apart]), labels)


def _judge(gate: Gate, trial: Asked, variant: Any) -> CrossFitted:
    return CrossFitted(*(probability(gate, trial.signals(variant, as_unrelated=one)) for one in (False, True)))


def fit(signals: Scores, labels: NDArray[np.bool_]) -> Gate:
    """Logistic regression with a ridge, by Newton's method; wide open where nothing tells questions apart."""
    if not len(labels) or labels.all() or not labels.any():
        constant = 30.0 if not len(labels) or labels.all() else -30.0
        return (constant, *([0.0] * signals.shape[1]))
    mean, spread = signals.mean(axis=0), signals.std(axis=0)
    scale = np.where(spread > ALIKE, spread, np.inf)
    design = np.column_stack([np.ones(len(signals)), (signals - mean) / scale])
    ridge = RIDGE * np.r_[CONSTANT, np.ones(signals.shape[1])]
    weights = np.zeros(1 + signals.shape[1])
    for _ in range(ROUNDS):
        guess = probability(weights, design[:, 1:])
        curvature = design.T @ (design * (guess * (1 - guess))[:, None]) + np.diag(ridge)
        step = np.linalg.solve(curvature, design.T @ (guess - labels) + ridge * weights)
        weights = weights - step
        if np.abs(step).max() < 1e-8:
            break
    slopes = weights[1:] / scale
    found = [weights[0] - slopes @ mean, *slopes]
    return tuple(round(float(one), DIGITS) for one in found)
