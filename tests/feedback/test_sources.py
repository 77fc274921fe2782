"""Exports of other tools, in the forms in which they come: what becomes a verdict, and what is counted instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import COMMANDS
from typer.testing import CliRunner

import evokey
from evokey.cli.app import app
from evokey.errors import InvalidInput
from evokey.feedback import judgments, sources, traces, ubi
from evokey.feedback.judged import GONE, Judged, lessons

EXPORTS = Path(__file__).parent / "exports"


def read(source: str, *files: str, **scores: Any) -> Judged:
    return sources.read(source, [EXPORTS / file for file in files], sources.Scores(**scores))


def said(judged: Judged) -> set[tuple[str, str, float, str | None]]:
    return {(one.query, one.document, one.grade, one.actor) for one in judged.found}


def test_phoenix_a_document_annotation_is_a_verdict_and_one_of_a_span_is_not() -> None:
    found = read("phoenix", "phoenix_spans.json", "phoenix_annotations.jsonl")
    assert said(found) == {("undo a commit", "git-revert", 1.0, None), ("undo a commit", "git-log", -1.0, None)}
    assert found.left_out == {
        traces.NO_PLACE: 1, traces.SEVERAL: 1, traces.LOW: 1, traces.NO_VALUE: 1, traces.NO_RETRIEVAL: 1
    }  # fmt: skip
    only = read("phoenix", "phoenix_spans.json", "phoenix_annotations.jsonl", name="correctness")
    assert not only.found and only.left_out == {traces.SEVERAL: 1, traces.LOW: 1}


def test_langfuse_a_score_counts_for_what_it_names_or_what_the_answer_cites() -> None:
    found = read("langfuse", "langfuse_traces.json", "langfuse_scores.json")
    assert said(found) == {
        ("undo a commit", "git-revert", 1.0, None),
        ("who wrote this line", "git-log", -1.0, "grace"),
    }
    assert found.left_out == {
        traces.SEVERAL: 1, traces.LOW: 1, traces.NO_RETRIEVAL: 1, traces.NO_VALUE: 1
    }  # fmt: skip


def test_langsmith_a_score_counts_for_what_it_names_what_is_cited_or_the_only_document() -> None:
    found = read("langsmith", "langsmith_runs.jsonl", "langsmith_feedback.jsonl")
    assert said(found) == {
        ("undo a commit", "git-revert", 1.0, "ada"),
        ("undo a commit", "git-log", -1.0, None),
        ("who wrote this line", "git-blame", 1.0, None),
    }
    assert found.left_out == {traces.LOW: 1, traces.NO_RETRIEVAL: 1, traces.NO_VALUE: 1}


def test_the_id_of_a_document_may_be_in_a_field_of_its_metadata() -> None:
    listed = [{"id": "uuid", "metadata": {"page": "git-log"}}, {"metadata": {"source": "git-reset"}}]
    assert traces.ids_of(listed) == ("uuid", "git-reset")
    assert traces.ids_of({"documents": listed}, "page") == ("git-log",)


def test_ubi_what_cannot_be_attributed_is_counted_by_its_reason() -> None:
    found = read("ubi", "ubi_queries.json", "ubi_events.ndjson")
    assert not found.found  # one click is chance
    assert found.left_out == {
        ubi.NO_QUERY: 1, ubi.NOT_SHOWN: 1, ubi.OTHER: 1, ubi.NO_TEXT: 1, ubi.NO_RESULTS: 1
    }  # fmt: skip


def clicks(clients: int, each: int = 1) -> list[dict[str, Any]]:
    """Everybody clicks the third of three results; for other questions the first."""
    records: list[dict[str, Any]] = []
    for client in range(clients):
        for number, (query, ids, wanted) in enumerate(
            [("undo a commit", ["git-log", "git-reset", "git-revert"], 2)]
            + [(f"other {n}", [f"a{n}", f"b{n}", f"c{n}"], 0) for n in range(5)]
        ):
            for again in range(each if client == 0 else 1):
                id = f"{client}-{number}-{again}"
                shown = {"query_response_hit_ids": ids}
                records.append({"user_query": query, "query_id": id, "client_id": str(client), **shown})
                at = {"object": {"object_id": ids[wanted]}, "position": {"ordinal": wanted + 1}}
                records.append({"action_name": "click", "query_id": id, "event_attributes": at})
    return records


def test_ubi_a_document_that_is_clicked_far_more_than_its_place_explains_is_right() -> None:
    assert said(ubi.read(clicks(20))) >= {("undo a commit", "git-revert", 1.0, None)}
    assert "git-log" not in {one.document for one in ubi.read(clicks(20)).found}


def test_ubi_one_client_that_repeats_itself_counts_once() -> None:
    found = ubi.read(clicks(1, each=500))
    assert not found.found and found.left_out[ubi.REPEATED] == 499 * 6


def test_ubi_impressions_tell_what_was_shown_where_queries_do_not() -> None:
    shown = [
        {
            "action_name": "impression",
            "query_id": "q",
            "event_attributes": {"object": {"object_id": id}, "position": at},
        }
        for at, id in (({"ordinal": 2}, "b"), ({"ordinal": 1}, "a"))
    ]
    assert ubi._results([{"query_id": "q", "user_query": "x"}], shown) == {"q": ["a", "b"]}


def test_judgement_lists_come_as_tables_and_as_qrels_with_their_queries() -> None:
    found = judgments.read([EXPORTS / "judgments.csv"])
    assert said(found) == {
        ("undo a commit", "git-revert", 3.0, None), ("undo a commit", "git-log", -1.0, None),
        ("who wrote this line, and when", "git-blame", 2.0, None),
    }  # fmt: skip
    assert found.left_out == {judgments.NO_GRADE: 1}
    trec = judgments.read([EXPORTS / "qrels.txt", EXPORTS / "queries.tsv"])
    assert ("who wrote this line", "git-blame", 2.0, None) in said(trec) and len(trec.found) == 3
    assert trec.left_out == {judgments.NO_TEXT: 1}
    beir = judgments.read([EXPORTS / "beir_qrels.tsv", EXPORTS / "queries.tsv"])
    assert said(beir) == {("undo a commit", "git-revert", 1.0, None)}
    with pytest.raises(InvalidInput, match="give a file with the texts too"):
        judgments.read([EXPORTS / "qrels.txt"])


def test_opensearch_judgement_lists(tmp_path: Path) -> None:
    path = tmp_path / "lists.json"
    path.write_text(
        json.dumps([{"query": "undo", "ratings": [{"docId": "git-revert", "rating": "2"}, {"docId": "x"}]}])
    )
    found = judgments.read([path])
    assert said(found) == {("undo", "git-revert", 2.0, None)} and found.left_out == {judgments.NO_GRADE: 1}


def test_one_lesson_for_each_question_and_actor() -> None:
    found = read("langsmith", "langsmith_runs.jsonl", "langsmith_feedback.jsonl").found
    taught = lessons(found, "langsmith")
    assert [(one["query"], one["actor"]) for one in taught] == [
        ("undo a commit", "ada"), ("undo a commit", "langsmith"), ("who wrote this line", "langsmith")
    ]  # fmt: skip
    assert (taught[0]["relevant"], taught[1]["irrelevant"]) == ({"git-revert": 1.0}, ["git-log"])


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add(
            {"id": id, "text": text, "title": title} for id, (title, text) in COMMANDS.items() if id != "git-log"
        )
    return tmp_path / "kb"


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_the_command_records_what_it_can_and_tells_what_it_left_out(kb: Path) -> None:
    files = ("--file", EXPORTS / "judgments.csv", "--at", kb)
    planned = run("feedback", "--from", "csv", *files, "--dry-run")
    assert len(planned["would_record"]) == 2 and planned["left_out"] == {judgments.NO_GRADE: 1, GONE: 1}
    done = run("feedback", "--from", "csv", *files)
    assert (len(done["lessons"]), done["left_out"]) == (2, planned["left_out"])
    with evokey.open(kb) as memory:
        assert [one.actor for one in memory.lessons()] == ["csv", "csv"]
        assert memory.evolve().published
        assert memory.search("undo a commit")[0].id == "git-revert"


@pytest.mark.parametrize("form", ["csv", "qrels"])
def test_judgements_that_were_written_are_read_again(form: str, kb: Path, tmp_path: Path) -> None:
    run("feedback", "undo a commit", "-r", "git-revert=2", "-w", "git-stash", "--at", kb)
    out = tmp_path / f"judged.{form}"
    told = run("lessons", "--export", out, "--as", form, "--at", kb)
    assert (told["exported"], told["judgements"]) == (1, 2)
    beside = [out.with_name(f"{out.name}.queries.tsv")] if form == "qrels" else []
    assert said(judgments.read([out, *beside])) == {
        ("undo a commit", "git-revert", 2.0, None), ("undo a commit", "git-stash", -1.0, None)
    }  # fmt: skip


def test_wrong_use_names_the_sources(kb: Path) -> None:
    result = CliRunner().invoke(
        app, ["feedback", "--from", "nothing", "--file", str(EXPORTS / "qrels.txt"), "--at", str(kb)]
    )
    assert result.exit_code != 0 and "ubi, phoenix, langfuse" in " ".join(result.output.split())
