"""Unrelated traffic keeps its results."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Opener

import evokey
from evokey.evolution.crossfit import KEYS_LOSS
from evokey.evolution.ndcg import ndcg


def both(opened: Opener, name: str, encoder: str, sets: dict[str, Any]) -> evokey.Memory:
    memory = opened(name, encoder=encoder, policy={"name": "guarded", "lens": "none"})
    for label, data in sets.items():
        memory.add([evokey.Document(f"{label}/{one.id}", one.text, one.title) for one in data.documents])
    return memory


def teach(memory: evokey.Memory, data: Any) -> None:
    for query in sorted(data.judged)[::2]:
        memory.feedback(query, relevant={f"taught/{id}": grade for id, grade in data.judged[query].items()})


def found(memory: evokey.Memory, queries: list[str], **options: Any) -> list[list[str]]:
    return [[hit.id for hit in memory.search(query, **options)] for query in queries]


def kept(before: list[list[str]], after: list[list[str]]) -> float:
    """How much of what was found is found, as nDCG@10."""
    scores = [
        ndcg([was.index(id) if id in was else -1 for id in now], dict.fromkeys(range(len(was)), 1.0))
        for was, now in zip(before, after, strict=True)
        if was
    ]
    return sum(scores) / len(scores)


@pytest.mark.parametrize("encoder", ["bm25", "wordllama"])
def test_documents_that_learned_do_not_displace_other_results(opened: Opener, dataset: Any, encoder: str) -> None:
    sets = {"taught": dataset("scifact"), "other": dataset("nfcorpus")}
    queries = sorted(sets["other"].judged)[:120]
    told = {}
    for heard in (True, False):
        memory = both(opened, f"{heard}", encoder, sets)
        before = found(memory, queries) if heard else found(memory, queries, epoch=0)
        if not heard:
            memory.forget(traffic=True)
        teach(memory, sets["taught"])
        report = memory.evolve()
        assert report.published and report.held_out is not None and report.held_out.after >= report.held_out.before
        told[heard] = kept(before, found(memory, queries))
    assert told[True] >= 1 - 3 * KEYS_LOSS  # the guard looked at those far from the lessons alone
    assert encoder == "bm25" or told[False] >= 1 - 5 * KEYS_LOSS  # what was learned acts near the lessons alone


def test_related_traffic_changes_no_choice(opened: Opener, dataset: Any) -> None:
    data = dataset("scifact")
    reports = []
    for heard in (True, False):
        memory = both(opened, f"{heard}", "bm25", {"taught": data})
        if heard:
            found(memory, sorted(data.judged)[1::2])
        teach(memory, data)
        reports.append(memory.evolve().choice)
    assert reports[0] == reports[1]
