"""Documents come and go without a rebuild, and BM25 is BM25."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from conftest import Dataset, Opener, ranking
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evokey
from evokey.demo.run import documents as stdlib_documents
from evokey.demo.run import questions

WORDS = "ant bee cat dog eel fox gnu hen ibis jay kiwi lark mole newt owl pug".split()
texts = st.lists(st.sampled_from(WORDS), min_size=0, max_size=6).map(" ".join)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.dictionaries(st.integers(0, 12), texts, min_size=1, max_size=4)),
        st.tuples(st.just("delete"), st.integers(0, 12)),
        st.tuples(st.just("reopen"), st.none()),
    ),
    max_size=12,
)


@pytest.mark.parametrize("encoder", ["bm25", "wordllama"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=operations)
def test_whatever_the_history_scores_are_those_of_a_fresh_index(
    tmp_path_factory: pytest.TempPathFactory, encoder: str, history: list[tuple[str, object]]
) -> None:
    folder = tmp_path_factory.mktemp("kb")
    memory, held = evokey.open(folder, encoder=encoder), {}
    for verb, what in history:
        if verb == "add":
            memory.add([{"id": str(number), "text": text} for number, text in what.items()])  # type: ignore[attr-defined]
            held |= {str(number): text for number, text in what.items()}  # type: ignore[attr-defined]
        elif verb == "delete" and str(what) in held:
            memory.delete([str(what)])
            del held[str(what)]
        elif verb == "reopen":
            memory.close()
            memory = evokey.open(folder)
    with memory, evokey.open(tmp_path_factory.mktemp("fresh"), encoder=encoder) as fresh:
        fresh.add([{"id": id, "text": text} for id, text in held.items()])
        for query in ("ant bee cat", "dog", "owl fox owl"):
            assert dict(ranking(memory, query, k=20)) == dict(ranking(fresh, query, k=20))


def test_segments_are_merged_and_dead_rows_swept_while_rankings_stay(opened: Opener, tmp_path: Path) -> None:
    memory = opened("kb", encoder="bm25")
    chance = random.Random(0)
    made = [{"id": str(n), "text": " ".join(chance.choices(WORDS, k=8)) + f" number{n}"} for n in range(5000)]
    for start in range(0, 5000, 500):
        memory.add(made[start : start + 500])
    memory.delete([str(n) for n in range(0, 5000, 2)])
    memory.close()
    segments = [path for path in (tmp_path / "kb" / "keys" / "bm25").iterdir() if path.is_dir()]
    assert len(segments) <= 4
    again, fresh = opened("kb"), opened("fresh", encoder="bm25")
    fresh.add([one for n, one in enumerate(made) if n % 2])
    for query in ("ant bee", "number4999 cat", "kiwi newt owl pug"):
        assert ranking(again, query, k=50) == ranking(fresh, query, k=50)


@pytest.mark.parametrize("name", ["stdlib", "scifact"])
def test_bm25_agrees_with_bm25s(opened: Opener, dataset: object, name: str) -> None:
    import bm25s

    if name == "stdlib":
        corpus, asked = stdlib_documents(), [question.text for question in questions()][:100]
    else:
        data: Dataset = dataset(name)  # type: ignore[operator]
        corpus, asked = data.documents, sorted(data.judged)[:100]
    memory = opened(encoder="bm25", keys="full")
    memory.add(corpus)
    encoder = memory.index.retrievers[0]._encoder  # type: ignore[attr-defined]

    def tokens(text: str) -> list[str]:
        return [word for word, count in encoder.documents([text])[0].items() for _ in range(int(count))]

    reference = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    reference.index([tokens(f"{one.title} {one.text}") for one in corpus], show_progress=False)
    for query in asked:
        scores = reference.get_scores(tokens(query)) if tokens(query) else np.zeros(len(corpus))
        expected = {one.id: float(score) for one, score in zip(corpus, scores, strict=True) if score > 0}
        found = ranking(memory, query, k=100)
        best = sorted(expected.values(), reverse=True)[:100]
        assert [score for _, score in found] == pytest.approx(best, rel=1e-4)
        assert all(score == pytest.approx(expected[id], rel=1e-4) for id, score in found)


def test_wordllama_scores_are_cosines(opened: Opener) -> None:
    memory = opened(encoder="wordllama")
    memory.add([{"id": "same", "text": "a red apple"}, {"id": "other", "text": "quantum mechanics"}])
    scores = dict(ranking(memory, "a red apple"))
    assert scores["same"] == pytest.approx(1.0, abs=1e-6)
    assert scores["other"] < 0.5


def test_the_k_best_are_the_first_of_all_whatever_k(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evokey.scoring.postings.KEPT", 2)  # postings go and are made again all the while
    monkeypatch.setattr("evokey.scoring.postings.FEWEST_KEPT", 0)
    memory = opened(encoder="bm25")
    chance = random.Random(1)
    made = [{"id": str(n), "text": " ".join(chance.choices(WORDS, k=1 + n % 9))} for n in range(4000)]
    memory.add([*made, {"id": "rare", "text": "ant unicorn"}])
    memory.delete([str(n) for n in range(0, 4000, 7)])
    for number in range(1, 40, 7):
        memory.feedback(f"ant bee word{number}", relevant=[str(number)])
    memory.evolve()
    assert memory.stats().documents_touched
    for query in ("ant", "unicorn", "unicorn ant", "ant bee cat", "pug pug owl word8", "nothing of this"):
        for epoch in (0, None):
            whole = ranking(memory, query, k=5000, epoch=epoch)
            assert [score for _, score in whole] == sorted((score for _, score in whole), reverse=True)
            for k in (1, 2, 10, 61, 400):
                assert ranking(memory, query, k=k, epoch=epoch) == whole[:k]
