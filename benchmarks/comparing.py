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
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import evokey
from evokey.bench.data import Dataset, load
from evokey.bench.runs import write_json
from evokey.evolution.ndcg import ndcg
from evokey.inspect.comparison import CONFIDENCE, Impression, judge
from evokey.search.interleaving import Ids, credit, find_orders

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
    rankings: tuple[Ids, Ids]
    """Untaught, and learned."""
    quality: tuple[float, float]

    @cached_property
    def orders(self) -> Orders:
        """What the learned and the untaught ranking can show together."""
        return Orders.of(self)


@dataclass(frozen=True)
class Orders:
    """Every order that interleaving can show, one in each row."""

    likely: np.ndarray
    credit: np.ndarray
    """For the learned ranking."""
    right: np.ndarray
    """Whether a document is right."""

    @classmethod
    def of(cls, query: Query) -> Orders:
        untaught, learned = query.rankings
        found = list(find_orders(learned, untaught, ()))
        credits, right = np.zeros((len(found), SHOWN)), np.zeros((len(found), SHOWN), bool)
        for row, (_, order) in enumerate(found):
            said = credit(learned, untaught, order)
            credits[row, : len(order)] = [said[id] for id in order]
            right[row, : len(order)] = [id in query.right for id in order]
        return cls(np.array([likely for likely, _ in found]), credits, right)

    def ask(self, times: int, clicks: tuple[float, float], chance: np.random.Generator) -> np.ndarray:
        """What the clicks of so many impressions say for the learned ranking."""
        rows = chance.choice(len(self.likely), times, p=self.likely)
        looked = chance.random((times, SHOWN)) < LOOKED
        clicked = looked & (chance.random((times, SHOWN)) < np.where(self.right[rows], *clicks))
        return np.asarray((clicked * self.credit[rows]).sum(axis=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--null", type=int, default=1_000, help="comparisons without a difference, of all sets together"
    )
    parser.add_argument("--each", type=int, default=100, help="comparisons of each set and gain")
    parser.add_argument("--split", type=int, default=8, help="which queries teach; 7 was looked at for the statistic")
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
    found = [tuple(hit.id for hit in memory.search(text, SHOWN, epoch=epoch)) for epoch in (0, memory.epoch)]
    number = {id: place for place, id in enumerate(right)}
    grades = {number[id]: grade for id, grade in right.items()}
    quality = [float(ndcg([number.get(id, 10_000) for id in ids], grades)) for ids in found]
    return Query(text, frozenset(right), (found[0], found[1]), (quality[0], quality[1]))


def traffic(queries: Sequence[Query], chance: np.random.Generator) -> np.ndarray:
    """How often each query is asked, as shares: by Zipf's law, in an order by chance."""
    weights = 1 / chance.permutation(np.arange(1, len(queries) + 1))
    return np.asarray(weights / weights.sum())


def compare(
    queries: Sequence[Query],
    signs: Sequence[int],
    shares: np.ndarray,
    chance: np.random.Generator,
    clicks: tuple[float, float] = (RIGHT, WRONG),
) -> int | None:
    """Who wins, 1 or 2. Signs: 1 is the learned ranking of a query (1) or the untaught one (-1), 2 is the other; or
    both are the untaught one (0)."""
    impressions = list[Impression]()
    for query, sign, times in zip(queries, signs, chance.multinomial(IMPRESSIONS, shares), strict=True):
        said = sign * query.orders.ask(times, clicks, chance) if sign else np.zeros(times)
        impressions += [Impression(query.text, float(one)) for one in said]
    return judge(1, 2, "interleaved", impressions).winner


def null(queries: Sequence[Query], count: int, chance: np.random.Generator) -> dict[str, float]:
    wins = 0
    for _ in range(count):
        signs = chance.choice((-1, 1), len(queries)).tolist()
        wins += compare(queries, signs, traffic(queries, chance), chance) is not None
    return {"comparisons": count, "wins": wins, "share": wins / count}


def blind(queries: Sequence[Query], count: int, chance: np.random.Generator) -> dict[str, float]:
    """Wins of either epoch where people click what they see, right or wrong."""
    signs = [1] * len(queries)
    wins = [compare(queries, signs, traffic(queries, chance), chance, (BLIND, BLIND)) for _ in range(count)]
    won = [one for one in wins if one is not None]
    return {"comparisons": count, "wins": len(won), "of the new epoch": won.count(1), "share": len(won) / count}


def power(queries: Sequence[Query], count: int, chance: np.random.Generator) -> dict[str, float]:
    """How often the learned epoch wins, and how much better it is."""
    before, after = (np.array([query.quality[which] for query in queries]) for which in (0, 1))
    wins = [compare(queries, [1] * len(queries), traffic(queries, chance), chance) for _ in range(count)]
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
            signs = [int(place in better) for place in range(len(queries))]
            wins.append(compare(queries, signs, shares, chance))
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
