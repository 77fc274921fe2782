"""What clicks teach, beside true judgements. Makes results/clicks.json.

    python benchmarks/clicks.py [DATA_DIR] [--sets NAME …] [--retriever hybrid|bm25 …]

Half of the judged questions of a set are searched in the untaught memory by CLIENTS people each, who see the first
SHOWN documents. A person looks at rank r with probability 1/r and clicks what they see with probability CLICK if it
is judged right and NOISE if not. That is written as OpenSearch UBI 1.3 queries and events, and read as `evokey
feedback --from ubi` reads it. Five memories learn: from the true judgements, from those of them that were among what
was shown (the most that such clicks can say), from the clicks, from clicks with exploration, and from random clicks
(the same looks; what is seen is clicked with one probability, whatever it is).

With exploration, CLIENTS more people come in each of ROUNDS rounds, after the memory has learned from the clicks of
the rounds before; in these searches the last EXPLORED places go to documents that another ranking has among its first
(`search(explore=…)`). Random clicks are made in the same rounds.

nDCG@10 of the taught and of the held-out questions; "share" is the gain beside that of the true judgements,
"share_of_shown" beside that of the judgements of what was shown. What is in
the result file is not measured again.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import evokey
from evokey.bench import data
from evokey.evolution.ndcg import ndcg
from evokey.feedback import ubi
from evokey.feedback.judged import lessons

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "clicks.json"
SETS = ("scifact", "cranfield", "climate_fever_evidence", "locomo10", "nfcorpus")
CLIENTS, SHOWN, CLICK, NOISE, RANDOM = 100, 20, 0.9, 0.1, 0.3
ROUNDS, EXPLORED, DRAWS = 6, 10, 5
"""Draws: different lists of a question in a round; each is shown to as many people."""
RETRIEVERS: dict[str, Any] = {"hybrid": ["bm25", "wordllama"], "bm25": "bm25"}
NAMES = ("true", "shown", "clicks", "explored", "random")
Judged = Mapping[str, Mapping[str, float]]
Showing = tuple[str, str, list[str]]
"""A question, who asked it, and what was shown."""


def simulate(shown: Iterable[Showing], right: Judged, noise: tuple[float, float], seed: int) -> Iterator[dict]:
    """UBI records; noise: how likely people click what they see, if it is right and if it is not."""
    chance = random.Random(seed)
    for number, (query, client, ids) in enumerate(shown):
        id, when = f"q{seed}-{number}", "2026-11-16T12:00:00Z"
        yield {
            "query_id": id, "client_id": client, "user_query": query, "timestamp": when,
            "query_response_hit_ids": ids,
        }  # fmt: skip
        for rank, document in enumerate(ids, 1):
            if chance.random() < noise[document not in right[query]] / rank:
                attributes = {"object": {"object_id": document}, "position": {"ordinal": rank}}
                yield {
                    "action_name": "click", "query_id": id, "client_id": client, "timestamp": when,
                    "event_attributes": attributes,
                }  # fmt: skip


def show(memory: evokey.Memory, queries: Iterable[str], name: str, explored: int = 0) -> list[Showing]:
    """CLIENTS people ask each question. Without exploration all see the same."""
    found = []
    for query in queries:
        for draw in range(DRAWS if explored else 1):
            ids = [hit.id for hit in memory.search(query, k=SHOWN, explore=explored)]
            people = CLIENTS // (DRAWS if explored else 1)
            found += [(query, f"{name}-{draw}-{one}", ids) for one in range(people)]
    return found


def explore(folder: Path, taught: Judged, noise: tuple[float, float], seed: int) -> list[dict[str, Any]]:
    """The lessons after all rounds; in each round, a memory that has learned from the clicks before it is asked."""
    records = list[dict]()
    for round in range(ROUNDS):
        with tempfile.TemporaryDirectory() as place, evokey.open(folder / "untaught") as untaught:
            untaught.backup(Path(place) / "kb")
            with evokey.open(Path(place) / "kb") as memory:
                if said := _learn_from(records):
                    memory.feedback_many(said)
                    memory.evolve()
                shown = show(memory, taught, f"r{round}", EXPLORED if round else 0)
        records += simulate(shown, taught, noise, seed + round)
    return _learn_from(records)


def quality(memory: evokey.Memory, judged: Judged) -> float:
    found = []
    for query, right in judged.items():
        ids = [hit.id for hit in memory.search(query, k=10)]
        numbers = memory.ledger.documents.numbers([*right, *ids])
        found.append(ndcg([numbers[id] for id in ids], {numbers[id]: grade for id, grade in right.items()}))
    return fmean(found)


def measure(documents: list[evokey.Document], judged: Judged, encoder: Any) -> dict[str, Any]:
    queries = sorted(judged)
    random.Random(0).shuffle(queries)
    taught = {query: judged[query] for query in queries[: len(queries) // 2]}
    held_out = {query: judged[query] for query in queries[len(queries) // 2 :]}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with evokey.open(folder / "untaught", encoder=encoder) as memory:
            memory.add(documents)
            untaught = {"taught": quality(memory, taught), "held_out": quality(memory, held_out)}
            shown = show(memory, taught, "all")
            for name in NAMES:
                memory.backup(folder / name)
        said = {
            "true": [{"query": query, "relevant": dict(right)} for query, right in taught.items()],
            "shown": _limit(taught, {query: ids for query, _, ids in shown}),
            "clicks": _learn_from(simulate(shown, taught, (CLICK, NOISE), 1)),
            "explored": explore(folder, taught, (CLICK, NOISE), 100),
            "random": explore(folder, taught, (RANDOM, RANDOM), 200),
        }
        found = {name: _teach(folder / name, given, taught, held_out) for name, given in said.items()}
    return {"questions": len(judged), "untaught": _round(untaught), **_shares(untaught, found)}


def _limit(taught: Judged, shown: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    seen = {query: {id: grade for id, grade in right.items() if id in shown[query]} for query, right in taught.items()}
    return [{"query": query, "relevant": right} for query, right in seen.items() if right]


def _learn_from(records: Iterable[dict]) -> list[dict[str, Any]]:
    return lessons(ubi.read(records).found, "ubi")


def _teach(at: Path, said: list[dict[str, Any]], taught: Judged, held_out: Judged) -> dict[str, Any]:
    with evokey.open(at) as memory:
        memory.feedback_many(said)
        report = memory.evolve()
        right = sum(id in taught[one["query"]] for one in said for id in one["relevant"])
        named = sum(len(one["relevant"]) for one in said)
        return {
            "lessons": len(said), "verdicts": named, "right": right, "published": report.published,
            "taught": quality(memory, taught), "held_out": quality(memory, held_out),
        }  # fmt: skip


def _shares(untaught: Mapping[str, float], found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    for one in found.values():
        for part in ("taught", "held_out"):
            for beside, name in (("true", "share"), ("shown", "share_of_shown")):
                gain, most = one[part] - untaught[part], found[beside][part] - untaught[part]
                one[f"{part}_{name}"] = gain / most if most > 0 else None
    return {name: _round(one) for name, one in found.items()}


def _round(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(one, 4) if isinstance(one, float) else one for name, one in values.items()}


def read(folder: Path) -> tuple[list[evokey.Document], Judged]:
    loaded = data.load(folder)
    judged = {
        loaded.queries[query].strip(): right
        for query, said in loaded.judged.items()
        if (right := {id: float(grade) for id, grade in said.items() if grade > 0})
    }
    return list(loaded.documents), judged


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--retriever", nargs="*", default=list(RETRIEVERS), choices=RETRIEVERS)
    given = parser.parse_args()
    settings = {
        "clients": CLIENTS, "shown": SHOWN, "click": CLICK, "noise": NOISE, "random": RANDOM, "rounds": ROUNDS,
        "explored": EXPLORED,
    }  # fmt: skip
    for retriever, name in product(given.retriever, given.sets):
        found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"settings": settings, "sets": {}}
        if (key := f"{name}, {retriever}") in found["sets"]:
            continue
        found["sets"][key] = measure(*read(given.data / name), RETRIEVERS[retriever])
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        print(key, json.dumps(found["sets"][key]), flush=True)


if __name__ == "__main__":
    main()
