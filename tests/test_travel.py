"""Time travel, pins and explanation: what was learned can be seen, compared, undone and kept in bounds."""

from __future__ import annotations

import pytest
from conftest import Dataset, Opener, ranking

import evokey
from evokey.errors import InvalidInput, UnknownDocument

RESCUE = "who can rescue my afternoon?"


def taught(memory: evokey.Memory, commands: list[evokey.Document]) -> None:
    """Two epochs: the second knows one lesson more."""
    memory.add(commands)
    memory.feedback(RESCUE, relevant=["git-bisect"], actor="ada")
    memory.evolve()
    memory.feedback("why is the sky so blue?", relevant=["git-clone"], actor="bob")
    memory.evolve()


def test_epochs_are_listed_from_the_untaught_one_on(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    taught(memory, commands)
    listed = [(one.number, one.kind, one.lessons_to) for one in memory.epochs()]
    assert listed == [(0, "untaught", 0), (1, "evolve", 1), (2, "evolve", 2)]


def test_rolling_back_brings_an_older_epochs_rankings_back_bit_for_bit(
    opened: Opener, commands: list[evokey.Document]
) -> None:
    memory = opened()
    taught(memory, commands)
    asked = [RESCUE, "why is the sky so blue?", "show history"]
    known = {number: [ranking(memory, query, epoch=number) for query in asked] for number in (0, 1, 2)}
    for back in (1, 0, 2):
        made = memory.rollback(back)
        assert made.kind == "rollback" and made.number == memory.stats().epoch
        assert [ranking(memory, query) for query in asked] == known[back]
    assert [one.number for one in memory.epochs()] == [0, 1, 2, 3, 4, 5]


def test_after_a_rollback_evolve_takes_the_lessons_up_again(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    taught(memory, commands)
    best = ranking(memory, RESCUE)
    memory.rollback(0)
    assert ranking(memory, RESCUE) == ranking(memory, RESCUE, epoch=0)
    assert memory.evolve().published
    assert ranking(memory, RESCUE) == best


def test_forgetting_reaches_into_older_epochs_and_marks_them(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    taught(memory, commands)
    memory.forget(actor="ada")
    assert ranking(memory, RESCUE, epoch=1) == ranking(memory, RESCUE, epoch=0)
    assert [one.redacted for one in memory.epochs()] == [False, True, True, False]


def test_forgetting_after_a_rollback_keeps_to_it(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    taught(memory, commands)
    memory.rollback(0)
    memory.forget(actor="bob")
    assert ranking(memory, RESCUE) == ranking(memory, RESCUE, epoch=0)


def test_a_diff_names_the_documents_and_queries_that_changed(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    taught(memory, commands)
    found = memory.diff(1, 2)
    assert [(one.document, one.taught_before, one.taught_after) for one in found.documents] == [("git-clone", 0, 1)]
    changes = {one.query: one for one in found.queries}
    assert changes["why is the sky so blue?"].after[0] == "git-clone"
    assert changes["why is the sky so blue?"].quality_after == 1.0
    assert memory.diff(2, 2).documents == memory.diff(2, 2).queries == []
    with pytest.raises(InvalidInput, match="no epoch 9"):
        memory.diff(0, 9)


def test_no_choice_makes_a_pinned_query_worse(opened: Opener, dataset: object) -> None:
    from evokey.demo.run import quality

    data: Dataset = dataset("cranfield")  # type: ignore[operator]
    queries = sorted(data.judged)
    memory = opened(encoder="bm25")
    memory.add(data.documents)

    def found(query: str, epoch: int | None = None) -> float:
        return quality([hit.id for hit in memory.search(query, epoch=epoch)], list(data.judged[query]))

    for query in queries[:100]:
        memory.feedback(query, relevant=data.judged[query])
    memory.evolve()
    losers = [query for query in queries[100:] if found(query) < found(query, epoch=0)]
    assert losers
    for query in losers[:5]:
        memory.pin(query, relevant=dict.fromkeys(data.judged[query], 1))
    memory.evolve()
    assert all(found(query) >= found(query, epoch=0) for query in losers[:5])


def test_a_pin_can_be_taken_out_and_names_known_documents_only(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    memory.pin("show history", relevant=["git-log"])
    assert memory.pins() == {"show history": {"git-log": 1.0}}
    with pytest.raises(UnknownDocument, match="'git-push'"):
        memory.pin("push", relevant=["git-push"])
    memory.pin("show history", relevant=[])
    assert memory.pins() == {}


def test_an_explanation_adds_up_to_the_score(opened: Opener, dataset: object) -> None:
    data: Dataset = dataset("cranfield")  # type: ignore[operator]
    for encoder in ("bm25", "wordllama"):
        memory = opened(encoder, encoder=encoder)
        memory.add(data.documents)
        for query, relevant in sorted(data.judged.items())[:60]:
            memory.feedback(query, relevant=relevant, actor="judge")
        assert memory.evolve().published
        query = sorted(data.judged)[0]
        for hit in memory.search(query, k=5):
            view = memory.explain(hit.id, query).views[0]
            assert view.after == pytest.approx(hit.score, rel=1e-5)
            if view.by == "moved key" and encoder == "bm25":
                assert view.before + sum(pull.amount for pull in view.pulls) == pytest.approx(hit.score)
                assert sum(term.after for term in view.terms) == pytest.approx(hit.score)
                assert sum(term.before for term in view.terms) == pytest.approx(view.before)
            assert (view.moved > 0) == bool(view.pulls)
