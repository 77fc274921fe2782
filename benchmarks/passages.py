"""Retrieval by passage: how often the passage that holds the gold answer is found, and whether `auto` keys cost
anything.

    python benchmarks/passages.py [DATA_DIR] --out FILE [--only PART …] [--most N]

Long documents are made of real ones: abstracts of SciFact and contexts of PubMedQA joined in random order (by a fixed
seed), and the sessions of LoCoMo, whole conversations of dozens of turns. The gold passage is the abstract, the context
or the turn. A passage that was found is right if it holds the gold passage, or lies in it by half at least.

| part    | measures                                                                                  |
|---------|-------------------------------------------------------------------------------------------|
| recall  | the right passage among the first k, and the right document (nDCG@10)                     |
| taught  | the same before and after half of the questions were taught, for the other half           |
| short   | nDCG@10 of `auto` beside `full` on sets of short documents, by the longest "short"        |
| rows    | memory and disk of a row                                                                  |
| speed   | a search among documents of several rows beside as many of one row, BM25, compiled        |
| answers | answers of a small local model from the beginning of documents, and from their passages   |

The result file keeps what it has; delete it to measure again.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import evokey
from evokey import registry
from evokey.bench.speed.texts import corpus, questions
from evokey.bench.speed.timing import RUN, time_searches
from evokey.evolution import ndcg as ndcg_
from evokey.generators.cited import Cited
from evokey.protocols import Corpus
from evokey.scoring import compiled
from evokey.search.view import View
from evokey.types import Attempt, Document, Hit, KeyText

SHARED = Path(__file__).parents[2] / "shared" / "data"
WORDS = 200
"""Of a window of the plain splitter."""
JOINED = {"scifact": 20, "pubmedqa_l": 10}
"""Documents that are joined into one."""
DEPTHS = (1, 3, 5, 10)
ENCODERS: dict[str, Any] = {"bm25": "bm25", "hybrid": ["bm25", "wordllama"]}
KEYS = ("full", "chunks", "auto")
SHORT = ("scifact", "nfcorpus", "cranfield", "locomo10", "pubmedqa_l")
WHOLE = (512, 1_024, 2_048)
ANSWERED = 12
"""Questions that a model answers, of a set: half a minute each on a busy core."""
ROWS = 100_002
"""Of the searches that are timed."""


@dataclass(frozen=True)
class Gold:
    document: str
    start: int
    end: int


@dataclass(frozen=True)
class LongSet:
    name: str
    documents: Sequence[dict[str, str]]
    questions: Mapping[str, str]
    gold: Mapping[str, Sequence[Gold]]
    answers: Mapping[str, str]


def lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as opened:
        yield from map(json.loads, opened)


def read_judgements(folder: Path) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for line in (folder / "qrels" / "test.tsv").read_text("utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        if float(grade) > 0:
            found.setdefault(query, {})[document] = float(grade)
    return found


def join(folder: Path) -> LongSet:
    """Long documents, each of several real ones in random order; of LoCoMo, each a session in its own order."""
    every, name = list(lines(folder / "corpus.jsonl")), folder.name
    if name in JOINED:
        random.Random(7).shuffle(every)
        size = JOINED[name]
        parts = {f"{name}-{at // size}": every[at : at + size] for at in range(0, len(every), size)}
    else:
        parts = {}
        for one in every:
            parts.setdefault(one["_id"].rpartition(":")[0], []).append(one)
    documents, place = [], dict[str, Gold]()
    for id, some in parts.items():
        text = ""
        for one in some:
            own = f"{one['title']}. {one['text']}".strip(". ") if name in JOINED else one["text"]
            place[one["_id"]] = Gold(id, len(text), len(text) + len(own))
            text += f"{own}\n\n"
        documents.append({"id": id, "text": text, "title": "" if name in JOINED else some[0]["title"]})
    queries = {one["_id"]: one["text"] for one in lines(folder / "queries.jsonl")}
    right = read_judgements(folder)
    file = folder / "answers.jsonl"
    answers = {one["_id"]: str(one["answer"]) for one in lines(file)} if file.exists() else {}
    gold = {id: [place[one] for one in right[id] if one in place] for id in right}
    return LongSet(name, documents, queries, {id: some for id, some in gold.items() if some}, answers)


def windows(data: LongSet) -> tuple[list[dict[str, str]], dict[str, Gold]]:
    """The plain splitter: so many words each, whatever they say."""
    documents, place = [], {}
    for one in data.documents:
        text, at, ends = one["text"], 0, list[int]()
        words = text.split()
        for word in words:
            at = text.index(word, at) + len(word)
            ends.append(at)
        for first in range(0, len(words), WORDS):
            start, end = ends[first] - len(words[first]), ends[min(first + WORDS, len(words)) - 1]
            id = f"{one['id']}@{start}"
            place[id] = Gold(one["id"], start, end)
            documents.append({"id": id, "text": text[start:end], "title": one["title"]})
    return documents, place


def right(found: Gold, gold: Sequence[Gold]) -> bool:
    """Whether a passage holds a gold one, or lies in it by half at least."""
    for one in gold:
        common = min(found.end, one.end) - max(found.start, one.start)
        inside = common == one.end - one.start or 2 * common >= found.end - found.start
        if found.document == one.document and common > 0 and inside:
            return True
    return False


def ndcg(ids: Sequence[str], grades: Mapping[str, float]) -> float:
    """nDCG@10 of one ranking."""
    numbers = {id: number for number, id in enumerate(dict.fromkeys([*ids, *grades]))}
    return ndcg_.ndcg([numbers[id] for id in ids], {numbers[id]: grade for id, grade in grades.items()})


def spot(hit: Hit) -> Gold:
    return Gold(hit.id, hit.passage.start, hit.passage.end)


def measure(data: LongSet, asked: Sequence[str], search: Callable[[str], list[Gold]]) -> dict[str, float]:
    """Recall of the right passage among the first k, nDCG@10 of documents, and how much there is to read."""
    passages, documents, read = dict.fromkeys(DEPTHS, 0), list[float](), list[int]()
    for id in asked:
        found, gold = search(data.questions[id]), data.gold[id]
        places = [rank for rank, one in enumerate(found) if right(one, gold)]
        for k in DEPTHS:
            passages[k] += bool(places and places[0] < k)
        ids = list(dict.fromkeys(one.document for one in found))
        documents.append(ndcg(ids, dict.fromkeys((one.document for one in gold), 1.0)))
        read += [one.end - one.start for one in found[:5]]
    shares = {f"recall@{k}": passages[k] / len(asked) for k in DEPTHS}
    return {**shares, "ndcg@10": statistics.fmean(documents), "characters": statistics.fmean(read)}


def systems(data: LongSet, encoder: Any) -> Iterator[tuple[str, Callable[[str], list[Gold]]]]:
    for keys in KEYS:
        with tempfile.TemporaryDirectory() as folder, evokey.open(folder, encoder=encoder, keys=keys) as memory:
            memory.add(data.documents)
            yield keys, lambda query: [spot(hit) for hit in memory.search(query)]
            if keys == "auto":
                yield "auto, group=passage", lambda query: [spot(hit) for hit in memory.search(query, group="passage")]
    documents, place = windows(data)
    with tempfile.TemporaryDirectory() as folder, evokey.open(folder, encoder=encoder) as memory:
        memory.add(documents)
        yield f"windows of {WORDS} words", lambda query: [place[hit.id] for hit in memory.search(query)]


def sample(data: LongSet, most: int) -> list[str]:
    ids = sorted(data.gold)
    random.Random(3).shuffle(ids)
    return sorted(ids[:most])


def recall(folders: Path, most: int) -> Iterator[dict[str, Any]]:
    for name in (*JOINED, "locomo10"):
        data = join(folders / name)
        asked = sample(data, most)
        lengths = [len(one["text"]) for one in data.documents]
        about = {
            "documents": len(data.documents),
            "mean characters": statistics.fmean(lengths),
            "questions": len(asked),
        }
        for label, encoder in ENCODERS.items():
            for system, search in systems(data, encoder):
                yield {"set": name, **about, "encoder": label, "system": system, **measure(data, asked, search)}


def taught(folders: Path, most: int) -> Iterator[dict[str, Any]]:
    for name in (*JOINED, "locomo10"):
        data = join(folders / name)
        ids = sample(data, most)
        teach, test = ids[::2], ids[1::2]
        for keys in KEYS:
            with tempfile.TemporaryDirectory() as folder, evokey.open(folder, encoder="bm25", keys=keys) as memory:
                memory.add(data.documents)
                search = lambda query, memory=memory: [spot(hit) for hit in memory.search(query)]  # noqa: E731
                before = measure(data, test, search)
                named = {id: list({one.document for one in data.gold[id]}) for id in teach}
                memory.feedback_many({"query": data.questions[id], "relevant": named[id]} for id in teach)
                report = memory.evolve()
                after, own = measure(data, test, search), measure(data, teach, search)
            yield {
                "set": name, "keys": keys, "questions": len(test), "published": report.published,
                "before": before, "after": after, "taught": own,
            }  # fmt: skip


def short(folders: Path, most: int) -> Iterator[dict[str, Any]]:
    """Documents ranked by `auto` keys of several lengths: what a set of short documents loses, and one of long ones
    gains."""
    for name, texts, queries, grades in read_sets(folders):
        ids = sorted(grades)[: 2 * most]
        for label, encoder in ENCODERS.items():
            kinds = {"full": "full", **{f"auto, whole {size}": {"name": "auto", "whole": size} for size in WHOLE}}
            full: list[list[tuple[str, float]]] = []
            for system, keys in kinds.items():
                with tempfile.TemporaryDirectory() as at, evokey.open(at, encoder=encoder, keys=keys) as memory:
                    memory.add(texts)
                    found = [[(hit.id, hit.score) for hit in memory.search(queries[id])] for id in ids]
                    count = int(memory.index.retrievers[0].base.sizes(memory.index.live).sum())
                full = full or found
                scores = [ndcg([id for id, _ in one], grades[asked]) for one, asked in zip(found, ids, strict=True)]
                yield {
                    "set": name, "encoder": label, "system": system, "questions": len(ids), "documents": len(texts),
                    "rows": count, "ndcg@10": statistics.fmean(scores), "same": found == full,
                }  # fmt: skip


def read_sets(
    folders: Path,
) -> Iterator[tuple[str, list[dict[str, str]], dict[str, str], dict[str, dict[str, float]]]]:
    """Sets as they are, and the long documents made of them."""
    for name in SHORT:
        folder = folders / name
        every = lines(folder / "corpus.jsonl")
        texts = [{"id": one["_id"], "title": one["title"], "text": one["text"]} for one in every]
        yield name, texts, {one["_id"]: one["text"] for one in lines(folder / "queries.jsonl")}, read_judgements(folder)
    for name in (*JOINED, "locomo10"):
        data = join(folders / name)
        grades = {id: {one.document: 1.0 for one in some} for id, some in data.gold.items()}
        yield f"{name}, long", list(data.documents), dict(data.questions), grades


def rows(folders: Path, most: int) -> Iterator[dict[str, Any]]:
    """What a row takes: on disk, and in memory beside that (the files are mapped)."""
    data = join(folders / "scifact")
    for label, encoder in {"bm25": "bm25", "wordllama": "wordllama"}.items():
        for keys in KEYS:
            with tempfile.TemporaryDirectory() as folder:
                with evokey.open(folder, encoder=encoder, keys=keys) as memory:
                    memory.add(data.documents)
                disk = sum(file.stat().st_size for file in (Path(folder) / "keys").rglob("*") if file.is_file())
                tracemalloc.start()
                with evokey.open(folder) as memory:
                    memory.search("cells")
                    held = tracemalloc.get_traced_memory()[0]
                    count = int(memory.index.retrievers[0].base.sizes(memory.index.live).sum())
                tracemalloc.stop()
            yield {"encoder": label, "keys": keys, "rows": count, "disk": disk / count, "memory": held / count}


class Thirds:
    """Each line of a text is a row."""

    def rows(self, document: Document, corpus: Corpus) -> list[KeyText]:
        ends = [at for at, sign in enumerate(document.text) if sign == "\n"]
        places = zip([0, *(at + 1 for at in ends)], [*ends, len(document.text)], strict=True)
        return [KeyText(document.text[start:end], start, end) for start, end in places]


def speed(folders: Path, most: int) -> Iterator[dict[str, Any]]:
    """The same texts: each a document of its own, or three of them a document of three rows. In turns, in one run."""
    assert compiled.load()
    texts = [" ".join(one.text.split()) for one in corpus(folders, ROWS)]
    threes = ["\n".join(texts[at : at + 3]) for at in range(0, len(texts), 3)]
    asked = questions(folders, 400)
    with ExitStack() as stack:
        places = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        full = stack.enter_context(evokey.open(places[0], encoder="bm25", keys="full"))
        several = stack.enter_context(evokey.open(places[1], encoder="bm25", keys=Thirds()))
        full.add([{"id": str(number), "text": text} for number, text in enumerate(texts)])
        several.add([{"id": str(number), "text": text} for number, text in enumerate(threes)])
        for taught in (False, True):
            if taught:
                for memory, size in ((full, 3), (several, 1)):
                    lessons = [{"query": asked[n], "relevant": [str(n * size)]} for n in range(0, len(asked), 2)]
                    memory.feedback_many(lessons)
                    memory.evolve()
            views = {"one row": full.index.view(), "three rows": several.index.view()}
            searches = {name: partial(_rank, view, asked) for name, view in views.items()}
            seconds = time_searches(searches, range(len(asked)), RUN)
            medians = {name: 1e6 * statistics.median(times[RUN:]) for name, times in seconds.items()}
            yield {
                "rows": len(texts), "k": 10, "taught": taught, "median us": medians,
                "ratio": medians["three rows"] / medians["one row"],
            }  # fmt: skip


def _rank(view: View, asked: Sequence[str], number: int) -> None:
    view.rank(asked[number], 10)


def answers(folders: Path, most: int) -> Iterator[dict[str, Any]]:
    """The same three documents, of which a small local model reads the beginnings, or the passages. Whether these hold
    the gold passage is counted for all questions; the model answers the first of them."""
    llm = registry.build("llm", {"name": "llamacpp"})
    for name in ("locomo10",):
        data = join(folders / name)
        asked = [id for id in sample(data, most) if data.answers.get(id)]
        with tempfile.TemporaryDirectory() as folder, evokey.open(folder) as memory:
            memory.add(data.documents)
            found = {id: memory.search(data.questions[id], k=3) for id in asked}
            held = {"beginnings": list[bool](), "passages": list[bool]()}
            scores = {system: list[float]() for system in held}
            reader = Cited(llm, passages=3, passage_tokens=120, context=2048, max_tokens=40)
            for place, id in enumerate(asked):
                whole = [Hit(one.id, one.score, one.document) for one in found[id]]
                for system, hits in (("beginnings", whole), ("passages", found[id])):
                    shown = _read(reader, data.questions[id], hits)
                    held[system].append(any(_squeeze(data, gold) in shown for gold in data.gold[id]))
                    if place < ANSWERED:
                        scores[system].append(_score(reader, data.questions[id], hits, data.answers[id]))
        for system, right_words in scores.items():
            yield {
                "set": name, "system": system, "model": llm.identity, "questions": len(asked),
                "held": statistics.fmean(held[system]), "answered": len(right_words),
                "token-f1": statistics.fmean(right_words),
            }  # fmt: skip


def _score(reader: Cited, query: str, hits: Sequence[Hit], gold: str) -> float:
    said = reader.answer(query, hits)
    attempt = Attempt(query, tuple(hits), replace(said, text=said.plain), (gold,))
    return float(registry.build("verifier", {"name": "token-f1"}).verify(attempt).score or 0.0)


def _read(reader: Cited, query: str, hits: Sequence[Hit]) -> str:
    """What the model is shown."""
    asking = reader.prepare(query, hits)
    return "" if asking is None else asking.messages[-1].text


def _squeeze(data: LongSet, gold: Gold) -> str:
    """The beginning of a gold passage, in one line as models are shown it."""
    text = next(one["text"] for one in data.documents if one["id"] == gold.document)
    return " ".join(text[gold.start : gold.end].split())[:60]


PARTS = {"answers": answers, "recall": recall, "taught": taught, "short": short, "rows": rows, "speed": speed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=SHARED)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--most", type=int, default=150, help="questions of a set")
    options = parser.parse_args()
    found = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    for name in options.only:
        if name not in found:
            begun = time.perf_counter()
            found[name] = []
            for one in PARTS[name](options.data, options.most):
                print(json.dumps(one), flush=True)
                found[name].append(one)
            print(f"{name}: {time.perf_counter() - begun:.0f} s", flush=True)
            options.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
