"""What a memory has learned, accounted for: who taught, who learned most, how far keys moved, who became a hub.

**Shares.** Credit is a verdict "right" that holds today, one for each query, document and actor; of actors and queries
also a verdict "wrong", where wrong documents are pushed away. Whether a few dominate
is told by the effective number, 1/Σp² (ten equal actors: 10; one with nearly all: close to 1), and by Gini's
coefficient.

**Displacement and its bound.** A dense key is k = normalise(k⁰ + λV), |k⁰| = 1, V = Σ αₑ e over unit texts e. So
|λV| ≤ m = λ Σ |αₑ|, and m < λ + γ under the guarded policy: what was taught weighs less than 1 together, and what
speaks against a document, αₑ < 0, less than γ/λ. Two bounds hold for 1 − cos(k⁰, k):

- by mass: a vector no longer than m < 1, added to a unit vector, turns it by arcsin m at most (when the sum is tangent
  to the sphere of radius m around k⁰): 1 − √(1 − m²). Beyond m = 1, length alone bounds nothing: 2, the opposite.
- by direction: k is a positive combination of k⁰ and V, so it lies on the arc between them, and never goes farther
  than V itself, the mean of what was taught: 1 − cos(k⁰, V). This holds for every λ.

A document's bound is the smaller one. Sparse keys are not normalised: their displacement is the mass itself, m ≤ λ + γ.

**Hubness.** N₁₀ is how often a document is among the first ten, over the taught queries and over neutral ones (titles
of documents spread evenly over the collection), before teaching and after. Where few documents are found by everything,
the skewness of N₁₀ is high; a memory that makes hubs of taught documents would raise it for neutral queries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evokey.errors import UnknownComponent
from evokey.evolution.folds import sample
from evokey.evolution.proposing import name_left_out
from evokey.ledger.lessons import Credit
from evokey.memory import Memory
from evokey.search.index import Index
from evokey.search.overlay import Overlay
from evokey.search.retriever import Retriever
from evokey.search.view import Overlays, View
from evokey.types import Choice, Document, Scores

K = 10
ASKED = 400
"""Queries of each kind that hubness asks, at the most."""
NAMED = 10
"""Documents, actors, queries and hubs that are named."""
WORDS = 12
"""Words of a text that stand for a title where there is none."""
ROUNDING = 1e-6


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
class Displacement:
    """How far one retriever's keys have moved, beside how far they could have."""

    retriever: str
    kind: str
    choice: Choice
    documents: int
    median: float
    largest: float
    bound: float
    """What no document can pass, by λ and γ alone."""
    within: bool
    """Whether every document keeps to its own bound."""
    moved: Sequence[float]
    bounds: Sequence[float]
    """Of each touched document, in the same order: by increasing displacement."""


@dataclass(frozen=True, slots=True)
class Hub:
    document: str
    title: str
    before: int
    after: int
    taught: int


@dataclass(frozen=True, slots=True)
class Point:
    """So many documents that are found so often before and after."""

    before: int
    after: int
    touched: bool
    documents: int


@dataclass(frozen=True, slots=True)
class Hubness:
    """N₁₀ of all documents over some queries, before teaching and after."""

    queries: int
    skewness_before: float
    skewness_after: float
    largest_before: int
    largest_after: int
    never_before: float
    """Share of the documents that no query finds among its first ten."""
    never_after: float
    hubs: Sequence[Hub]
    points: Sequence[Point]


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
    found = {kind: _found(texts, view) for kind, texts in _asked(reader, queries, asked).items()}
    learned = {number: _texts(after, number) for number in touched}
    moves = {one.name: _moves(one, after.of[one.name]) for one in view.retrievers}
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
        displacements=[_displacement(one, after.of[one.name], moves[one.name]) for one in view.retrievers],
        taught=reader.hubness(found["taught"], learned, named),
        neutral=reader.hubness(found["neutral"], learned, named),
        together=reader.hubness(together, learned, named),
        actors_left_out=actors,
        documents_left_out=documents,
    )


def displacements(memory: Memory) -> list[Displacement]:
    """How far the current epoch has moved each retriever's keys."""
    epoch = memory.stats().epoch
    view = memory.index.view(epoch)
    taught = [(one, view.overlays.of[one.name]) for one in view.retrievers]
    return [_displacement(one, overlay, _moves(one, overlay)) for one, overlay in taught]


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


def by_mass(mass: Scores) -> Scores:
    """How far 1 − cos can go when a vector no longer than this is added to a unit vector."""
    return np.where(mass < 1, 1 - np.sqrt(np.maximum(1 - mass**2, 0)), np.where(mass > 1, 2.0, 1.0))


def skewness(counts: Scores) -> float:
    """The third standardised moment; 0 where all are equal."""
    deviations = counts - counts.mean() if len(counts) else counts
    spread = float(np.sqrt((deviations**2).mean())) if len(counts) else 0.0
    return float((deviations**3).mean() / spread**3) if spread else 0.0


def _texts(overlays: Overlays, number: int) -> int:
    """How many texts a document was taught."""
    return max(len(set(overlay.part(number).taught(number)[0].tolist())) for overlay in overlays.of.values())


@dataclass(frozen=True, slots=True)
class Moves:
    """Of each touched document its farthest key: the displacement, and the bound of its own."""

    moved: Mapping[int, float]
    bounds: Mapping[int, float]


def _moves(retriever: Retriever, overlay: Overlay) -> Moves:
    """Of both parts."""
    parts = [_moves_of(retriever, part) for part in overlay.parts]
    moved = {number: far for part in parts for number, far in part.moved.items()}
    return Moves(moved, {number: far for part in parts for number, far in part.bounds.items()})


def _moves_of(retriever: Retriever, overlay: Overlay) -> Moves:
    numbers, step = overlay.documents.tolist(), overlay.step
    if overlay.texts is None or not step or not numbers:
        still = dict.fromkeys(numbers, 0.0)
        return Moves(still, still)
    base, pull = retriever.base.fetch(overlay.documents).block, step * overlay.pull
    moved = np.asarray(abs(pull).sum(axis=1), np.float64).ravel()
    bounds = np.maximum(moved, overlay.choice.step + overlay.choice.demotion)
    if base.unit:
        towards = pull @ overlay.texts.vectors.astype(np.float64)
        keys = base.vectors.astype(np.float64)
        bounds = np.minimum(by_mass(moved), _turned(keys, towards))
        moved = _turned(keys, keys + towards)
    best = [overlay.touched.best(one).tolist() for one in (moved, bounds)]
    return Moves(*(dict(zip(numbers, one, strict=True)) for one in best))


def _turned(keys: Scores, others: Scores) -> Scores:
    """1 − cosine, row by row; 0 where there is no direction."""
    lengths = np.linalg.norm(keys, axis=1) * np.linalg.norm(others, axis=1)
    return np.where(lengths > 1e-12, 1 - np.vecdot(keys, others) / np.maximum(lengths, 1e-12), 0.0)


def _displacement(retriever: Retriever, overlay: Overlay, moves: Moves) -> Displacement:
    order = sorted(moves.moved, key=lambda number: moves.moved[number])
    moved, bounds = [moves.moved[number] for number in order], [moves.bounds[number] for number in order]
    masses = [np.asarray(part.evidence.sum(axis=1), np.float64).ravel() for part in overlay.parts]
    most = max([1.0, *np.concatenate(masses).tolist()])
    mass = overlay.choice.step * most + overlay.choice.demotion
    return Displacement(
        retriever=retriever.name,
        kind=retriever.kind,
        choice=overlay.choice,
        documents=len(order),
        median=float(np.median(moved)) if moved else 0.0,
        largest=max(moved, default=0.0),
        bound=float(by_mass(np.array(mass))) if retriever.kind == "dense" else mass,
        within=all(one <= limit + ROUNDING for one, limit in zip(moved, bounds, strict=True)),
        moved=moved,
        bounds=bounds,
    )


def _asked(reader: Reader, taught: Sequence[str], asked: int) -> dict[str, Sequence[str]]:
    return {"taught": taught, "neutral": reader.titles(asked)}


def _found(queries: Sequence[str], view: View) -> list[Counter[int]]:
    """Before and after: how often each document is among the first ten. The last counter holds the queries."""
    counts: list[Counter[int]] = [Counter(), Counter(), Counter({0: len(queries)})]
    for query in queries:
        for count, one in zip(counts, (view.untaught, view), strict=False):
            count.update(one.rank(query, K).numbers.tolist())
    return counts


class Reader:
    """Reads documents by number, out of a memory."""

    def __init__(self, memory: Memory, index: Index) -> None:
        self._memory, self._index = memory, index

    def documents(self, numbers: Iterable[int]) -> dict[int, Document]:
        return self._memory.ledger.documents.fetch(numbers)

    def ids(self, counts: Mapping[int, int]) -> dict[str, int]:
        return {document.id: counts[number] for number, document in self.documents(counts).items()}

    def titles(self, most: int) -> list[str]:
        """Titles of documents spread evenly over the collection, each once; none where texts cannot be encoded."""
        live = self._index.live
        if self._index.given is not None or not len(live):
            return []
        places = np.unique(np.linspace(0, len(live) - 1, min(most, len(live))).round().astype(int))
        found = self.documents(np.sort(live)[places].tolist())
        texts = [one.title.strip() or " ".join(one.text.split()[:WORDS]) for _, one in sorted(found.items())]
        return [text for text in dict.fromkeys(texts) if text]

    def hubness(self, found: Sequence[Counter[int]], learned: Mapping[int, int], named: int) -> Hubness:
        before, after, queries = found
        numbers = sorted(before.keys() | after.keys())
        hubs = sorted(numbers, key=lambda one: (-max(before[one], after[one]), -after[one], one))[:named]
        titles = self.documents(hubs)
        points = Counter((before[one], after[one], one in learned) for one in numbers)
        unseen = learned.keys() - set(numbers)
        points[0, 0, True] = len(unseen)
        points[0, 0, False] = len(self._index.live) - len(numbers) - len(unseen)
        was, now = self._counts(before), self._counts(after)
        return Hubness(
            queries=queries[0],
            skewness_before=skewness(was),
            skewness_after=skewness(now),
            largest_before=int(was.max(initial=0)),
            largest_after=int(now.max(initial=0)),
            never_before=_never(was),
            never_after=_never(now),
            hubs=[
                Hub(titles[one].id, titles[one].title, before[one], after[one], learned.get(one, 0))
                for one in hubs
                if one in titles  # another thread may have deleted it
            ],
            points=[Point(*point, documents) for point, documents in sorted(points.items()) if documents],
        )

    def _counts(self, found: Counter[int]) -> Scores:
        counts = np.zeros(len(self._index.live))
        counts[: len(found)] = list(found.values())
        return counts


def _never(counts: Scores) -> float:
    return float((counts == 0).mean()) if len(counts) else 0.0


def plot(account: Account, path: str | Path) -> None:
    """The account as one figure of four panels; the file's ending says its format."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as error:
        raise UnknownComponent("a plot needs matplotlib; install it with: pip install 'evokey[demo]'") from error
    mpl.use("Agg")
    from matplotlib import pyplot

    style: Any = {
        "font.size": 8,
        "axes.titlesize": 9,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "legend.fontsize": 7,
        "svg.hashsalt": "evokey",
    }
    with pyplot.rc_context(style):
        figure, panels = pyplot.subplots(2, 2, figsize=(7.2, 5.6), layout="constrained")
        _plot_shares(panels[0][0], account)
        _plot_displacements(panels[0][1], account)
        neutral = account.neutral.queries > 0
        _plot_occurrences(panels[1][0], *((account.neutral, "neutral") if neutral else (account.taught, "taught")))
        _plot_hubs(panels[1][1], account.together)
        figure.savefig(path, dpi=200)
        pyplot.close(figure)


COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
"""Told apart also by those who do not see all colours."""
GREY = "#999999"


def _plot_shares(panel: Any, account: Account) -> None:
    spread = {"documents": account.credited, "queries": account.queries, "actors": account.actors}
    panel.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":")
    for colour, (name, one) in zip(COLOURS, spread.items(), strict=False):
        if one.count:
            held_by = np.concatenate([[0], np.cumsum(sorted(one.shares))])
            label = f"{one.count:,} {name}, effectively {one.effective:,.1f} (Gini {one.gini:.2f})"
            panel.plot(np.linspace(0, 1, len(held_by)), held_by, color=colour, label=label)
    panel.set(title="a  Who has the credit", xlabel="share of them, least credit first", ylabel="share of the credit")
    panel.set(xlim=(0, 1), ylim=(0, 1.02))
    _legend(panel, "upper left")


def _plot_displacements(panel: Any, account: Account) -> None:
    for colour, one in zip(COLOURS, account.displacements, strict=False):
        if not one.largest:
            panel.plot([], [], color=colour, label=f"{one.retriever}: keys stay (λ = {one.choice.step:g})")
            continue
        scale = one.bound if one.kind != "dense" or one.bound < 1 else max(one.bounds)
        shares = np.arange(1, one.documents + 1) / one.documents
        unit = "1 − cos" if one.kind == "dense" else "mass"
        label = f"{one.retriever}, λ = {one.choice.step:g}: {unit} ≤ {scale:.2g}"
        ends = np.array([0.0, *one.moved, *one.moved[-1:]]) / scale
        panel.step(ends, [0, *shares, 1], where="post", color=colour, label=label)
        limits = np.array([0.0, *sorted(one.bounds)]) / scale
        panel.step(limits, [0, *shares], where="post", color=colour, linewidth=0.8, linestyle="--")
    panel.plot([], [], color=GREY, linewidth=0.8, linestyle="--", label="each document's own bound")
    panel.set(title="b  How far keys moved", xlabel="displacement, as a share of its bound")
    panel.set(xlim=(0, 1.02), ylim=(0, 1.42), ylabel="share of taught documents", yticks=np.linspace(0, 1, 6))
    _legend(panel, "upper left")


def _plot_occurrences(panel: Any, hubness: Hubness, kind: str) -> None:
    """The share of documents found at least so often."""
    for when, look, skew in (
        ("before", {"color": GREY, "marker": "s", "linestyle": "--"}, hubness.skewness_before),
        ("after", {"color": COLOURS[0], "marker": "o"}, hubness.skewness_after),
    ):
        counts = Counter[int]()
        for point in hubness.points:
            counts[getattr(point, when)] += point.documents
        levels = np.array(sorted(level for level in counts if level))
        if len(levels):
            shares = np.array([sum(counts[other] for other in counts if other >= level) for level in levels])
            label = f"{when} teaching: skewness {skew:.2f}"
            panel.plot(levels, shares / sum(counts.values()), markersize=3, linewidth=1, label=label, **look)
    panel.set(yscale="log", xlabel="N₁₀ at least", ylabel="share of all documents")
    panel.set(title=f"c  Hubs of {hubness.queries:,} {kind} queries")
    panel.xaxis.get_major_locator().set_params(integer=True)
    _legend(panel, "upper right")


def _plot_hubs(panel: Any, hubness: Hubness) -> None:
    most = max([1, hubness.largest_before, hubness.largest_after])
    panel.plot([0, most], [0, most], color=GREY, linewidth=0.8, linestyle=":")
    for touched, colour, label in ((False, GREY, "untaught"), (True, COLOURS[1], "taught")):
        points = [one for one in hubness.points if one.touched == touched]
        sizes = [8 + 6 * np.log2(one.documents) for one in points]
        at = [one.before for one in points], [one.after for one in points]
        panel.scatter(*at, s=sizes, color=colour, alpha=0.6, linewidths=0, label=f"{label} documents")
    panel.set(title=f"d  Every document, {hubness.queries:,} queries", xlabel="N₁₀ before teaching", ylabel="N₁₀ after")
    for axis in (panel.xaxis, panel.yaxis):
        axis.get_major_locator().set_params(integer=True)
    _legend(panel, "lower right")


def _legend(panel: Any, place: str) -> None:
    if panel.get_legend_handles_labels()[1]:
        panel.legend(loc=place)
