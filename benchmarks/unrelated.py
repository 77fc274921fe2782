"""What teaching one topic does to questions about another, in the default hybrid: losses of people who taught nothing.

    python benchmarks/unrelated.py DATA_DIR… --out FILE [--protocol pair topic once all] [--only SET SET/OTHER …]

Four protocols, each with traffic heard and without:

    pair    two sets in one index; half of the first one's questions teach, the second one's are asked before and after
    topic   one set; half of the questions of one topic (a cluster of questions) teach, those about other documents are
            asked
    once    half of the documents are taught by one question each; their other questions, and those about the other
            documents, are asked
    all     all sets in one index; half of the questions of one teach, those of all others are asked

Traffic is heard where half of the other questions are searched before anything is taught; the other half is asked.
A run that is in FILE already is not made again. benchmarks/results/unrelated-before.json was made by this script with
the version before learning had a reach.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

import evokey
from evokey.bench import measures, protocols
from evokey.bench.data import Dataset, load, prefix
from evokey.bench.runs import write_json
from evokey.bench.systems import Plain
from evokey.demo import run as demo_

MOST_LESSONS, MOST_ASKED, MOST_OF_EACH = 1_500, 400, 100
TOPICS = 5
"""Clusters of a set's questions; the one of middle size teaches."""
ONCE_SETS = ("demo", "clinc150", "locomo10", "scifact")
TOLD = ("weights", "reach", "held_out", "unrelated")
"""What is kept of a report."""
Judged = dict[str, dict[str, float]]
"""Question → documents and grades."""


@dataclass(frozen=True)
class Groups:
    """Questions by what they have to do with the lessons."""

    teaching: Judged
    related: Judged
    unrelated: Judged
    heard: Sequence[str]


def questions(data: Dataset) -> Judged:
    """Judged test questions by their texts, shuffled."""
    return {
        one.text: {id: grade for id, grade in one.grades.items() if grade > 0}
        for one in protocols.shuffle(protocols.questions(data), seed=0)
    }


def demo() -> Dataset:
    """The demo's documents, and all wordings of its intents."""
    judged = {question.text: dict.fromkeys(question.relevant[:1], 1) for question in demo_.questions()}
    return Dataset("demo", demo_.documents(), {text: text for text in judged}, judged, {"test": judged})


def split(some: Judged, share: float = 0.5) -> tuple[Judged, Judged]:
    pairs = list(some.items())
    at = int(len(pairs) * share)
    return dict(pairs[:at]), dict(pairs[at:])


def first(some: Judged, count: int) -> Judged:
    return dict(list(some.items())[:count])


def pair(taught: Dataset, other: Dataset) -> Groups:
    teaching, related = split(first(questions(prefix(taught)), 2 * MOST_LESSONS))
    heard, unrelated = split(questions(prefix(other)))
    return Groups(teaching, first(related, MOST_ASKED), first(unrelated, MOST_ASKED), list(heard))


def among_all(taught: Dataset, others: Sequence[Dataset]) -> Groups:
    teaching, related = split(first(questions(prefix(taught)), 2 * MOST_LESSONS))
    heard, unrelated = Judged(), Judged()
    for other in others:
        some = split(first(questions(prefix(other)), 2 * MOST_OF_EACH))
        heard, unrelated = heard | some[0], unrelated | some[1]
    return Groups(teaching, first(related, MOST_ASKED), unrelated, list(heard))


def topic(data: Dataset) -> Groups:
    everything = questions(data)
    inside = topics(data, list(everything))
    ours = {text: everything[text] for text in everything if text in inside}
    teaching, related = split(first(ours, 2 * MOST_LESSONS))
    touched = {id for grades in teaching.values() for id in grades}
    others = {text: grades for text, grades in everything.items() if text not in inside and not touched & grades.keys()}
    heard, unrelated = split(others)
    return Groups(teaching, first(related, MOST_ASKED), first(unrelated, MOST_ASKED), list(heard))


def topics(data: Dataset, texts: Sequence[str]) -> set[str]:
    """The questions of one topic: of one cluster of WordLlama vectors, the one of middle size."""
    from scipy.cluster.vq import kmeans2

    from evokey.encoders.wordllama import WordLlamaEncoder

    vectors = WordLlamaEncoder().queries(list(texts))
    _, labels = kmeans2(vectors.astype(np.float64), TOPICS, minit="++", rng=0)
    sizes = np.bincount(labels, minlength=TOPICS)
    chosen = int(np.argsort(sizes, kind="stable")[TOPICS // 2])
    return {text for text, label in zip(texts, labels, strict=True) if label == chosen}


def once(data: Dataset) -> Groups:
    """Half of the documents with several questions are taught by one of these each."""
    everything = questions(data)
    by_document: dict[str, list[str]] = defaultdict(list)
    for text, grades in everything.items():
        if len(grades) == 1:
            by_document[next(iter(grades))].append(text)
    documents = sorted(id for id, texts in by_document.items() if len(texts) > 1)
    random.Random(0).shuffle(documents)
    ours = documents[: len(documents) // 2]
    teaching = {by_document[id][0]: everything[by_document[id][0]] for id in ours}
    related = {text: everything[text] for id in ours for text in by_document[id][1:]}
    others = {text: grades for text, grades in everything.items() if not grades.keys() & set(ours)}
    heard, unrelated = split(others)
    related, unrelated = (dict(sorted(some.items(), key=lambda one: hash_of(one[0]))) for some in (related, unrelated))
    return Groups(teaching, first(related, MOST_ASKED), first(unrelated, MOST_ASKED), list(heard))


def hash_of(text: str) -> int:
    return random.Random(text).getrandbits(32)


def quality(memory: evokey.Memory, asked: Judged) -> float:
    found = measures.quality(
        Plain(memory).rank, (protocols.Question(text, text, grades) for text, grades in asked.items())
    )
    return fmean(found.values()) if found else 0.0


def measure(folder: Path, untaught: Path, groups: Groups, traffic: bool) -> dict[str, Any]:
    shutil.copytree(untaught, folder)
    taught = first(groups.teaching, MOST_ASKED)
    with evokey.open(folder) as memory, evokey.open(folder) as reader:  # what a reader is asked is not noted
        before = [quality(reader, some) for some in (taught, groups.related, groups.unrelated)]
        for text in groups.heard if traffic else ():
            memory.search(text)
        for text, grades in groups.teaching.items():
            memory.feedback(text, relevant=grades)
        began = time.perf_counter()
        report = memory.evolve()
        seconds = time.perf_counter() - began
        after = [quality(reader, some) for some in (taught, groups.related, groups.unrelated)]
    names = ("taught", "related", "unrelated")
    return {
        **{name: [a, b] for name, a, b in zip(names, before, after, strict=True)},
        "questions": [len(taught), len(groups.related), len(groups.unrelated)],
        "lessons": len(groups.teaching),
        "seconds": round(seconds, 2),
        "report": {key: value for key, value in report.to_dict().items() if key in TOLD},
    }


def runs(sets: Sequence[Dataset]) -> Iterator[tuple[str, str, str]]:
    """(protocol, taught set, other set)"""
    yield from (("once", data.name, "") for data in sets if data.name in ONCE_SETS)
    sets = [data for data in sets if data.name != "demo"]
    yield from (("topic", data.name, "") for data in sets)
    for a, b in combinations([data.name for data in sets], 2):
        yield from (("pair", *both) for both in permutations((a, b)))
    yield from (("all", data.name, "") for data in sets)


def groups_of(protocol: str, taught: Dataset, others: Sequence[Dataset]) -> Groups:
    if protocol == "all":
        return among_all(taught, others)
    if protocol == "pair":
        return pair(taught, *others)
    return topic(taught) if protocol == "topic" else once(taught)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--protocol", nargs="+", default=["pair", "topic", "once", "all"])
    parser.add_argument("--traffic", nargs="+", default=["none", "heard"], choices=["none", "heard"])
    parser.add_argument("--only", nargs="*", help="taught/other, or a set's name")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    sets = {"demo": demo()} | {folder.name: load(folder) for folder in options.folders}
    found: dict[str, Any] = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        for protocol, taught, other in runs(list(sets.values())):
            name = f"{taught}/{other}".rstrip("/")
            wanted = [f"{protocol} {name} {traffic}" for traffic in options.traffic]
            wanted = [key for key in wanted if key not in found]
            if protocol not in options.protocol or (options.only and name not in options.only) or not wanted:
                continue
            data = [sets[one] for one in (taught, other) if one]
            if protocol == "all":
                data += [one for name, one in sets.items() if name not in ("demo", taught)]
            untaught = Path(scratch) / "+".join(sorted(one.name for one in data))
            make(untaught, data)
            groups = groups_of(protocol, data[0], data[1:])
            for key in wanted:
                found[key] = measure(Path(scratch) / "taught", untaught, groups, key.endswith("heard"))
                shutil.rmtree(Path(scratch) / "taught")
                write_json(options.out, found, indent=1)
                show(key, found[key])


def make(folder: Path, data: Sequence[Dataset]) -> None:
    if folder.exists():
        return
    for other in folder.parent.iterdir():
        shutil.rmtree(other)
    with evokey.open(folder) as memory:
        for one in data:
            memory.add(prefix(one).documents if len(data) > 1 else one.documents)


def show(key: str, run: dict[str, Any]) -> None:
    parts = [f"{name} {run[name][0]:.3f} → {run[name][1]:.3f}" for name in ("taught", "related", "unrelated")]
    lost = run["unrelated"][1] / run["unrelated"][0] - 1 if run["unrelated"][0] else 0.0
    print(f"{key:60} {'; '.join(parts)} ({lost:+.1%}); {run['report']['weights']} {run['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
