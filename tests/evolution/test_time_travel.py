"""Time travel, protected queries and explanation: what was learned can be seen, compared, undone and kept in bounds."""

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


def test_no_choice_makes_a_protected_query_worse(opened: Opener, dataset: object) -> None:
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
        memory.protect(query, relevant=dict.fromkeys(data.judged[query], 1))
    memory.evolve()
    assert all(found(query) >= found(query, epoch=0) for query in losers[:5])


def test_a_protection_can_be_taken_out_and_names_known_documents_only(
    opened: Opener, commands: list[evokey.Document]
) -> None:
    memory = opened()
    memory.add(commands)
    memory.protect("show history", relevant=["git-log"])
    assert memory.protected_queries() == {"show history": {"git-log": 1.0}}
    with pytest.raises(UnknownDocument, match="'git-push'"):
        memory.protect("push", relevant=["git-push"])
    memory.protect("show history", relevant=[])
    assert memory.protected_queries() == {}


def test_an_explanation_adds_up_to_the_score(opened: Opener, dataset: object) -> None:
    data: Dataset = dataset("cranfield")  # type: ignore[operator]
    for encoder in ("bm25", "wordllama"):
        memory = opened(encoder, encoder=encoder, policy={"name": "guarded", "lens": "none"})
        memory.add(data.documents)
        for query, relevant in sorted(data.judged.items())[:60]:
            memory.feedback(query, relevant=relevant, actor="judge")
        assert memory.evolve().published
        query = sorted(data.judged)[0]
        for hit in memory.search(query, k=5):
            view = memory.explain(hit.id, query).views[0]
            assert view.after == pytest.approx(hit.score, rel=1e-5)
            if view.best_key == "moved key" and encoder == "bm25":
                assert view.before + sum(pull.amount for pull in view.contributions) == pytest.approx(hit.score)
                assert sum(term.after for term in view.terms) == pytest.approx(hit.score)
                assert sum(term.before for term in view.terms) == pytest.approx(view.before)
            assert (view.moved > 0) == bool(view.contributions)


# ---- lessons on hold


def test_what_was_rolled_back_stays_away_until_it_is_released(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    taught(memory, commands)
    best = ranking(memory, RESCUE)
    memory.rollback(0)
    assert ranking(memory, RESCUE) == ranking(memory, RESCUE, epoch=0)
    memory.feedback("who wrote this line?", relevant=["git-blame"])
    report = memory.evolve()
    assert report.published and report.lessons == 1
    assert "2 lessons are on hold" in report.reason
    assert (memory.stats().held, memory.stats().pending) == (2, 0)
    assert ranking(memory, RESCUE)[0][0] != "git-bisect"
    assert memory.release(one.number for one in memory.lessons(held=True)) == 2
    assert memory.stats().pending == 2
    assert memory.evolve().lessons == 3
    assert ranking(memory, RESCUE)[0][0] == best[0][0] == "git-bisect"


def test_a_rollback_is_undone_by_another_and_evolve_has_nothing_to_add(
    opened: Opener, commands: list[evokey.Document]
) -> None:
    memory = opened()
    taught(memory, commands)
    best = ranking(memory, RESCUE)
    memory.rollback(1)
    assert [(one.number, one.held) for one in memory.lessons()] == [(1, False), (2, True)]
    assert memory.evolve().reason.startswith("nothing new since epoch 3; 1 lesson is on hold")
    memory.rollback(2)
    assert memory.stats().held == 0
    assert memory.evolve().reason == "nothing new since epoch 4"
    assert ranking(memory, RESCUE) == best


def test_epochs_keep_the_lessons_they_had_whatever_is_held_or_released_later(
    opened: Opener, commands: list[evokey.Document]
) -> None:
    memory = opened()
    taught(memory, commands)
    memory.hold([1])
    memory.feedback("who wrote this line?", relevant=["git-blame"])
    assert memory.evolve().epoch == 3
    asked = [RESCUE, "why is the sky so blue?", "who wrote this line?"]
    known = {number: [ranking(memory, query, epoch=number) for query in asked] for number in range(4)}
    assert known[3][0][0][0] != known[2][0][0][0]
    memory.release([1])
    memory.hold([2, 3])
    memory.evolve()
    memory.close()
    again = opened()
    assert {number: [ranking(again, query, epoch=number) for query in asked] for number in range(4)} == known
    assert [one.omitted for one in again.epochs()] == [set(), set(), set(), {1}, {2, 3}]


def test_a_new_epoch_equals_that_of_a_memory_without_the_lessons_on_hold(
    opened: Opener, commands: list[evokey.Document]
) -> None:
    memory, other = opened("a"), opened("b")
    for one in (memory, other):
        one.add(commands)
        one.feedback(RESCUE, relevant=["git-bisect"])
    memory.feedback(RESCUE, relevant=["git-clone"], units=["a sad day"], actor="eve")
    memory.feedback("undo it", relevant=["git-merge"], actor="eve")
    memory.evolve()
    memory.hold(one.number for one in memory.lessons(actor="eve"))
    for one in (memory, other):
        one.feedback("put my work away", relevant=["git-stash"])
        one.evolve()
    for query in (RESCUE, "undo it", "a sad day", "put my work away"):
        assert ranking(memory, query) == ranking(other, query)


def test_forgetting_reaches_lessons_on_hold_and_releases_none(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    taught(memory, commands)
    memory.rollback(0)
    memory.forget(actor="bob")
    assert [(one.actor, one.held) for one in memory.lessons()] == [("ada", True)]
    memory.feedback("who wrote this line?", relevant=["git-blame"])
    memory.evolve()
    memory.release([1])
    memory.forget(document="git-blame")  # learns again what evolve was asked to learn, and not what waits for it
    assert ranking(memory, RESCUE) == ranking(memory, RESCUE, epoch=0)
    assert memory.evolve().lessons == 1


def test_lessons_are_listed_by_what_they_say(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    taught(memory, commands)
    memory.feedback(RESCUE, relevant={"git-log": 2.0}, irrelevant=["git-clone"], units=["save the day"])
    memory.hold([2])

    def numbers(**wanted: object) -> list[int]:
        return [one.number for one in memory.lessons(**wanted)]  # type: ignore[arg-type]

    assert numbers() == [1, 2, 3]
    assert numbers(query=RESCUE) == [1, 3] and numbers(query=RESCUE, actor="ada") == [1]
    assert numbers(document="git-clone") == [2, 3] and numbers(verifier="judge") == []
    assert numbers(held=True) == [2] and numbers(held=False) == [1, 3]
    third = memory.lessons()[2].to_dict()
    assert third["relevant"] == {"git-log": 2.0} and third["irrelevant"] == ["git-clone"]
    assert third["units"] == ["save the day"] and third["actor"] is None
    with pytest.raises(InvalidInput, match="whole one above 0, not '2'"):
        memory.hold(["2"])  # type: ignore[list-item]
    assert memory.hold([2, 99]) == 0 and memory.release([1]) == 0
