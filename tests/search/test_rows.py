"""Documents that own several rows: found by the best of them, taught by the one that matched."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import LENS, Always, Dataset, Opener

import evokey
from evokey.evolution import pools
from evokey.evolution.attribution import attribute
from evokey.evolution.ndcg import ndcg
from evokey.evolution.trial import Trial
from evokey.search.retriever import search
from evokey.types import Choice

CHUNKS = {"name": "chunks", "tokens": 60, "overlap": 10}
CHOICES = [Choice(), Choice(penalty=0.2), Choice(0.5, 1.0), Choice(1.0, 4.0, 0.0, 0.1), Choice(0.5, 2.0, 2.0, 0.0)]


@pytest.fixture
def book() -> list[evokey.Document]:
    """One long document of many subjects, and short ones."""
    subjects = {
        "volcano": "Magma rises through the crust and erupts as lava over the slopes of the mountain.",
        "bakery": "Knead the dough, let the yeast work overnight and bake the loaf in a hot oven.",
        "sailing": "Trim the jib and the mainsail, then tack against the wind towards the harbour.",
    }
    long = "\n\n".join(f"# {name}\n\n{text} {text}" for name, text in subjects.items())
    short = [evokey.Document(name, text) for name, text in subjects.items()]
    return [evokey.Document("book", long, "Everything"), *short]


@pytest.mark.parametrize("encoder", ["bm25", "wordllama"])
def test_a_document_scores_as_its_best_row_and_is_found_once(
    opened: Opener, book: list[evokey.Document], encoder: str
) -> None:
    memory = opened(encoder=encoder, keys=CHUNKS)
    memory.add(book)
    rows = memory.index.retrievers[0].base
    assert rows.sizes(np.arange(1, 2)) > 1 and len(rows) == len(book)
    for query in ("lava of a volcano", "how long does yeast work", "tack against the wind"):
        hits = memory.search(query)
        assert len({hit.id for hit in hits}) == len(hits)
        block = memory.index.retrievers[0].base.fetch(np.array([1])).block
        question = memory.index.retrievers[0].question(query, {})
        assert next(hit.score for hit in hits if hit.id == "book") == block.scores(question).max()


def test_credit_goes_to_the_chunk_that_matched(opened: Opener, book: list[evokey.Document]) -> None:
    memory = opened(encoder="wordllama", keys=CHUNKS)
    memory.add(book)
    memory.feedback("lava erupts", relevant=["book"])
    memory.feedback("bake bread with yeast", relevant=["book"])
    taught = attribute(memory.index.retrievers[0], memory.composer.log(2).taught)
    rows = dict(zip([taught.texts[c] for c in taught.pairs.columns], taught.pairs.rows.tolist(), strict=True))
    chunks = [memory.index.retrievers[0]._keys.rows(book[0], memory.ledger.words)[row].text for row in rows.values()]  # type: ignore[union-attr]
    assert "Magma" in dict(zip(rows, chunks, strict=True))["lava erupts"]
    assert "dough" in dict(zip(rows, chunks, strict=True))["bake bread with yeast"]


@pytest.mark.parametrize("encoder", ["bm25", "wordllama"])
def test_a_trial_finds_what_searches_find_among_chunks(opened: Opener, dataset: object, encoder: str) -> None:
    data: Dataset = dataset("cranfield")  # type: ignore[operator]
    memory = opened(encoder=encoder, keys=CHUNKS)
    memory.add(data.documents)
    for turn, (query, relevant) in enumerate(sorted(data.judged.items())[:60]):
        units = [f"flow of {query.split()[-1]}", data.documents[turn].title] if turn % 2 else None
        memory.feedback(query, relevant=relevant, units=units)
    lessons, retriever = memory.composer.log(memory.ledger.lessons.last).taught, memory.index.retrievers[0]
    kept = pools.CurrentPools(retriever, memory.ledger.pools, memory.index.position, memory.index.live)
    asked, teaching = lessons.only(lessons.queries[:20]), frozenset(lessons.queries[20:])
    attribution = attribute(retriever, lessons).only(teaching)
    outcomes = Trial(retriever, attribution, asked, kept).outcomes(CHOICES)
    for choice in CHOICES:
        overlay = attribution.overlay(choice)
        for place, query in enumerate(asked.queries):
            found = search(retriever, retriever.question(query, overlay.learned), 10, overlay)
            assert outcomes[choice][place] == pytest.approx(ndcg(found.numbers, asked.grades[query]), abs=0.02)
    assert len({round(float(outcomes[choice].mean()), 6) for choice in CHOICES}) >= len(CHOICES) - 1


@pytest.mark.parametrize("policy", ["guarded", "lensed", "paper"])
@pytest.mark.parametrize("encoder", [["bm25"], ["wordllama"], ["bm25", "wordllama"]])
def test_chunked_memories_forget_exactly_and_open_as_they_were(
    opened: Opener, dataset: object, encoder: list[str], policy: str, always: Always
) -> None:
    data: Dataset = dataset("cranfield")  # type: ignore[operator]
    documents, queries = data.documents[:300], sorted(data.judged)[:40]
    known = {document.id for document in documents}
    lessons = [(q, {i: g for i, g in data.judged[q].items() if i in known}) for q in queries]
    lessons = [(query, relevant) for query, relevant in lessons if relevant]
    if policy == "lensed":
        always(LENS)
        policy = "guarded"
    taught, twin = (opened(name, encoder=encoder, keys=CHUNKS, policy=policy, now=lambda: 0.0) for name in "ab")
    for memory in (taught, twin):
        memory.add(documents[:150])
        memory.add(documents[150:])
        for place, (query, relevant) in enumerate(lessons):
            if memory is taught and place % 3 == 0:
                memory.feedback(query.upper(), relevant=list(relevant)[:1], actor="wrong")
            memory.feedback(query, relevant=relevant, actor="right")
    taught.evolve()
    twin.evolve()
    taught.forget(actor="wrong")
    found = [[(hit.id, hit.score) for hit in taught.search(query)] for query, _ in lessons]
    if policy == "guarded":
        assert found == [[(hit.id, hit.score) for hit in twin.search(query)] for query, _ in lessons]
    taught.close()
    again = opened("a")
    assert found == [[(hit.id, hit.score) for hit in again.search(query)] for query, _ in lessons]
    hit = again.search(lessons[0][0])[0]
    views = again.explain(hit.id, lessons[0][0]).views
    if len(encoder) == 1:
        assert views[0].after == pytest.approx(hit.score, rel=1e-6)


def test_deleted_and_replaced_documents_take_all_their_rows_with_them(
    opened: Opener, book: list[evokey.Document]
) -> None:
    memory = opened(keys=CHUNKS)
    memory.add(book)
    memory.feedback("lava erupts", relevant=["book"])
    memory.evolve()
    memory.delete(["book"])
    assert "book" not in {hit.id for hit in memory.search("lava erupts")}
    memory.add([evokey.Document("book", "Now only about knitting wool.", "Everything")])
    assert memory.search("knitting wool")[0].id == "book"
    memory.add([book[0]])
    assert memory.search("lava erupts")[0].id == "book"
