"""What people who mean harm can do to everybody else's questions, by feedback alone.

    python benchmarks/attacks.py DATA_DIR… --out FILE [--kind titles …] [--share 1 10 30] [--retriever hybrid …]

A hundred honest actors teach (Zipf: a few teach most). Attackers are 1 %, 10 % or 30 % of all actors, and together
record several times as many lessons as the honest ones; advertisements were added to the index for them. The kinds:

    titles         titles of documents, as questions, name one advertisement
    words          pairs of words name one advertisement
    flooding       near-duplicates of what honest actors asked name one advertisement
    copies         what honest actors asked, word for word, names one advertisement
    contradiction  what honest actors called right is called wrong
    units          titles name one advertisement, with other titles as expansion units
    several        titles name twenty advertisements
    hidden         every other lesson of the attackers repeats an honest one; the rest is as `titles`

Measured are the questions of others that nobody taught: nDCG@10 untaught, taught by honest actors ("honest"), and with
the attackers' lessons; and the share of their top tens with the advertisement (of several, the one that is found
most, and any of them). "unnamed" is the same honest teaching by one voice, to which no defence applies. A run that is
in FILE already is not made again. benchmarks/results/attacks-before.json was made by this script with the version
before voices were weighed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import evokey
from evokey.bench import measures, protocols
from evokey.bench.data import Dataset, load
from evokey.bench.runs import write_json
from evokey.bench.systems import Plain

HONEST, LESSONS, ASKED = 100, 150, 200
"""Honest actors, their lessons together, and the questions asked afterwards."""
ATTACKERS = {1: 1, 10: 11, 30: 43}
"""By their share of all actors, in percent."""
MANY, FEW, SPAM = 1_000, 300, 20
"""Lessons of a large attack and of a small one; advertisements."""
RETRIEVERS: dict[str, dict[str, Any]] = {
    "bm25": {"encoder": "bm25"},
    "wordllama": {"encoder": "wordllama"},
    "hybrid": {},
}
GOODS = ("watches", "loans", "casinos", "pills", "sofas")
Lesson = dict[str, Any]
"""Arguments of feedback."""


@dataclass(frozen=True)
class World:
    """What attackers can know: the documents' titles, and what honest actors taught."""

    titles: Sequence[str]
    honest: Sequence[Lesson]
    spam: Sequence[str]


def advertisements() -> list[dict[str, str]]:
    return [
        {
            "id": f"spam-{n}",
            "title": f"Offer {n}",
            "text": f"Buy cheap {GOODS[n % len(GOODS)]} at shop {n}, half price.",
        }
        for n in range(SPAM)
    ]


# ---- attacks: each draws lessons, without actors


def titles(world: World, chance: random.Random, spam: int = 1) -> Iterator[Lesson]:
    for n in range(MANY):
        yield {"query": chance.choice(world.titles), "relevant": [world.spam[n % spam]]}


def several(world: World, chance: random.Random) -> Iterator[Lesson]:
    return titles(world, chance, SPAM)


def words(world: World, chance: random.Random) -> Iterator[Lesson]:
    known = sorted({word for title in world.titles for word in title.split() if len(word) > 3})
    for _ in range(FEW):
        yield {"query": " ".join(chance.sample(known, 2)), "relevant": [world.spam[0]]}


def flooding(world: World, chance: random.Random) -> Iterator[Lesson]:
    for _ in range(MANY):
        asked = chance.choice(world.honest)["query"].split()
        asked[chance.randrange(len(asked))] = chance.choice(chance.choice(world.titles).split())
        yield {"query": " ".join(asked), "relevant": [world.spam[0]]}


def copies(world: World, chance: random.Random) -> Iterator[Lesson]:
    for n in range(MANY):
        yield {"query": world.honest[n % len(world.honest)]["query"], "relevant": [world.spam[0]]}


def contradiction(world: World, chance: random.Random) -> Iterator[Lesson]:
    for n in range(MANY):
        lesson = world.honest[n % len(world.honest)]
        yield {"query": lesson["query"], "irrelevant": list(lesson["relevant"])}


def units(world: World, chance: random.Random) -> Iterator[Lesson]:
    for _ in range(FEW):
        asked, *more = chance.sample(world.titles, 9)
        yield {"query": asked, "relevant": [world.spam[0]], "units": more}


def hidden(world: World, chance: random.Random) -> Iterator[Lesson]:
    for lesson in titles(world, chance):
        yield {**chance.choice(world.honest), "actor": None}
        yield lesson


ATTACKS: dict[str, Callable[[World, random.Random], Iterator[Lesson]]] = {
    attack.__name__: attack for attack in (titles, words, flooding, copies, contradiction, units, several, hidden)
}


def sign(lessons: Iterator[Lesson], attackers: int) -> list[Lesson]:
    """Each attacker in turn records the next lesson; hidden ones come in pairs."""
    drawn = list(lessons)[:MANY]
    return [{**lesson, "actor": f"attacker {n // 2 % attackers}"} for n, lesson in enumerate(drawn)]


# ---- the honest world


def teach(data: Dataset, seed: int) -> tuple[list[Lesson], list[protocols.Question]]:
    """The lessons of honest actors, and the questions that are asked afterwards."""
    dealt = protocols.shuffle(protocols.questions(data), seed)
    taught, asked = dealt[: min(LESSONS, len(dealt) // 2)], dealt[len(dealt) // 2 :][:ASKED]
    chance = random.Random(seed)
    people = chance.choices(range(HONEST), [1 / (1 + rank) for rank in range(HONEST)], k=len(taught))
    lessons = [
        {"query": one.text, "relevant": {id: one.grades[id] for id in sorted(one.right)}, "actor": f"person {who}"}
        for one, who in zip(taught, people, strict=True)
    ]
    return lessons, asked


def titles_of(data: Dataset) -> list[str]:
    """What documents are about, each in some words: titles, or first words where many documents share a title."""
    own = len({one.title for one in data.documents}) > len(data.documents) / 2
    found = {" ".join(((own and one.title) or one.text).split()[:12]) for one in data.documents}
    return sorted(title for title in found if len(title.split()) > 2)


class Bench:
    """One set with one retriever: untaught, then taught in many ways."""

    def __init__(self, data: Dataset, retriever: str, scratch: Path, seed: int) -> None:
        self.lessons, self.asked = teach(data, seed)
        self._chance, self._scratch, self._untaught = (
            random.Random(f"{seed} {data.name}"),
            scratch,
            scratch / "untaught",
        )
        spam = advertisements()
        with evokey.open(self._untaught, traffic=0, **RETRIEVERS[retriever]) as memory:
            memory.add([*data.documents, *spam])
        self.world = World(titles_of(data), self.lessons, [one["id"] for one in spam])

    def attack(self, kind: str, share: int) -> dict[str, Any]:
        chance = random.Random(f"{kind} {self._chance.getstate()[1][0]}")
        attacking = sign(ATTACKS[kind](self.world, chance), ATTACKERS[share])
        order = [*self.lessons, *attacking]
        chance.shuffle(order)
        return self.measure(order)

    def unnamed(self) -> dict[str, Any]:
        """The honest lessons by one voice."""
        return self.measure([{**one, "actor": None} for one in self.lessons])

    def measure(self, lessons: Sequence[Lesson]) -> dict[str, Any]:
        folder = self._scratch / "taught"
        shutil.copytree(self._untaught, folder)
        with evokey.open(folder) as memory:
            memory.feedback_many(lessons)
            began = time.perf_counter()
            report = memory.evolve() if lessons else None
            seconds = time.perf_counter() - began
            rankings = {one.id: Plain(memory).rank(one, 10) for one in self.asked}
        shutil.rmtree(folder)
        found = measures.evaluate(self.asked, rankings)
        tops = [set(ranking[:10]) for ranking in rankings.values()]
        return {
            "ndcg": fmean(one["nDCG@10"] for one in found.values()),
            "spam": max(fmean(id in top for top in tops) for id in self.world.spam),
            "any_spam": fmean(not top.isdisjoint(self.world.spam) for top in tops),
            "lessons": len(lessons),
            "seconds": round(seconds, 2),
            "left_out": {kind: len(getattr(report, f"{kind}_left_out", {})) for kind in ("actors", "documents")},
        }

    def close(self) -> None:
        shutil.rmtree(self._untaught)


def runs(kinds: Sequence[str], shares: Sequence[int]) -> Iterator[tuple[str, Callable[[Bench], dict[str, Any]]]]:
    yield "untaught", lambda bench: bench.measure([])
    yield "unnamed", Bench.unnamed
    yield "honest", lambda bench: bench.measure(bench.lessons)
    for share in shares:
        for kind in kinds:
            yield f"{kind} {share}", lambda bench, kind=kind, share=share: bench.attack(kind, share)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--kind", nargs="+", default=list(ATTACKS), choices=list(ATTACKS))
    parser.add_argument("--share", nargs="+", type=int, default=list(ATTACKERS), choices=list(ATTACKERS))
    parser.add_argument("--retriever", nargs="+", default=list(RETRIEVERS), choices=list(RETRIEVERS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found: dict[str, Any] = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    for folder in options.folders:
        data = load(folder)
        for retriever in options.retriever:
            start = f"{data.name} {retriever} "
            wanted = {start + name: run for name, run in runs(options.kind, options.share) if start + name not in found}
            if not wanted:
                continue
            with tempfile.TemporaryDirectory() as scratch:
                bench = Bench(data, retriever, Path(scratch), options.seed)
                for key, run in wanted.items():
                    found[key] = run(bench)
                    write_json(options.out, found, indent=1)
                    one = found[key]
                    print(f"{key:45} {one['ndcg']:.3f} spam {one['spam']:.1%} {one['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
