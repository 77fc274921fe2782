"""Data sets as the bench loads them: from BEIR, BRIGHT and TREC files, from a hub, and what is said of odd ones."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA
from hypothesis import given, settings
from hypothesis import strategies as st
from small_hub import Hub

import evokey
from evokey.bench.data import beside, expansions, load, preset_of, presets, statistics, trec
from evokey.errors import InvalidInput, UnknownComponent
from evokey.types import Document

Rows = Sequence[Mapping[str, Any]]

CORPUS: Rows = [
    {"_id": "d1", "title": "Tides", "text": "The moon pulls the sea."},
    {"_id": "d2", "title": "", "text": "Salt lowers the freezing point."},
    {"_id": "d3", "title": "", "text": "Iron rusts in wet air."},
]
QUERIES: Rows = [{"_id": "q1", "text": "why is there a tide"}, {"_id": "q2", "text": "why salt a road"}]
EXAMPLES: Rows = [
    {
        "query": "Why do moths fly to lamps?", "reasoning": "…", "id": "0", "excluded_ids": ["N/A"],
        "gold_ids_long": ["moths.txt"], "gold_ids": ["moths_0.txt", "moths_1.txt"], "gold_answer": "They tilt.",
    },
    {
        "query": "Why do leaves fall?", "reasoning": "…", "id": "1", "excluded_ids": ["moths_1.txt"],
        "gold_ids_long": ["leaves.txt"], "gold_ids": ["leaves_0.txt"], "gold_answer": "N/A",
    },
]  # fmt: skip
PASSAGES: Rows = [{"id": name, "content": f"Passage {name}"} for name in ("moths_0.txt", "moths_1.txt", "leaves_0.txt")]
PAGES: Rows = [{"id": name, "content": f"Page {name}"} for name in ("moths.txt", "leaves.txt")]


def jsonl(rows: Rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def tsv(*judged: tuple[str, str, object]) -> str:
    return "query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{d}\t{grade}\n" for q, d, grade in judged)


def write(folder: Path, **files: str) -> Path:
    """Files by name; __ parts folders and the ending follows a single _ at the end: qrels__test_tsv."""
    for name, content in files.items():
        stem, _, ending = name.replace("__", "/").rpartition("_")
        path = folder / f"{stem}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    return folder


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    judged = tsv(("q1", "d1", 2), ("q1", "d3", 0), ("q2", "d2", 1))
    return write(tmp_path / "tiny", corpus_jsonl=jsonl(CORPUS), queries_jsonl=jsonl(QUERIES), qrels__test_tsv=judged)


def parquet(rows: Rows) -> bytes:
    arrow = pytest.importorskip("pyarrow", reason="SKIPPED FOR WANT OF A PACKAGE: evokey[hub]")
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist(list(rows)), buffer)
    return buffer.getvalue()


def bright_files() -> dict[str, bytes]:
    """As xlangai/BRIGHT lays them out."""
    parts = {"examples": EXAMPLES, "documents": PASSAGES, "long_documents": PAGES}
    return {f"{part}/biology-00000-of-00001.parquet": parquet(rows) for part, rows in parts.items()}


def test_the_demo_is_a_data_set_with_several_wordings_of_most_questions() -> None:
    demo = load("demo")
    assert len(demo.documents) > 1_000 and len(demo.judged) == 488
    known = {document.id for document in demo.documents}
    named = {id for grades in demo.judged.values() for id in grades}
    assert len(named - known) < len(named) / 10, "the documentation of another Python may lack some entries"
    assert len(demo.judged) > 3 * len({frozenset(grades) for grades in demo.judged.values()})


class TestBEIR:
    def test_a_folder_becomes_documents_queries_and_graded_judgements(self, beir: Path) -> None:
        dataset = load(beir)
        assert dataset.documents[0] == Document("d1", "The moon pulls the sea.", "Tides")
        assert [document.id for document in dataset.documents] == ["d1", "d2", "d3"]
        assert dataset.queries == {"q1": "why is there a tide", "q2": "why salt a road"}
        assert dataset.judged == {"q1": {"d1": 2, "d3": 0}, "q2": {"d2": 1}}
        assert (dataset.name, dataset.folder, dataset.problems) == ("tiny", beir, ())

    def test_a_split_is_chosen_by_name_and_all_are_kept(self, beir: Path) -> None:
        write(beir, qrels__train_tsv=tsv(("q2", "d3", 1)), qrels__validation_tsv=tsv(("q1", "d2", 1)))
        dataset = load(beir, "train")
        assert dataset.judged == {"q2": {"d3": 1}}
        assert set(dataset.splits) == {"train", "dev", "test"}
        assert load(beir, "dev").judged == load(beir, "validation").judged == {"q1": {"d2": 1}}
        with pytest.raises(InvalidInput, match="tiny has no split 'tset'; it has: dev, test, train"):
            load(beir, "tset")

    def test_what_lies_beside_the_three_files_comes_along(self, beir: Path) -> None:
        write(
            beir,
            answers_jsonl=jsonl([{"_id": "q1", "answer": ["the moon", "gravity"]}, {"_id": "q2", "answer": "N/A"}]),
            excluded_jsonl=jsonl([{"_id": "q2", "excluded_ids": ["d3"]}, {"_id": "q1", "excluded_ids": []}]),
            query_forms_jsonl=jsonl([{"_id": "q1", "text": "tides?"}, {"_id": "q1", "text": "what moves the sea"}]),
            expansions__model_jsonl=jsonl([{"_id": "q1", "text": "moon, gravity, sea"}]),
        )
        (beir / "embeddings").mkdir()
        np.save(beir / "embeddings" / "mini.corpus.npy", np.eye(3, dtype=np.float16))
        np.save(beir / "embeddings" / "mini.queries.npy", np.eye(2, 3, dtype=np.float16))
        dataset = load(beir)
        assert dataset.answers == {"q1": ("the moon", "gravity")}
        assert dataset.excluded == {"q2": {"d3"}}
        assert dataset.forms == {"q1": ("tides?", "what moves the sea")}
        assert expansions(dataset.expansions["model"]) == {"q1": "moon, gravity, sea"}
        assert [path.name for path in dataset.embeddings["mini"]] == ["mini.corpus.npy", "mini.queries.npy"]
        assert dataset.problems == ()

    @pytest.mark.parametrize(
        ("file", "content", "told"),
        [
            ("corpus_jsonl", '{"_id": "d1", "text": "a"}\n{"_id": "d2"', r"corpus\.jsonl, line 2 is not valid JSON"),
            ("corpus_jsonl", '{"_id": "d1"}\n', r"corpus\.jsonl, line 1 needs text, a string, not NoneType"),
            ("corpus_jsonl", '\n["d1"]\n', r"corpus\.jsonl, line 2 is not a JSON object"),
            ("queries_jsonl", '{"text": "a"}\n', r"queries\.jsonl, line 1 needs _id or id, .* it has text"),
            (
                "queries_jsonl",
                '{"_id": "q1", "text": "a"}\n{"_id": "q1", "text": "b"}',
                r"line 2: query 'q1' occurs in",
            ),
            ("qrels__test_tsv", tsv(("q1", "d1", 1)) + "q1 d2 1\n", r"test\.tsv, line 3 needs query-id, corpus-id"),
            ("qrels__test_tsv", tsv(("q1", "d1", "good")), r"test\.tsv, line 2: the grade must .* not 'good'"),
            ("qrels__test_tsv", tsv(("q1", "d1", 1), ("q1", "d1", 2)), r"line 3 grades document 'd1' of query 'q1'"),
            ("answers_jsonl", '{"_id": "q1", "answer": {}}', r"answers\.jsonl, line 1: answer must be a string or"),
        ],
    )
    def test_a_bad_file_is_named_with_its_line(self, beir: Path, file: str, content: str, told: str) -> None:
        write(beir, **{file: content})
        with pytest.raises(InvalidInput, match=told):
            load(beir)

    def test_text_that_is_not_utf8_is_named_with_its_line(self, beir: Path) -> None:
        (beir / "queries.jsonl").write_bytes(b'{"_id": "q1", "text": "a"}\n{"_id": "q2", "text": "caf\xe9"}\n')
        with pytest.raises(InvalidInput, match=r"queries\.jsonl, line 2 is not UTF-8"):
            load(beir)

    def test_a_broken_archive_is_named(self, beir: Path) -> None:
        packed = gzip.compress(jsonl(CORPUS).encode())
        (beir / "corpus.jsonl").unlink()
        (beir / "corpus.jsonl.gz").write_bytes(packed[:-9])
        with pytest.raises(InvalidInput, match=r"corpus\.jsonl\.gz cannot be unpacked"):
            load(beir)
        (beir / "corpus.jsonl.gz").write_bytes(packed)
        assert len(load(beir).documents) == 3


class TestProblems:
    def told(self, folder: Path, part: str) -> str:
        found = [problem for problem in load(folder).problems if part in problem]
        assert len(found) == 1, load(folder).problems
        return found[0]

    def test_a_query_that_is_itself_a_document_is_left_out_of_its_own_ranking(self, beir: Path) -> None:
        both = {"_id": "q1", "title": "", "text": "why is there\n a tide"}
        write(beir, corpus_jsonl=jsonl([*CORPUS, both]))
        assert load(beir).excluded == {"q1": {"q1"}}
        assert self.told(beir, "themselves documents").startswith("1 queries are themselves documents")

    def test_a_query_written_a_little_differently_is_still_itself(self, beir: Path) -> None:
        text = "one two three four five six seven eight nine ten"
        asked = [*QUERIES, {"_id": "d4", "text": text}]
        write(beir, corpus_jsonl=jsonl([*CORPUS, {"_id": "d4", "text": f"{text}, more."}]), queries_jsonl=jsonl(asked))
        assert load(beir).excluded == {"d4": {"d4"}}
        write(beir, corpus_jsonl=jsonl([*CORPUS, {"_id": "d4", "text": f"{text}, and many more."}]))
        assert load(beir).excluded == {}

    def test_an_id_in_common_alone_leaves_nothing_out(self, beir: Path) -> None:
        write(beir, corpus_jsonl=jsonl([*CORPUS, {"_id": "q1", "text": "Another thing."}]))
        assert load(beir).excluded == {}
        assert "which stays (such as 'q1')" in self.told(beir, "share an id")

    def test_a_right_document_is_never_left_out(self, beir: Path) -> None:
        write(beir, excluded_jsonl=jsonl([{"_id": "q1", "excluded_ids": ["d1", "d2"]}]))
        assert load(beir).excluded == {"q1": {"d2"}}
        assert "'q1 → d1'" in self.told(beir, "they stay")

    def test_copies_empty_documents_and_repeated_ids_are_counted(self, beir: Path) -> None:
        odd = [
            {"_id": "copy", "text": "iron RUSTS in  wet air."},
            {"_id": "blank", "title": " ", "text": "\n"},
            {"_id": "d1", "text": "A second d1."},
        ]
        write(beir, corpus_jsonl=jsonl([*CORPUS, *odd]))
        dataset = load(beir)
        assert [document.id for document in dataset.documents] == ["d1", "d2", "d3", "copy", "blank"]
        assert dataset.documents[0].title == "Tides"
        assert self.told(beir, "repeat the text").endswith("(such as 'd3 = copy')")
        assert self.told(beir, "are empty").startswith("1 documents are empty")
        assert self.told(beir, "an earlier one has").endswith("(such as 'd1')")

    def test_judgements_of_what_is_not_there_are_left_out_and_counted(self, beir: Path) -> None:
        judged = tsv(("q1", "d1", 1), ("q1", "gone", 1), ("q2", "gone", 1), ("nobody", "d1", 1), ("q1", "d2", -2))
        write(beir, qrels__test_tsv=judged, queries_jsonl=jsonl([*QUERIES, {"_id": "q3", "text": "unasked"}]))
        dataset = load(beir)
        assert dataset.judged == {"q1": {"d1": 1, "d2": 0}}
        assert self.told(beir, "not in the corpus").startswith("2 judgements of test are about documents")
        assert "'nobody'" in self.told(beir, "have no text")
        assert "(such as 'q2')" in self.told(beir, "no right document")
        assert "'q1 → d2'" in self.told(beir, "below 0")
        assert self.told(beir, "judged in no split").startswith("2 queries")

    def test_a_query_judged_wrong_only_is_not_scored_but_stays_in_its_split(self, beir: Path) -> None:
        write(beir, qrels__test_tsv=tsv(("q1", "d1", 1), ("q2", "d3", 0)))
        dataset = load(beir)
        assert set(dataset.judged) == {"q1"}
        assert dataset.splits["test"]["q2"] == {"d3": 0}

    def test_a_set_in_which_nothing_can_be_scored_is_refused_with_the_reasons(self, beir: Path) -> None:
        write(beir, qrels__test_tsv=tsv(("q1", "gone", 1)))
        with pytest.raises(InvalidInput, match=r"no query has a text and a right document.*'gone'"):
            load(beir)

    def test_a_set_without_corpus_keeps_its_judgements(self, beir: Path) -> None:
        (beir / "corpus.jsonl").unlink()
        assert load(beir).judged == {"q1": {"d1": 2, "d3": 0}, "q2": {"d2": 1}}
        assert self.told(beir, "no corpus")

    def test_embeddings_that_do_not_fit_are_left_out(self, beir: Path) -> None:
        (beir / "embeddings").mkdir()
        np.save(beir / "embeddings" / "mini.queries.npy", np.eye(2))
        np.save(beir / "embeddings" / "mini.corpus.npy", np.eye(4))
        assert load(beir).embeddings == {}
        assert self.told(beir, "embeddings of mini").startswith("embeddings of mini have 4 and 2 rows for 3 documents")
        (beir / "embeddings" / "mini.corpus.npy").write_bytes(b"nothing")
        with pytest.raises(InvalidInput, match=r"mini\.corpus\.npy is no array"):
            load(beir)


class TestBRIGHT:
    @pytest.fixture
    def copy(self, tmp_path: Path) -> Path:
        for name, data in bright_files().items():
            path = tmp_path / "BRIGHT" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return tmp_path / "BRIGHT"

    def test_a_copy_of_the_hub_gives_passages_answers_and_what_to_leave_out(self, copy: Path) -> None:
        dataset = load(copy / "biology")
        assert dataset.name == "biology"
        assert [document.id for document in dataset.documents] == ["moths_0.txt", "moths_1.txt", "leaves_0.txt"]
        assert dataset.judged == {"0": {"moths_0.txt": 1, "moths_1.txt": 1}, "1": {"leaves_0.txt": 1}}
        assert dataset.answers == {"0": ("They tilt.",)}
        assert dataset.excluded == {"1": {"moths_1.txt"}}
        assert dataset.problems == ()

    def test_the_long_split_judges_whole_pages(self, copy: Path) -> None:
        dataset = load(copy / "biology", "test_long")
        assert dataset.documents[0] == Document("moths.txt", "Page moths.txt")
        assert dataset.judged == {"0": {"moths.txt": 1}, "1": {"leaves.txt": 1}}
        assert dataset.problems == ()

    def test_the_copy_itself_asks_for_a_name(self, copy: Path) -> None:
        with pytest.raises(InvalidInput, match=r"copy of BRIGHT with 1 sets; name one of them, as in .*BRIGHT/biology"):
            load(copy)

    def test_inside_the_copy_a_name_is_enough(self, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(copy)
        assert len(load("biology").documents) == 3
        with pytest.raises(InvalidInput, match="name one of them"):
            load(".")

    def test_one_folder_of_json_lines_is_the_same_set(self, copy: Path, tmp_path: Path) -> None:
        files = {"examples_jsonl": jsonl(EXAMPLES), "documents_jsonl": jsonl(PASSAGES)}
        own = load(write(tmp_path / "mine", **files))
        assert own.judged == load(copy / "biology").judged
        assert own.documents == load(copy / "biology").documents

    def test_a_broken_parquet_file_is_named(self, copy: Path) -> None:
        (copy / "documents" / "biology-00000-of-00001.parquet").write_bytes(b"PAR1 nothing PAR1")
        with pytest.raises(InvalidInput, match=r"biology-00000-of-00001\.parquet is no valid Parquet file"):
            load(copy / "biology")

    def test_a_bad_row_is_named(self, tmp_path: Path) -> None:
        path = write(tmp_path / "mine", examples_jsonl=jsonl([{"id": "0", "gold_ids": ["a"]}]))
        with pytest.raises(InvalidInput, match=r"examples\.jsonl, line 1 needs query, a string"):
            load(path)


LOADING = """
import json, sys
from pathlib import Path
from evokey.bench.data import load
from evokey.errors import EvokeyError
try:
    dataset = load(sys.argv[1], sys.argv[2], cache=Path(sys.argv[3]))
    found = {"judged": dataset.judged, "texts": [d.text for d in dataset.documents], "folder": str(dataset.folder)}
    print(json.dumps(found | {"problems": dataset.problems, "splits": list(dataset.splits)}))
except EvokeyError as error:
    print(json.dumps({"error": type(error).__name__, "says": str(error)}))
"""


def loaded_from(url: str, name: str, cache: Path, split: str = "test") -> dict[str, Any]:
    """Loads in a process of its own: the hub's address is read once, when its package is imported."""
    pytest.importorskip("huggingface_hub", reason="SKIPPED FOR WANT OF A PACKAGE: evokey[hub]")
    source = str(Path(evokey.__file__).parents[1])
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("HF_")},
        "HF_ENDPOINT": url, "HF_HOME": str(cache / "home"), "PYTHONPATH": source, "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", LOADING, name, split, str(cache)],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


class TestHub:
    def test_a_beir_set_is_fetched_once_and_then_read_without_the_hub(self, tmp_path: Path) -> None:
        """The older form: packed JSON lines, and tables of judgements in a repository of their own."""
        texts = {
            "corpus.jsonl.gz": gzip.compress(jsonl(CORPUS).encode()),
            "queries.jsonl.gz": gzip.compress(jsonl(QUERIES).encode()),
            "README.md": b"never fetched",
        }
        judged = {"test.tsv": tsv(("q1", "d1", 2)).encode(), "validation.tsv": tsv(("q2", "d2", 1)).encode()}
        with Hub({"BeIR/scifact": texts, "BeIR/scifact-qrels": judged}) as hub:
            first = loaded_from(hub.url, "scifact", tmp_path)
            assert first["judged"] == {"q1": {"d1": 2}}, first
            assert sorted(hub.fetched) == [
                "BeIR/scifact-qrels/test.tsv", "BeIR/scifact-qrels/validation.tsv",
                "BeIR/scifact/corpus.jsonl.gz", "BeIR/scifact/queries.jsonl.gz",
            ]  # fmt: skip
        assert sorted(first["splits"]) == ["dev", "test"]
        assert loaded_from("http://127.0.0.1:9", "scifact", tmp_path) == first

    def test_a_beir_set_in_parquet_files_is_the_same(self, tmp_path: Path) -> None:
        """The newer form, with numbers for ids in the judgements, as the hub's own conversion writes them."""
        texts = {
            "corpus/corpus-00000-of-00002.parquet": parquet(CORPUS[:2]),
            "corpus/corpus-00001-of-00002.parquet": parquet(CORPUS[2:]),
            "queries/queries-00000-of-00001.parquet": parquet([{**QUERIES[0], "_id": "1"}]),
        }
        judged = {"test-00000-of-00001.parquet": parquet([{"query-id": 1, "corpus-id": "d3", "score": 1}])}
        with Hub({"BeIR/other": texts, "BeIR/other-qrels": judged}) as hub:
            found = loaded_from(hub.url, "BeIR/other", tmp_path)
        assert found["judged"] == {"1": {"d3": 1}}
        assert found["texts"] == [row["text"] for row in CORPUS]

    def test_bright_is_fetched_set_by_set_and_its_pages_only_when_asked(self, tmp_path: Path) -> None:
        others = {"documents/pony-00000-of-00001.parquet": b"never fetched"}
        with Hub({"xlangai/BRIGHT": {**bright_files(), **others}}) as hub:
            found = loaded_from(hub.url, "biology", tmp_path)
            assert [name.split("/")[2] for name in sorted(hub.fetched)] == ["documents", "examples"]
            long = loaded_from(hub.url, "biology", tmp_path, "test_long")
            gone = loaded_from(hub.url, "aops", tmp_path)
        assert found["judged"] == {"0": {"moths_0.txt": 1, "moths_1.txt": 1}, "1": {"leaves_0.txt": 1}}
        assert long["texts"] == ["Page moths.txt", "Page leaves.txt"]
        assert gone["error"] == "InvalidInput"
        assert "holds no examples of aops" in gone["says"]

    def test_a_hub_that_cannot_be_reached_is_told_with_the_way_out(self, tmp_path: Path) -> None:
        found = loaded_from("http://127.0.0.1:9", "biology", tmp_path)
        assert found["error"] == "ServiceFailed"
        assert "xlangai/BRIGHT is neither in the hub's cache on this machine nor could it be fetched" in found["says"]
        assert "give a folder in BEIR layout" in found["says"]

    def test_a_set_that_the_hub_has_not_is_told(self, tmp_path: Path) -> None:
        with Hub({}) as hub:
            found = loaded_from(hub.url, "BeIR/nosuch", tmp_path)
        assert (found["error"], "no data set BeIR/nosuch" in found["says"]) == ("InvalidInput", True)

    def test_without_the_packages_the_extra_is_named(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setitem(sys.modules, "huggingface_hub", None)
        with pytest.raises(UnknownComponent, match=r"pip install 'evokey\[hub\]'"):
            load("scidocs", cache=tmp_path)
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        (tmp_path / "examples.parquet").write_bytes(b"PAR1")
        with pytest.raises(UnknownComponent, match=r"examples\.parquet is a Parquet file.*evokey\[hub\]"):
            load(tmp_path)

    def test_an_unknown_name_is_answered_with_the_known_ones(self) -> None:
        with pytest.raises(InvalidInput, match=r"neither a folder nor the name.*aops, arguana, biology, .*scifact"):
            load("bioology")


CLASSIC = """
<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations that participate
in international crime.

<narr> Narrative:
A relevant document names one.
</top>

<top>
<num>302</num>
<title>Poliomyelitis</title>
</top>
"""


class TestTREC:
    def test_classic_topics_are_read_with_title_description_and_narrative(self, tmp_path: Path) -> None:
        path = write(tmp_path, topics_txt=CLASSIC) / "topics.txt"
        assert trec.topics(path) == [
            trec.Topic(
                "301",
                "International Organized Crime",
                "Identify organizations that participate in international crime.",
                "A relevant document names one.",
            ),
            trec.Topic("302", "Poliomyelitis"),
        ]

    def test_topics_parted_by_tabs_are_read(self, tmp_path: Path) -> None:
        path = write(tmp_path, topics_tsv="1\twhat is a tide\r\n\n2\twhy salt\n") / "topics.tsv"
        assert trec.topics(path) == [trec.Topic("1", "what is a tide"), trec.Topic("2", "why salt")]

    def test_a_folder_of_trec_files_is_a_data_set(self, tmp_path: Path) -> None:
        folder = write(
            tmp_path / "old",
            topics_txt=CLASSIC,
            qrels_txt="301 0 d1 2\n302 0 d2 1\n301 0 d2 0\n",
            **{"qrels.train_txt": "302 0 d1 1\n"},
            corpus_jsonl=jsonl(CORPUS),
        )
        dataset = load(folder)
        assert dataset.judged == {"301": {"d1": 2, "d2": 0}, "302": {"d2": 1}}
        assert dataset.queries["301"] == "International Organized Crime"
        assert dataset.forms == {"301": ("Identify organizations that participate in international crime.",)}
        assert load(folder, "train").judged == {"302": {"d1": 1}}
        assert (len(dataset.documents), dataset.problems) == (3, ())

    @pytest.mark.parametrize(
        ("reader", "content", "told"),
        [
            (trec.qrels, "1 0 d1 1\n1 d2 1\n", r"file\.txt, line 2 needs 4 columns .* not 3: '1 d2 1'"),
            (trec.qrels, "1 0 d1 1\n1 0 d1 0\n", r"line 2 grades document 'd1' of query '1' again"),
            (trec.qrels, "1 0 d1 1.5\n", r"line 1: the grade must be a whole number, not '1\.5'"),
            (trec.run, "1 Q0 d1 1 2.0\n", r"line 1 needs 6 columns .* not 5"),
            (trec.run, "1 Q0 d1 1 nan t\n", r"line 1: rank and score must be finite numbers, not 'nan'"),
            (trec.run, "1 Q0 d1 1 2 t\n1 Q0 d1 2 1 t\n", r"line 2 ranks document 'd1' of query '1' a second time"),
            (trec.topics, "1 no tab\n", r"line 1 needs an id, a tab and a text"),
            (trec.topics, "\n<top>\n<num> 1\n</top>", r"line 2: a topic needs <num>, and <title> or <desc>"),
            (trec.topics, "<top><num> 1 <title> a </top>\n<top><num> 2", r"no </top> closes, after topic 1"),
        ],
    )
    def test_a_bad_file_is_named_with_its_line(self, tmp_path: Path, reader: Any, content: str, told: str) -> None:
        with pytest.raises(InvalidInput, match=told):
            reader(write(tmp_path, file_txt=content) / "file.txt")

    def test_a_run_is_ordered_by_score_and_equal_scores_by_rank(self, tmp_path: Path) -> None:
        content = "1 Q0 b 3 1.0 t\n1 Q0 c 1 .5 t\n1 Q0 a 2 1.0 t\n"
        assert trec.run(write(tmp_path, run_txt=content) / "run.txt") == {"1": [("a", 1.0), ("b", 1.0), ("c", 0.5)]}

    def test_what_columns_cannot_hold_is_refused_and_nothing_written(self, tmp_path: Path) -> None:
        path = tmp_path / "run.txt"
        for rankings, told in [
            ({"1": [("Global warming:14", 1.0)]}, "'Global warming:14' cannot stand in a TREC file"),
            ({"1": [("a", 1.0), ("b", 2.0)]}, "query '1', rank 2: the score must be finite and not above"),
            ({"1": [("a", float("nan"))]}, "it is nan"),
            ({"": [("a", 1.0)]}, "'' cannot stand"),
        ]:
            with pytest.raises(InvalidInput, match=told):
                trec.write_run(path, rankings)
        assert not path.exists()

    def test_a_run_has_six_columns(self, tmp_path: Path) -> None:
        trec.write_run(tmp_path / "run.txt", {"q": [("a b", 1.5), ("c%", -1)]}, "tag", escaped=True)
        assert (tmp_path / "run.txt").read_text() == "q Q0 a%20b 1 1.5 tag\nq Q0 c%25 2 -1.0 tag\n"


IDS = st.text(min_size=1, max_size=8)
SCORES = st.floats(allow_nan=False, allow_infinity=False)
RANKINGS = st.dictionaries(IDS, st.dictionaries(IDS, SCORES, min_size=1, max_size=5), max_size=4)


@settings(deadline=None)
@given(RANKINGS)
def test_runs_come_back_exactly_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, given_: Any) -> None:
    rankings = {query: sorted(hits.items(), key=lambda hit: -hit[1]) for query, hits in given_.items()}
    path = tmp_path_factory.getbasetemp() / "run.txt"
    trec.write_run(path, rankings, escaped=True)
    assert trec.run(path, escaped=True) == rankings


@settings(deadline=None)
@given(st.dictionaries(IDS, st.dictionaries(IDS, st.integers(-2, 4), min_size=1, max_size=5), max_size=4))
def test_judgements_come_back_exactly_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, judged: dict[str, dict[str, int]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "qrels.txt"
    trec.write_qrels(path, judged, escaped=True)
    assert trec.qrels(path, escaped=True) == judged


class TestStatistics:
    def test_a_set_is_counted(self, beir: Path) -> None:
        write(beir, answers_jsonl=jsonl([{"_id": "q1", "answer": "the moon"}]))
        found = statistics(load(beir))
        assert found.to_dict() == {
            "name": "tiny", "split": "test", "queries": 2, "documents": 3, "right_per_query": 1.0,
            "judged_per_query": 1.5, "shared": 0.0, "query_length": 4.5, "document_length": 16 / 3, "unit": "words",
            "answered": 1, "generation_truth": False, "splits": {"test": 2}, "problems": 0,
        }  # fmt: skip

    def test_shared_is_the_share_of_queries_that_others_can_teach(self, beir: Path) -> None:
        write(beir, qrels__test_tsv=tsv(("q1", "d1", 1), ("q2", "d1", 1)))
        assert statistics(load(beir)).shared == 1.0

    def test_the_paper_has_thirteen_sets(self) -> None:
        assert sorted(presets()) == [
            "aops", "biology", "earth_science", "economics", "leetcode", "nfcorpus", "pony", "psychology", "robotics",
            "scidocs", "stackoverflow", "sustainable_living", "theoremqa_theorems",
        ]  # fmt: skip
        assert sum(preset.paper.queries for preset in presets().values()) == 2645
        assert sum(preset.paper.documents for preset in presets().values()) == 1_312_174
        assert sum(preset.paper.generation_truth for preset in presets().values()) == 11
        assert preset_of("bright_pony") == presets()["pony"]

    def test_lengths_stand_beside_the_papers_only_in_its_own_unit(self, beir: Path) -> None:
        plain, tokens = statistics(load(beir)), statistics(load(beir), length=len, unit="GPT-2 tokens")
        assert [row.what for row in beside(presets()["biology"], plain)] == [
            "queries", "documents", "right_per_query", "generation_truth",
        ]  # fmt: skip
        lengths = {row.what: (row.paper, row.found) for row in beside(presets()["biology"], tokens)}
        assert lengths["query_length"] == (83.6, (19 + 15) / 2)


def real(name: str) -> Path:
    if not (DATA / name / "queries.jsonl").exists():
        pytest.skip(f"SKIPPED FOR WANT OF DATA: {DATA / name} is not there")
    return DATA / name


class TestRealSets:
    """Counts as the table beside the data has them."""

    @pytest.mark.parametrize(
        ("name", "documents", "queries", "further"),
        [
            ("nfcorpus", 3395, 323, {"train": 2563, "dev": 324}),
            ("scifact", 5183, 300, {"train": 809}),
            ("bright_theoremqa_theorems", 23839, 76, {}),
            ("cranfield", 1400, 225, {}),
            ("locomo10", 5882, 1981, {}),
            ("climate_fever_evidence", 5240, 1061, {}),
            ("clinc150", 150, 4500, {"train": 15000}),
            ("pubmedqa_l", 1000, 1000, {}),
            ("bright_biology", 0, 103, {}),
            ("bright_economics", 0, 103, {}),
            ("bright_pony", 0, 112, {}),
            ("bright_leetcode", 0, 142, {}),
        ],
    )
    def test_a_set_has_what_its_table_says(
        self, name: str, documents: int, queries: int, further: dict[str, int]
    ) -> None:
        dataset = load(real(name))
        found = statistics(dataset)
        assert (found.documents, found.queries) == (documents, queries)
        assert {split: found.splits[split] for split in further} == further
        assert any("no corpus" in problem for problem in dataset.problems) == (documents == 0)
        assert not any("not in the corpus" in problem for problem in dataset.problems)
        for corpus, asked in dataset.embeddings.values():
            assert np.load(corpus, mmap_mode="r").shape[0] == documents
            assert np.load(asked, mmap_mode="r").shape[0] == len(dataset.queries)

    def test_recorded_expansions_are_keyed_by_queries_of_the_set(self) -> None:
        dataset = load(real("scifact"))
        assert len(dataset.expansions) == 9
        for path in dataset.expansions.values():
            assert set(expansions(path)) >= set(dataset.judged)

    def test_nfcorpus_agrees_with_the_paper_but_for_its_corpus(self) -> None:
        found = beside(presets()["nfcorpus"], statistics(load(real("nfcorpus"))))
        assert {row.what: row.agrees for row in found} == {
            "queries": True, "documents": False, "right_per_query": True, "generation_truth": True,
        }  # fmt: skip

    def test_the_papers_row_of_theoremqa_is_not_the_theorems(self) -> None:
        found = beside(presets()["theoremqa_theorems"], statistics(load(real("bright_theoremqa_theorems"))))
        assert [row.found for row in found if row.what in ("queries", "documents")] == [76, 23839]
        assert [row.agrees for row in found if row.what in ("queries", "documents")] == [False, False]

    def test_what_bright_leaves_out_comes_along(self) -> None:
        dataset = load(real("bright_leetcode"))
        assert set(dataset.excluded) == set(dataset.judged)
        assert "leetcode/leetcode_85.txt" in dataset.excluded["0"]

    def test_cranfields_queries_share_numbers_with_documents_and_none_is_left_out(self) -> None:
        dataset = load(real("cranfield"))
        assert dataset.excluded == {}
        assert any(problem.startswith("225 queries share an id") for problem in dataset.problems)
        assert {grade for grades in dataset.judged.values() for grade in grades.values()} == {1, 2, 3, 4}

    def test_a_run_over_ids_with_spaces_survives(self, tmp_path: Path) -> None:
        dataset = load(real("climate_fever_evidence"))
        rankings = {
            query: [(id, 1 / rank) for rank, id in enumerate(grades, start=1)]
            for query, grades in dataset.judged.items()
        }  # fmt: skip
        trec.write_run(tmp_path / "run", rankings, escaped=True)
        assert trec.run(tmp_path / "run", escaped=True) == rankings
