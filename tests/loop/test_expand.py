"""Memory.expand: an intent is paid for once, and what verification says of a match counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, Dataset, Opener
from typer.testing import CliRunner

import evokey
from evokey.cli.app import app
from evokey.errors import ExpansionFailed, LLMFailed
from evokey.evolution.ndcg import ndcg
from evokey.types import Completion, Expansion, Message, Spent, Unit

PASSAGE = "<passage>Take back an earlier change by recording its reverse. The history stays as it was.</passage>"


class Scripted:
    """Answers in order; the last one again and again."""

    identity = "scripted/one"

    def __init__(self, *answers: str | Exception) -> None:
        self.answers, self.asked = list(answers), 0

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 0, temperature: float = 0) -> Completion:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer, self.identity, Spent(1, 100, 20, 0.001, 0.5))

    def stream(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@pytest.fixture
def model() -> Scripted:
    return Scripted(PASSAGE)


def test_an_intent_is_paid_for_once(opened: Opener, commands: list[evokey.Document], model: Scripted) -> None:
    memory = opened(encoder="bm25", expander="hyde", llm=model)
    memory.add(commands)
    first = memory.expand("how do I undo a commit?")
    assert first.texts and first.like is None and first.spent.calls == 1
    again = memory.expand("how do I undo a commit?")
    assert again.texts == first.texts and model.asked == 1
    other = memory.expand("how do I undo the commit")
    assert other.like == "how do I undo a commit?" and other.texts == first.texts and model.asked == 1
    memory.expand("who last changed this line?")
    assert model.asked == 2
    stats = memory.stats()
    assert (stats.calls, stats.calls_saved, stats.tokens, stats.money) == (2, 2, 240, 0.002)
    memory.close()
    assert opened(llm=model).expand("how do I undo a commit?").texts == first.texts and model.asked == 2


def test_verification_that_names_other_documents_finds_a_false_hit(
    opened: Opener, commands: list[evokey.Document], model: Scripted
) -> None:
    memory = opened(encoder="bm25", expander="hyde", llm=model)
    memory.add(commands)
    memory.expand("how do I undo a commit?")
    memory.feedback("how do I undo a commit?", relevant=["git-revert"])
    memory.expand("how do I undo the commit")
    memory.feedback("how do I undo the commit", relevant=["git-revert"])
    assert memory.stats().false_hits == 0
    memory.expand("how to undo a commit")
    memory.feedback("how to undo a commit", relevant=["git-reset"])
    assert memory.stats().false_hits == 1


def test_what_is_forgotten_is_not_kept_as_an_expansion(
    opened: Opener, commands: list[evokey.Document], model: Scripted, tmp_path: Path
) -> None:
    memory = opened(encoder="bm25", expander="hyde", llm=model)
    memory.add(commands)
    memory.expand("how do I undo a commit?")
    memory.feedback("how do I undo a commit?", relevant=["git-revert"], actor="ada")
    memory.forget(actor="ada")
    memory.close()
    assert b"recording its reverse" not in (tmp_path / "kb" / "ledger.sqlite").read_bytes()
    opened(llm=model).expand("how do I undo a commit?")
    assert model.asked == 2


@pytest.mark.parametrize("answer", [LLMFailed("the model timed out"), "", "I'm sorry, I cannot help with that."])
def test_a_model_that_fails_costs_a_clear_error_and_nothing_is_kept(
    opened: Opener, commands: list[evokey.Document], model: Scripted, answer: str | Exception
) -> None:
    model.answers = [answer]
    memory = opened(encoder="bm25", expander="hyde", llm=model)
    memory.add(commands)
    with pytest.raises(ExpansionFailed, match="hyde"):
        memory.expand("how do I undo a commit?")
    assert memory.stats().calls == 0 and memory.stats().lessons == 0
    model.answers = [PASSAGE]
    assert memory.expand("how do I undo a commit?").texts


def test_an_expansion_finds_what_the_query_alone_does_not(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened(encoder="bm25")
    memory.add(commands)
    query = "take back a mistake"
    units = (Unit("reverse the effect of earlier changes"), Unit("record new changes"))
    assert memory.search(query) == []
    for search in ("blend", "concat", "fuse"):
        assert memory.search(query, expansion=Expansion(query, units, "given", search))[0].id == "git-revert"
    both = (Unit("the history"), Unit("reverse the effect"))
    away = (*both, Unit("reverse effects", positive=False))
    found = [[hit.id for hit in memory.search(query, expansion=Expansion(query, u, "given"))] for u in (both, away)]
    assert set(found[0]) == {"git-log", "git-merge", "git-revert"} and set(found[1]) == {"git-log", "git-merge"}


def test_recorded_expansions_lift_bm25_as_published(opened: Opener, dataset: Any) -> None:
    data: Dataset = dataset("nfcorpus")
    memory = opened(
        encoder="bm25", expander={"name": "recorded", "file": str(DATA / "nfcorpus/expansions/gemini-flash-250.jsonl")}
    )
    memory.add(data.documents)
    place = {document.id: number for number, document in enumerate(data.documents)}
    plain, expanded = [], []
    for query, relevant in sorted(data.judged.items()):
        grades = {place[id]: float(grade) for id, grade in relevant.items()}
        plain.append(ndcg([place[hit.id] for hit in memory.search(query)], grades))
        try:
            expansion = memory.components.expanding().ask(query, memory.searcher.look)
        except ExpansionFailed:
            expansion = Expansion(query, (), "query")
        expanded.append(ndcg([place[hit.id] for hit in memory.search(query, expansion=expansion)], grades))
    assert sum(plain) / len(plain) == pytest.approx(0.331, abs=0.003)
    assert sum(expanded) / len(expanded) >= 0.375


def test_the_command_line_expands_and_compares(tmp_path: Path, commands: list[evokey.Document]) -> None:
    at = tmp_path / "kb"
    with evokey.open(at, encoder="bm25") as memory:
        memory.add(commands)
    run = CliRunner()
    shown = run.invoke(
        app, ["expand", "record changes", "--with", "prf", "--with", "query", "--compare", "--at", str(at)]
    )
    assert shown.exit_code == 0 and "query alone" in shown.stdout and "prf" in shown.stdout
    told = json.loads(run.invoke(app, ["expand", "record changes", "--with", "prf", "--at", str(at), "--json"]).stdout)
    assert told["expansions"][0]["expansion"]["units"]
    failed = run.invoke(app, ["expand", "record changes", "--with", "hyde", "--at", str(at), "--json"])
    assert failed.exit_code == 2 and "language model" in failed.stdout
    names = {part["name"] for part in json.loads(run.invoke(app, ["expanders", "--json"]).stdout)}
    assert {"hyde", "diver", "decomposition", "facet", "contrastive", "synonyms", "prf", "several"} <= names
    assert {part["name"] for part in json.loads(run.invoke(app, ["llms", "--json"]).stdout)} >= {"openai", "llamacpp"}
