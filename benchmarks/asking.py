"""Answers before and after teaching: LoCoMo's questions, a small local model, and the gold answers.

    python benchmarks/asking.py ../shared/data/locomo10 --out FILE [--questions 48]

Half of the questions teach: they go through memory.learn with the set's judgements, then one evolve. A sample of the
other half that has gold answers is asked of the untaught memory, of the taught one, and of the model with the judged
documents in hand (so that one sees what is lost in retrieval, and what in reading). Each answer is read from three
passages. Where both memories find the same passages in the same order, the answer is the same, and not made twice.
Answers already in the result file are not made again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from holdout import Collection, lines, paired_p
from regimes import copied, halves

import evokey
from evokey.errors import LLMFailed
from evokey.protocols import Generator
from evokey.settings import generator as made
from evokey.settings import llm, settings_of
from evokey.types import Answer, Hit
from evokey.verifiers.rouge import Rouge
from evokey.verifiers.token_f1 import f1

PASSAGES, MAX_TOKENS = 3, 40
MODEL = {"name": "llamacpp"}
READER = {"name": "cited", "passages": PASSAGES, "max_tokens": MAX_TOKENS}
STATES = ("untaught", "taught", "judged")


def scored(answer: Answer, gold: str, rouge: Rouge) -> dict[str, Any]:
    return {
        "answer": answer.text,
        "f1": f1(answer.text, gold),
        "rouge_l": rouge.score(answer.text, (gold,)),
        "tokens": answer.spent.answer_tokens,
        "seconds": answer.spent.seconds,
    }


def answered(
    reader: Generator, query: str, hits: Mapping[str, list[Hit]], had: dict[str, Any], gold: str, rouge: Rouge
) -> dict[str, Any]:
    """A question in every state, unless it was answered before from the same passages."""
    row = dict(had)
    for state in STATES:
        found = [hit.id for hit in hits[state]]
        same = [row[other] for other in STATES if row.get(other, {}).get("read") == found]
        if not same:
            try:
                answer = reader.answer(query, hits[state])
            except LLMFailed:
                answer = Answer(query, "", (), (), reader.identity)
            same = [{"read": found} | scored(answer, gold, rouge)]
        row[state] = same[0]
    return row


def summary(rows: list[dict[str, Any]], right: Mapping[str, set[str]]) -> dict[str, Any]:
    told: dict[str, Any] = {"questions": len(rows)}
    for state in STATES:
        told[state] = {
            "f1": float(np.mean([row[state]["f1"] for row in rows])),
            "rouge_l": float(np.mean([row[state]["rouge_l"] for row in rows])),
            "recall": float(np.mean([len(right[row["id"]] & {*row[state]["read"]}) / len(right[row["id"]])
                                     for row in rows])),
            "some_right": float(np.mean([bool(right[row["id"]] & {*row[state]["read"]}) for row in rows])),
            "unanswered": float(np.mean([not row[state]["answer"] for row in rows])),
        }  # fmt: skip
    changed = [row for row in rows if row["untaught"]["read"] != row["taught"]["read"]]
    gained = [row for row in rows if recall(row, "taught", right) > recall(row, "untaught", right)]
    for name, some in (("other_passages", changed), ("gained", gained)):
        told[name] = {"questions": len(some)} | {
            state: float(np.mean([row[state]["f1"] for row in some])) if some else None for state in STATES
        }
    told["p_f1"], told["p_rouge_l"] = (
        paired_p(*(np.array([row[state][measure] for row in rows]) for state in ("untaught", "taught")))
        for measure in ("f1", "rouge_l")
    )
    return told


def recall(row: dict[str, Any], state: str, right: Mapping[str, set[str]]) -> int:
    return len(right[row["id"]] & {*row[state]["read"]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=int, default=48)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    data = Collection(options.folder)
    answers = {row["_id"]: str(row["answer"]) for row in lines(options.folder / "answers.jsonl")}
    had = json.loads(options.out.read_text("utf-8"))["rows"] if options.out.exists() else []
    by_id = {row["id"]: row for row in had}
    taught, tested = halves(data, 0)
    asked = [query for query in tested if answers.get(query, "").strip()][: options.questions]
    right = {query: set(data.judged[query]) for query in asked}
    model = llm(settings_of(llm=MODEL))
    reader = made(settings_of(llm=MODEL, generator=READER), model)
    assert model is not None and reader is not None
    rouge, rows = Rouge(), []
    with tempfile.TemporaryDirectory() as base:
        with evokey.open(base) as memory:
            memory.add(data.documents)
            hits = {query: {"untaught": memory.search(data.queries[query], PASSAGES)} for query in asked}
            for query in asked:
                best = sorted(data.judged[query], key=lambda id: -data.judged[query][id])[:PASSAGES]
                hits[query]["judged"] = [Hit(id, 1.0, memory.get(id)) for id in best]
        with copied(Path(base)) as memory:
            lessons = sum(
                memory.learn(data.queries[query], relevant=data.judged[query]).lesson is not None for query in taught
            )
            report = memory.evolve()
            for query in asked:
                hits[query]["taught"] = memory.search(data.queries[query], PASSAGES)
    print(f"{lessons} lessons of {len(taught)} queries: {report.reason}", flush=True)
    for query in asked:
        before = {"id": query, "query": data.queries[query], "gold": answers[query]} | by_id.get(query, {})
        rows.append(answered(reader, data.queries[query], hits[query], before, answers[query], rouge))
        told = summary(rows, right)
        result = {"dataset": data.name, "model": model.identity, "passages": PASSAGES, "max_tokens": MAX_TOKENS}
        result |= {"lessons": lessons, **told, "rows": rows + [by_id[id] for id in asked[len(rows) :] if id in by_id]}
        options.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
        print(len(rows), {state: round(rows[-1][state]["f1"], 2) for state in STATES},
              repr(rows[-1]["taught"]["answer"]), "|", answers[query], f"{rows[-1]['taught']['seconds']:.1f} s",
              flush=True)  # fmt: skip
    print({name: value for name, value in result.items() if name != "rows"})


if __name__ == "__main__":
    main()
