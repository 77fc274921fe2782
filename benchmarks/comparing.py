"""Two epochs compared by interleaving and a simulated clicker: false wins without a difference, power with one.

    python benchmarks/comparing.py ../shared/data/cranfield … --out benchmarks/results/comparing.json

Half of the judged queries teach; epoch 0 (untaught) and the epoch learned give two real rankings of every other query.
People ask these by Zipf's law, so that some come often. They look at rank r with probability 1/r, and click a right
document with probability 0.8 and a wrong one with 0.1. Each comparison has 2,000 impressions, and is judged as `evokey
compare` does.

*Null*: for each query chance decides which epoch is called which, so neither is better; the rankings stay different. A
win is false then. *Blind*: people click by place alone; the new epoch, with all that it lifts, must not win by that.
*Power*: how often the learned epoch wins, with the gain in nDCG@10 that it has on these queries; and
on all queries, those that teach included, of which so few are taken from the learned epoch that the gain is 5 % or
20 %. A set that is in the result already is not measured again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import evokey
from evokey.bench.data import Dataset, load
from evokey.bench.runs import write_json
from evokey.evolution.ndcg import ndcg
from evokey.inspect.comparison import CONFIDENCE, Impression, judge
from evokey.search.interleaving import Team, credit, interleave
from evokey.types import Document, Hit

IMPRESSIONS = 2_000
GAINS = (0.05, 0.2)
RIGHT, WRONG = 0.8, 0.1
"""Of a document that is looked at: how likely it is clicked."""
BLIND = 0.3
"""The same, of who clicks by place alone."""
SHOWN = 10
LOOKED = 1 / np.arange(1, SHOWN + 1)


@dataclass(frozen=True)
class Query:
    text: str
    right: frozenset[str]
    rankings: tuple[tuple[Hit, ...], tuple[Hit, ...]]
    """Untaught, and learned."""
    quality: tuple[float, float]
    ids: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def same(self) -> bool:
        """Whether both epochs find the same."""
        return self.ids[0] == self.ids[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--null", type=int, default=1_000, help="comparisons without a difference, of all sets together"
    )
    parser.add_argument("--each", type=int, default=100, help="comparisons of each set and gain")
    parser.add_argument("--split", type=int, default=101, help="which queries teach; 7 was looked at for the statistic")
    said = parser.parse_args()
    found: dict[str, Any] = json.loads(said.out.read_text()) if said.out.exists() else {}
    if found.get("split") != said.split:
        found = {"sets": {}}
    found |= {"impressions": IMPRESSIONS, "split": said.split, "confidence": CONFIDENCE}
    for number, folder in enumerate(said.sets):
        if folder.name in found["sets"]:
            continue
        chance = np.random.default_rng([said.split, number])
        queries = rank(load(folder), said.split)
        count = said.null // len(said.sets) + (number < said.null % len(said.sets))
        held_out = queries[len(queries) // 2 :]
        told = {
            "null": null(held_out, count, chance),
            "blind": blind(held_out, count, chance),
            "held-out queries": power(held_out, said.each, chance),
        }
        for gain in GAINS:
            told[f"all queries, {gain:.0%}"] = mixed(queries, gain, said.each, chance)
        found["sets"][folder.name] = told
        write_json(said.out, found)
        print(folder.name, json.dumps(found["sets"][folder.name]))
    for kind in ("null", "blind"):
        told = [one[kind] for one in found["sets"].values()]
        comparisons, wins = (sum(one[name] for one in told) for name in ("comparisons", "wins"))
        found[kind] = {"comparisons": comparisons, "wins": wins, "share": wins / comparisons}
    write_json(said.out, found)


def rank(data: Dataset, split: int) -> list[Query]:
    """What both epochs find."""
    judged = {
        data.queries[id]: {doc: float(grade) for doc, grade in one.items() if grade > 0}
        for id, one in data.judged.items()
    }
    texts = sorted(judged)
    np.random.default_rng(split).shuffle(texts)
    with tempfile.TemporaryDirectory() as folder, evokey.open(Path(folder) / "kb") as memory:
        memory.add(data.documents)
        memory.feedback_many({"query": text, "relevant": judged[text]} for text in texts[: len(texts) // 2])
        memory.evolve()
        return [_query(memory, text, judged[text]) for text in texts]


def _query(memory: evokey.Memory, text: str, right: dict[str, float]) -> Query:
    found = [[hit.id for hit in memory.search(text, SHOWN, epoch=epoch)] for epoch in (0, memory.epoch)]
    number = {id: place for place, id in enumerate(right)}
    grades = {number[id]: grade for id, grade in right.items()}
    quality = [float(ndcg([number.get(id, 10_000) for id in ids], grades)) for ids in found]
    hits = [tuple(Hit(id, 0.0, Document(id, "")) for id in ids) for ids in found]
    ids = tuple(found[0]), tuple(found[1])
    return Query(text, frozenset(right), (hits[0], hits[1]), (quality[0], quality[1]), ids)


def traffic(queries: Sequence[Query], chance: np.random.Generator) -> np.ndarray:
    """How often each query is asked, as shares: by Zipf's law, in an order by chance."""
    weights = 1 / chance.permutation(np.arange(1, len(queries) + 1))
    return np.asarray(weights / weights.sum())


def compare(
    queries: Sequence[Query],
    pairs: Sequence[tuple[int, int]],
    shares: np.ndarray,
    chance: np.random.Generator,
    clicks: tuple[float, float] = (RIGHT, WRONG),
) -> int | None:
    """Who wins: 1 is the ranking that comes first in each pair, 2 the second."""
    impressions = []
    for place in chance.choice(len(queries), IMPRESSIONS, p=shares):
        query, (one, other) = queries[place], pairs[place]
        if one == other or query.same:  # all hits are nobody's
            impressions.append(Impression(query.text, 0))
            continue
        shown = interleave(Team(1, query.rankings[one]), Team(2, query.rankings[other]), SHOWN, chance)
        said = credit(query.ids[one], query.ids[other], tuple(hit.id for hit in shown))
        rolls = chance.random((2, len(shown)))
        right, wrong = clicks
        clicked = (
            hit.id
            for rank, hit in enumerate(shown)
            if rolls[0, rank] < LOOKED[rank] and rolls[1, rank] < (right if hit.id in query.right else wrong)
        )
        impressions.append(Impression(query.text, sum(said[id] for id in clicked)))
    return judge(1, 2, "interleaved", impressions).winner


def null(queries: Sequence[Query], count: int, chance: np.random.Generator) -> dict[str, float]:
    wins = 0
    for _ in range(count):
        pairs = [(1, 0) if flip else (0, 1) for flip in chance.random(len(queries)) < 0.5]
        wins += compare(queries, pairs, traffic(queries, chance), chance) is not None
    return {"comparisons": count, "wins": wins, "share": wins / count}


def blind(queries: Sequence[Query], count: int, chance: np.random.Generator) -> dict[str, float]:
    """Wins of either epoch where people click what they see, right or wrong."""
    pairs = [(1, 0)] * len(queries)
    wins = [compare(queries, pairs, traffic(queries, chance), chance, (BLIND, BLIND)) for _ in range(count)]
    won = [one for one in wins if one is not None]
    return {"comparisons": count, "wins": len(won), "of the new epoch": won.count(1), "share": len(won) / count}


def power(queries: Sequence[Query], count: int, chance: np.random.Generator) -> dict[str, float]:
    """How often the learned epoch wins, and how much better it is."""
    before, after = (np.array([query.quality[which] for query in queries]) for which in (0, 1))
    wins = [compare(queries, [(1, 0)] * len(queries), traffic(queries, chance), chance) for _ in range(count)]
    told = {"queries": len(queries), "gain": float(after.sum() / before.sum() - 1), "comparisons": count}
    return told | {"power": wins.count(1) / count, "wrong wins": wins.count(2) / count}


def mixed(queries: Sequence[Query], gain: float, count: int, chance: np.random.Generator) -> dict[str, float]:
    """The same, where only some queries are answered by the learned epoch: so many that what is asked gains so much."""
    before, after = (np.array([query.quality[which] for query in queries]) for which in (0, 1))
    wins = list[int | None]()
    for _ in range(count):
        shares = traffic(queries, chance)
        better = choose(shares * (after - before) / (shares @ before), gain, chance)
        if better is not None:
            pairs = [(1, 0) if place in better else (0, 0) for place in range(len(queries))]
            wins.append(compare(queries, pairs, shares, chance))
    many = max(len(wins), 1)
    told = {"queries": len(queries), "gain": gain, "comparisons": len(wins)}
    return told | {"power": wins.count(1) / many, "wrong wins": wins.count(2) / many}


def choose(changes: np.ndarray, gain: float, chance: np.random.Generator) -> set[int] | None:
    """Queries by chance that together gain so much; None where all do not."""
    order = chance.permutation(len(changes))
    reached = np.cumsum(changes[order]) >= gain
    return set(order[: int(np.argmax(reached)) + 1].tolist()) if reached.any() else None


if __name__ == "__main__":
    main()
