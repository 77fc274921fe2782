"""Beside another search: how much of a memory's gain a layer keeps that sees only the engine's ids and scores.

    python benchmarks/beside.py DATA_DIR --out FILE [--only SET …] [--engine bm25 hybrid] [--seeds 3] [--first-seed 0]
                                                    [--again] [--indexes DIR]

The engine is an untaught index: BM25 alone, or the default hybrid. Half of a set's questions teach, once the memory
itself (embedded) and once a layer beside the untaught one; both are asked the same other half. Questions that share a
right document with a taught one are reported apart from those that share none (unrelated), and from questions of
another set, which another index answers behind the same search function (elsewhere). A run that is in FILE already is
not made again; with --again, its layer is, and what the memory reached is taken from FILE. --indexes keeps untaught
indexes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import evokey
from evokey.bench import measures, protocols
from evokey.bench.data import Dataset, load
from evokey.bench.lab import Lab
from evokey.bench.protocols import Question
from evokey.bench.runs import write_json

ENGINES = ("bm25", "hybrid")
MOST = 1_000
"""Judged questions of a set that take part."""
ELSEWHERE = 150
"""Questions of another set."""
Groups = Mapping[str, Sequence[Question]]
Search = Callable[[str, int], Sequence[Any]]
SPEED = ("scifact", "locomo10")
"""Sets on which the time of a search is measured."""
ASKED = 200


def sets(folder: Path) -> list[str]:
    """Sets that have documents, those with few first."""
    found = [path.parent for path in folder.glob("*/corpus.jsonl")]
    return [path.name for path in sorted(found, key=lambda path: (path / "corpus.jsonl").stat().st_size)]


def strip(question: Question) -> Question:
    """As a search is asked."""
    return Question(question.id, question.text.strip(), question.grades, question.excluded)


def engine_of(memory: evokey.Memory, other: evokey.Memory, groups: Groups) -> Search:
    """One search function over two indexes: questions of the other set are answered by its own."""
    foreign = {one.text for one in groups["elsewhere"]}
    excluded = {one.text: one.excluded for some in groups.values() for one in some}

    def search(query: str, k: int) -> list[evokey.Hit]:
        index, hidden = (other if query in foreign else memory), excluded.get(query, frozenset())
        return [hit for hit in index.search(query, k + len(hidden)) if hit.id not in hidden][:k]

    return search


def outcomes(search: Search, groups: Groups) -> dict[str, dict[str, float]]:
    """nDCG@10 of each question of each group."""

    def rank(question: Question, k: int) -> list[str]:
        return [hit.id for hit in search(question.text, k)]

    return {name: dict(measures.quality(rank, some)) for name, some in groups.items()}


def means(found: Mapping[str, Mapping[str, float]]) -> dict[str, float | None]:
    return {name: fmean(values.values()) if values else None for name, values in found.items()}


def errors(before: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The standard error of the mean difference, of each group."""
    found = {}
    for name, values in before.items():
        gains = [after[name][one] - values[one] for one in values]
        found[name] = stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
    return found


def lessons(questions: Sequence[Question]) -> list[dict[str, Any]]:
    return [
        {"query": one.text, "relevant": {id: one.grades[id] for id in sorted(one.right)}}
        for one in questions
        if one.right
    ]


def milliseconds(search: Search, questions: Sequence[Question]) -> float:
    """Processor time of one search, the median: other programs on the machine do not count."""
    taken = []
    for one in questions:
        began = time.process_time()
        search(one.text, 10)
        taken.append(1000 * (time.process_time() - began))
    return round(median(taken), 3)


def measure_speed(lab: Lab, other: Lab, folder: Path) -> dict[str, Any]:
    split = protocols.split(lab.data, "holdout", rate=0.5, seed=0, most=MOST)
    near = [strip(one) for one in split.tested][:ASKED]
    far = [strip(one) for one in protocols.shuffle(protocols.questions(other.data), 0)][:ASKED]
    with lab.memory() as engine, evokey.beside(lambda query, k: _pairs(engine, query, k), folder) as layer:
        lesson_count = len(layer.feedback_many(lessons([strip(one) for one in split.taught])))
        layer.evolve()
        return {
            "lessons": lesson_count,
            "engine, 10 results": milliseconds(lambda query, k: _pairs(engine, query, 10), near),
            "engine, 100 results": milliseconds(lambda query, k: _pairs(engine, query, 100), near),
            "layer, far": milliseconds(layer.search, far),
            "layer, near": milliseconds(layer.search, near),
        }


def _pairs(engine: evokey.Memory, query: str, k: int) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in engine.search(query, k)]


def teach_memory(
    lab: Lab, second: evokey.Memory, groups: Groups, taught: Sequence[Mapping[str, Any]]
) -> tuple[Mapping[str, float | None], float]:
    """What a memory with all documents reaches, and the seconds of its evolve."""
    with lab.memory() as embedded:
        embedded.feedback_many(taught)
        began = time.perf_counter()
        embedded.evolve()
        seconds = time.perf_counter() - began
        return means(outcomes(engine_of(embedded, second, groups), groups)), seconds


def take_memory(known: Mapping[str, Any]) -> tuple[Mapping[str, float | None], float]:
    return {name: values[1] for name, values in known["quality"].items()}, known["evolve_seconds"][0]


def run(labs: Sequence[Lab], seed: int, folder: Path, known: Mapping[str, Any] | None) -> dict[str, Any]:
    """known: an earlier run with the same seed, of which the memory's part is taken."""
    lab, other = labs
    split = protocols.split(lab.data, "holdout", rate=0.5, seed=seed, most=MOST)
    split = protocols.Split(tuple(map(strip, split.taught)), tuple(map(strip, split.tested)))
    said = {one.text for one in (*split.taught, *split.tested)}
    foreign = [strip(one) for one in protocols.shuffle(protocols.questions(other.data), seed)]
    groups = {**split.groups(), "elsewhere": [one for one in foreign if one.text not in said][:ELSEWHERE]}
    taught = lessons(split.taught)
    with lab.memory() as engine, other.memory() as second:
        search = engine_of(engine, second, groups)
        before = outcomes(search, groups)
        with evokey.beside(search, folder) as layer:
            layer.feedback_many(taught)
            began = time.perf_counter()
            report = layer.evolve()
            seconds = time.perf_counter() - began
            learned = outcomes(layer.search, groups)
        after, embedded = teach_memory(lab, second, groups, taught) if known is None else take_memory(known)
    return {
        "quality": {name: [means(before)[name], after[name], means(learned)[name]] for name in groups},
        "layer_errors": errors(before, learned),
        "questions": {name: len(some) for name, some in groups.items()},
        "evolve_seconds": [round(embedded, 2), round(seconds, 2)],
        "report": {key: value for key, value in report.to_dict().items() if key in ("choice", "weights", "reach")},
    }


def show(key: str, run: Mapping[str, Any]) -> None:
    parts = [
        f"{name} {scores[0]:.3f} → embedded {scores[1]:.3f}, beside {scores[2]:.3f}"
        for name, scores in run["quality"].items()
        if scores[0] is not None
    ]
    print(f"{key}: {'; '.join(parts)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--engine", nargs="+", default=ENGINES, choices=ENGINES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--indexes", type=Path)
    options = parser.parse_args()
    names, loaded = sets(options.data), dict[str, Dataset]()
    found: dict[str, Any] = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}

    def lab(name: str, engine: str, place: Path) -> Lab:
        loaded[name] = loaded.get(name) or load(str(options.data / name))
        return Lab(loaded[name], engine, options.indexes or place)

    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, engine) in enumerate((name, engine) for name in names for engine in options.engine):
            for seed in range(options.first_seed, options.first_seed + options.seeds):
                key, other = f"{name} {engine} {seed}", next(one for one in names if one != name)
                if (key in found and not options.again) or (options.only and name not in options.only):
                    continue
                labs = [lab(one, engine, Path(scratch)) for one in (name, other)]
                found[key] = run(labs, seed, Path(scratch) / f"layer-{number}-{seed}", found.get(key))
                write_json(options.out, found, indent=1)
                show(key, found[key])
            key = f"speed {name} {engine}"
            if name in SPEED and key not in found and (not options.only or name in options.only):
                labs = [lab(one, engine, Path(scratch)) for one in (name, next(one for one in names if one != name))]
                found[key] = measure_speed(*labs, Path(scratch) / f"speed-{number}")
                write_json(options.out, found, indent=1)
                print(key, found[key], flush=True)


if __name__ == "__main__":
    main()
