"""`evokey bench speed`: every part runs and says what it should; how fast it was is nobody's test."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import small_sets
from reading import Reading
from rich.console import Console
from typer.testing import CliRunner, Result

pytest.importorskip("ir_measures", reason="the benchmark's measures need: pip install 'evokey[bench]'")

from evokey.bench import speed
from evokey.bench.data import load
from evokey.bench.speed import expansion, growth, machine, rivals, texts
from evokey.cli import screen
from evokey.cli.app import app
from evokey.errors import InvalidInput
from evokey.types import Document


@pytest.fixture(autouse=True)
def nobody_is_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setattr(screen, "console", Console(force_terminal=False))
    monkeypatch.setattr(screen, "errors", Console(force_terminal=False, stderr=True))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


def test_a_part_is_measured_with_the_machine_described(tmp_path: Path) -> None:
    result = run("speed", "--parts", "hybrid", "--documents", 30, "--out", tmp_path / "to" / "speed.json", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert found == json.loads((tmp_path / "to" / "speed.json").read_text("utf-8"))
    assert found["documents"] == 30
    assert {"processor", "cores", "threads", "versions"} <= set(found["machine"])
    assert min(found["hybrid"][name] for name in ("add_per_second", "open_seconds")) > 0
    assert found["hybrid"]["disk_bytes_per_document"]["keys"] > 0
    assert "hybrid  add_per_second" in "\n".join(speed.describe_all(found))


def test_parts_that_were_measured_before_on_this_machine_stay(tmp_path: Path) -> None:
    path, told = tmp_path / "speed.json", {"machine": {"cores": 2, "load": 0.5}, "documents": 30, "k": 10}
    assert speed.read_known(path, told) == told
    path.write_text(json.dumps({**told, "machine": {"cores": 2, "load": 0.1}, "dense": {"ratio": 1.0}}), "utf-8")
    assert speed.read_known(path, told) == {**told, "dense": {"ratio": 1.0}}
    assert speed.read_known(path, {**told, "documents": 60}) == {**told, "documents": 60}
    path.write_text("half a file", "utf-8")
    assert speed.read_known(path, told) == told


@pytest.mark.parametrize("part", ["dense", "bm25"])
def test_searches_are_timed_beside_bare_indexes(part: str, tmp_path: Path) -> None:
    for package in ("faiss", "bm25s", "numba", "tantivy"):
        pytest.importorskip(package, reason="the bare indexes need: pip install 'evokey[speed]'")
    data = small_sets.gap(tmp_path / "sets" / "gap", 60).parent
    ((name, found),) = speed.measure([part], 60, data)
    assert name == part
    assert {"evokey", "evokey, untaught", found["fastest_other"]} <= set(found["median_ms"])
    assert found["ratio"] == pytest.approx(found["median_ms"]["evokey"] / found["median_ms"][found["fastest_other"]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--parts", "magic"], "there is no part 'magic'; choose of: dense"),
        (["--parts", "rivals", "--documents", "20"], "rivals: it needs nfcorpus with its vectors: --data FOLDER"),
        (["--data", "{}"], "holds no sets in BEIR layout"),
    ],
)
def test_wrong_use_is_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = run("speed", *(one.format(tmp_path) for one in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_folder_is_data_even_beside_a_benchmark_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small_sets.gap(tmp_path / "speed", 4)
    options = ("--encoder", "bm25", "--policy", "none", "--seeds", 1, "--out", "out", "--json")
    for words in (["./speed"], ["quality", "speed"]):
        assert json.loads(run(*words, *options).stdout)[0]["dataset"] == "speed"


def test_growth_tells_each_size_against_the_smallest() -> None:
    rows = growth.measure([40, 80], ["bm25"], 100)
    assert [(row["documents"], row["lessons"]) for row in rows] == [(40, 100), (80, 100)]
    assert all(row["published"] for row in rows)
    assert rows[0]["ratio"] == 1
    assert rows[1]["ratio"] == pytest.approx(rows[1]["evolve_cpu_seconds"] / rows[0]["evolve_cpu_seconds"])


def vectored(folder: Path) -> Path:
    """Train and test wordings of a document lie together, away from it."""
    small_sets.official(folder)
    chance, count = np.random.default_rng(0), small_sets.INTENTS
    documents = texts.unit(chance.normal(size=(count, 16)))
    wordings = texts.unit(chance.normal(size=(count, 16)) + 0.3 * documents)
    (folder / "embeddings").mkdir()
    np.save(folder / "embeddings" / "small.corpus.npy", documents.astype(np.float16))
    np.save(folder / "embeddings" / "small.queries.npy", np.repeat(wordings, 2, axis=0).astype(np.float16))
    return folder


def test_rivals_learn_the_same_lessons_alone_and_among_many(tmp_path: Path) -> None:
    pytest.importorskip("nudge", reason="NUDGE needs: pip install 'evokey[peers]'")
    found = rivals.measure(load(vectored(tmp_path / "set")), 100)
    assert (found["lessons"], found["alone"]["documents"], found["among_many"]["documents"]) == (24, 24, 100)
    for place in ("alone", "among_many"):
        assert found[place]["guarded"]["nDCG@10"] > 0.9
        assert found[place]["ratio"] > 0
    with pytest.raises(InvalidInput, match="has no vectors beside it"):
        rivals.measure(load(small_sets.official(tmp_path / "bare")), 100)


def test_further_documents_leave_the_first_as_they_are(tmp_path: Path) -> None:
    data = load(vectored(tmp_path / "set"))
    more = rivals.pad(data, "small", 60, tmp_path)
    before, after = (np.load(one.embeddings["small"][0]) for one in (data, more))
    assert len(more.documents) == len(after) == 60
    assert (after[:24] == before).all()
    assert np.linalg.norm(after[24:].astype(np.float64), axis=1) == pytest.approx(np.ones(36), abs=1e-2)


def test_live_expansion_is_waited_for_with_every_query() -> None:
    llm = Reading()
    queries = [f"ask{n} root{n}" for n in range(3)]
    found = expansion.measure([Document(f"d{n}", f"leaf{n} bark{n}") for n in range(9)], queries, llm)
    assert (found["queries"], found["failed"], found["model"]) == (3, 0, "reading")
    assert len(llm.asked) == 4, "the first is asked once more, to warm the model"
    assert set(found["median_ms"]) == {"plain", "hyde, live"}


def test_made_up_texts_are_the_same_every_time_and_as_uneven_as_a_language() -> None:
    one, again = (texts.corpus(None, 200) for _ in range(2))
    assert one == again
    words = [word for document in one for word in document.text.split()]
    assert words.count("word0") > 5 * words.count("word20") > 0
    assert len(texts.questions(None, 7)) == 7


def test_the_machine_is_told_without_a_name_or_a_path() -> None:
    told = machine.describe()
    assert told["versions"]["python"] and told["versions"]["numpy"]
    assert str(Path.home()) not in json.dumps(told)
