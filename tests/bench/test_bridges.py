"""Bridges against the real libraries: the same measures there as here; a memory works as one of their parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import small_sets
from typer.testing import CliRunner

pytest.importorskip("ir_measures", reason="the benchmark's measures need: pip install 'evokey[bench]'")

import evokey
from evokey.bench.data import load
from evokey.cli.app import app
from evokey.errors import InvalidInput

WANTED = "SKIPPED FOR WANT OF A PACKAGE: pip install 'evokey[bridges]'"
pytestmark = pytest.mark.filterwarnings("default")
"""These libraries warn about themselves."""


@pytest.fixture
def taught(tmp_path: Path) -> Iterator[evokey.Memory]:
    """A memory of the small set that was taught the first wording of every question."""
    data = load(small_sets.gap(tmp_path / "gap"))
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add(data.documents)
        memory.feedback_many(
            [{"query": data.queries[id], "relevant": judged} for id, judged in data.judged.items() if id[0] == "a"]
        )
        assert memory.evolve().published
        yield memory


def test_ranx_measures_run_files_as_the_benchmark_does(tmp_path: Path) -> None:
    ranx = pytest.importorskip("ranx", reason=WANTED)
    from evokey.bench.bridges import ranx as bridge

    folder, rankings = small_sets.magnet(tmp_path / "magnet"), tmp_path / "rankings"
    given = [folder, "--encoder", "bm25", "--policy", "none,guarded", "--seeds", 1, "--runs", rankings]
    result = CliRunner().invoke(app, ["bench", *map(str, given), "--out", str(tmp_path / "out"), "--json"])
    found = {one["policy"]: one["metrics"]["nDCG@10"] for one in json.loads(result.stdout)}
    runs = {name: run for run in bridge.runs(rankings) for name in found if f".{name}." in run.name}
    judged = bridge.qrels(load(folder), runs["none"])
    for name, run in runs.items():
        assert ranx.evaluate(judged, run, "ndcg@10") == pytest.approx(found[name])
    with pytest.raises(InvalidInput, match="holds no run files; make some with: evokey bench DATA --runs"):
        bridge.runs(tmp_path)


def test_a_memory_is_a_retriever_of_pyterrier(taught: evokey.Memory) -> None:
    pandas = pytest.importorskip("pandas", reason=WANTED)
    pyterrier = pytest.importorskip("pyterrier", reason=WANTED)
    from evokey.bench.bridges.pyterrier import Retriever

    topics = pandas.DataFrame([[f"b{n}", f"beg{n} root{n}"] for n in range(24)], columns=["qid", "query"])
    qrels = pandas.DataFrame([[f"b{n}", f"d{n}", 1] for n in range(24)], columns=["qid", "docno", "label"])
    assert Retriever(taught, epoch=0).transform(topics).empty, "untaught, the questions find nothing"
    systems = [Retriever(taught), Retriever(taught) % 1]
    table = pyterrier.Experiment(systems, topics, qrels, ["ndcg_cut_10", "num_ret"], names=["all", "first"])
    assert list(table["ndcg_cut_10"]) == [1, 1]
    assert table["num_ret"].iloc[1] == 24


def test_a_memory_is_a_model_of_mteb(tmp_path: Path) -> None:
    mteb = pytest.importorskip("mteb", reason=WANTED)
    from evokey.bench.bridges.mteb import Model

    data = load(small_sets.gap(tmp_path / "gap"))

    def teach(memory: evokey.Memory) -> None:
        lessons = [id for id in data.judged if id[0] == "a"]
        memory.feedback_many([{"query": data.queries[id], "relevant": data.judged[id]} for id in lessons])
        memory.evolve()

    task = _task(mteb, data)
    for name, teaching, expected in (("untaught", None, 0), ("taught", teach, 1)):
        model = Model(name, tmp_path / "memories", teach=teaching, encoder="bm25")
        found = mteb.evaluate(model, task, cache=None, show_progress_bar=False)
        model.close()
        assert found.task_results[0].scores["test"][0]["ndcg_at_10"] == pytest.approx(expected)


def _task(mteb: Any, data: Any) -> Any:
    """A retrieval task in MTEB's form, without a download."""
    import datasets
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    asked = {id: text for id, text in data.queries.items() if id[0] == "b"}

    class Gap(AbsTaskRetrieval):  # type: ignore[misc]
        metadata = TaskMetadata(
            name="Gap", description="A small set.", reference=None, type="Retrieval", category="t2t",
            modalities=["text"], eval_splits=["test"], eval_langs=["eng-Latn"], main_score="ndcg_at_10", date=None,
            domains=None, task_subtypes=None, license=None, annotations_creators=None, dialect=None,
            sample_creation=None, bibtex_citation=None, dataset={"path": "gap", "revision": "1"},
        )  # fmt: skip

        def load_data(self, *given: Any, **options: Any) -> None:
            corpus = [{"id": one.id, "title": one.title, "text": one.text} for one in data.documents]
            queries = [{"id": id, "text": text} for id, text in asked.items()]
            self.dataset = {"default": {"test": {
                "corpus": datasets.Dataset.from_list(corpus), "queries": datasets.Dataset.from_list(queries),
                "relevant_docs": {id: dict.fromkeys(data.judged[id], 1) for id in asked}, "top_ranked": None,
            }}}  # fmt: skip
            self.data_loaded = True

    return Gap()


def test_sets_of_ir_datasets_are_read_by_their_names(tmp_path: Path) -> None:
    library = pytest.importorskip("ir_datasets", reason=WANTED)
    data = load(small_sets.gap(tmp_path / "gap"))
    files = {name: tmp_path / f"{name}.tsv" for name in ("docs", "queries", "qrels")}
    files["docs"].write_text("".join(f"{one.id}\t{one.text}\n" for one in data.documents), "utf-8")
    files["queries"].write_text("".join(f"{id}\t{text}\n" for id, text in data.queries.items()), "utf-8")
    rows = [f"{query} 0 {id} 1\n" for query, judged in data.judged.items() for id in judged]
    files["qrels"].write_text("".join(rows), "utf-8")
    made = library.create_dataset(str(files["docs"]), str(files["queries"]), str(files["qrels"]))
    library.registry.register("evokey-gap/test", made)
    found = load("irds:evokey-gap/test")
    assert found.name == "evokey-gap-test"
    assert [(one.id, one.text) for one in found.documents] == [(one.id, one.text) for one in data.documents]
    assert (dict(found.queries), found.judged) == (dict(data.queries), data.judged)
    with pytest.raises(InvalidInput, match="ir_datasets has no set 'nowhere'"):
        load("irds:nowhere")
