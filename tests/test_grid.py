"""The grid of untaught retrieval: figures that can be checked by hand, and a second run that goes on with the first."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ir_measures", reason="the extra bench is not installed")
GRID = Path(__file__).parents[1] / "benchmarks" / "grid.py"
CORPUS = {
    "revert": ("undo a commit", "git revert makes a new commit that takes back an earlier one"),
    "stash": ("put work aside", "git stash keeps changes for later"),
    "bisect": ("find a bug", "git bisect searches the commit that brought it"),
}
QUERIES = {"a": "stash", "b": "commit", "c": "bicycle"}
QRELS = {"a": "stash", "b": "bisect", "c": "stash"}


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": id, "title": title, "text": text} for id, (title, text) in CORPUS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "queries.jsonl").write_text(
        "\n".join(json.dumps({"_id": id, "text": text}) for id, text in QUERIES.items())
    )
    judged = "\n".join(f"{query}\t{document}\t1" for query, document in QRELS.items())
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}\n")
    return folder


def grid(*arguments: object) -> str:
    done = subprocess.run([sys.executable, GRID, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_figures_are_means_over_all_judged_queries_found_or_not(collection: Path, tmp_path: Path) -> None:
    grid(collection, "--encoder", "bm25", "--keys", "full", "--out", tmp_path / "grid.json")
    (cell,) = json.loads((tmp_path / "grid.json").read_text())
    # a: first; b: second, behind the document that says "commit" twice; c: a word that no document has
    assert cell["measures"]["MRR"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert cell["measures"]["nDCG@1"] == pytest.approx(1 / 3)
    assert cell["measures"]["nDCG@10"] == pytest.approx((1 + 0.6309 + 0) / 3, abs=1e-4)
    assert cell["measures"]["Recall@5"] == cell["measures"]["Recall@10"] == pytest.approx(2 / 3)


def test_a_second_run_measures_only_what_is_missing(collection: Path, tmp_path: Path) -> None:
    out = tmp_path / "grid.json"
    grid(collection, "--encoder", "bm25", "--keys", "full", "--out", out)
    out.write_text(json.dumps([json.loads(out.read_text())[0] | {"queries": 99}]))
    said = grid(collection, "--encoder", "bm25", "--keys", "full", "title", "--out", out)
    assert "tiny bm25 title" in said and "tiny bm25 full" not in said
    assert [(one["keys"], one["queries"]) for one in json.loads(out.read_text())] == [("full", 99), ("title", 3)]
