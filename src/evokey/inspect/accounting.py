"""What a memory has learned, accounted for: who taught, who learned most, how far keys moved, who became a hub.

**Shares.** Credit is a verdict "right" that holds today, one for each query, document and actor; of actors and queries
also a verdict "wrong", where wrong documents are pushed away. Whether a few dominate
is told by the effective number, 1/Σp² (ten equal actors: 10; one with nearly all: close to 1), and by Gini's
coefficient. Displacement and hubness are defined in the files of these names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evokey.evolution.folds import sample
from evokey.evolution.proposing import name_left_out
from evokey.inspect.displacement import Displacement, find_moves, sum_up
from evokey.inspect.hubness import Hubness, Reader, count_found
from evokey.ledger.lessons import Credit
from evokey.memory import Memory
from evokey.search.view import Overlays

ASKED = 400
"""Queries of each kind that hubness asks, at the most."""
NAMED = 10
"""Documents, actors, queries and hubs that are named."""


@dataclass(frozen=True, slots=True)
class Pupil:
    """A document and what it has learned."""

    document: str
    title: str
    taught: int
    """Texts it was taught: queries and units."""
    moved: Mapping[str, float]
    """By retriever: 1 − cosine (dense), or the mass of learned weight."""


@dataclass(frozen=True, slots=True)
class Share:
    name: str | None
    """None: nobody signed."""
    share: float


@dataclass(frozen=True, slots=True)
class Concentration:
    """How the credit is spread over actors, queries or documents."""

    credits: int
    count: int
    effective: float
    """1/Σp²: as many equal ones would be as concentrated."""
    gini: float
    """0 when all have the same, towards 1 when one has all."""
    largest: Sequence[Share]
    shares: Sequence[float]
    """All of them, the largest first."""


@dataclass(frozen=True, slots=True)
class Account:
    epoch: int
    documents: int
    touched: int
    pupils: Sequence[Pupil]
    actors: Concentration
    queries: Concentration
    credited: Concentration
    """Documents, by the credit they were given."""
    displacements: Sequence[Displacement]
    taught: Hubness
    neutral: Hubness
    together: Hubness
    actors_left_out: Mapping[str | None, int]
    """Actors whose lessons are not learned, because they harm what others ask, and how many lessons of each."""
    documents_left_out: Mapping[str, int]
    """Documents that do not learn from some lessons, because they would enter too many other questions, and how
    many."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def report(memory: Memory, *, asked: int = ASKED, named: int = NAMED) -> Account:
    """The account of what the current epoch has learned. Nothing is written."""
    with memory.index.steady():
        return _report(memory, asked, named)


def _report(memory: Memory, asked: int, named: int) -> Account:
    stats = memory.stats()  # brings the index up to the ledger
    index, epoch = memory.index, memory.epochs()[stats.epoch]
    view = index.view(epoch.number)
    after = view.overlays
    log = memory.composer.log(epoch.lessons_to, epoch.omitted, epoch.left_out)
    verdicts = {(vote.lesson, number) for vote in log.votes for number in vote.verdicts} if epoch.choice else set()
    apart = frozenset(index.restricted.tolist())
    said = latest_verdicts(memory.ledger.lessons.credits(epoch.lessons_to, epoch.omitted))
    said = [one for one in said if (one.lesson, one.number) in verdicts or one.number in apart]
    credits = [one for one in said if one.grade > 0]
    heard = said if any(choice.demotion for choice in epoch.choice.values()) else credits
    reader = Reader(memory, index)
    touched = sorted({number for overlay in after.of.values() for number in overlay.all_documents.tolist()})
    queries = sample(list({credit.query for credit in credits}), asked)
    found = {"taught": count_found(queries, view), "neutral": count_found(reader.titles(asked), view)}
    learned = {number: _texts(after, number) for number in touched}
    moves = {one.name: find_moves(one, after.of[one.name]) for one in view.retrievers}
    moved = {number: {name: one.moved.get(number, 0.0) for name, one in moves.items()} for number in touched}
    best = sorted(touched, key=lambda number: (-learned[number], -sum(moved[number].values()), number))[:named]
    titles = reader.documents(best)
    numbered = Counter(credit.number for credit in credits)
    together = [a + b for a, b in zip(found["taught"], found["neutral"], strict=True)]
    actors, documents = name_left_out(log)
    return Account(
        epoch=epoch.number,
        documents=stats.documents,
        touched=len(touched),
        pupils=[Pupil(titles[one].id, titles[one].title, learned[one], moved[one]) for one in best if one in titles],
        actors=concentration(Counter(credit.actor for credit in heard), named),
        queries=concentration(Counter(" ".join(credit.query.split()).casefold() for credit in heard), named),
        credited=concentration(Counter(reader.ids(numbered)), named),
        displacements=[sum_up(one, after.of[one.name], moves[one.name]) for one in view.retrievers],
        taught=reader.hubness(found["taught"], learned, named),
        neutral=reader.hubness(found["neutral"], learned, named),
        together=reader.hubness(together, learned, named),
        actors_left_out=actors,
        documents_left_out=documents,
    )


def latest_verdicts(credits: Iterable[Credit]) -> list[Credit]:
    """The verdicts that count: of each actor, on a query and document, the latest, if it was not taken back."""
    latest = {(one.query, one.number, one.actor): one for one in credits}
    return [one for one in latest.values() if one.grade]


def concentration(counts: Mapping[Any, int], named: int = NAMED) -> Concentration:
    order = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    total = sum(counts.values())
    shares = np.array([count for _, count in order], np.float64) / max(total, 1)
    ranks = np.arange(len(shares), 0, -1)
    return Concentration(
        credits=total,
        count=len(shares),
        effective=float(1 / (shares**2).sum()) if total else 0.0,
        gini=float(2 * (ranks * shares).sum() / len(shares) - (len(shares) + 1) / len(shares)) if total else 0.0,
        largest=[Share(name, count / total) for name, count in order[:named]],
        shares=shares.tolist(),
    )


def _texts(overlays: Overlays, number: int) -> int:
    """How many texts a document was taught."""
    return max(len(set(overlay.part(number).find_texts(number)[0].tolist())) for overlay in overlays.of.values())
