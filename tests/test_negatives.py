"""Documents that somebody named wrong: how far they are pushed away, who is left alone, and how it is undone."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import Always, Opener, ranking

import evokey
from evokey.inspect.accounting import report
from evokey.types import Choice

DEMOTED = Choice(demotion=0.4)


def at(degrees: float) -> np.ndarray:
    angle = np.radians(degrees)
    return np.array([np.cos(angle), np.sin(angle)], np.float32)


def fan(memory: evokey.Memory) -> None:
    ids = ["level", "middle", "upright"]
    vectors = np.stack([at(0), at(45), at(90)])
    memory.add([evokey.Document(id, id) for id in ids], vectors=vectors)


def scores(memory: evokey.Memory, vector: np.ndarray) -> dict[str, float]:
    return {hit.id: hit.score for hit in memory.search("asked", vector=vector)}


def test_a_wrong_document_is_pushed_away_and_others_stay(opened: Opener, always: Always) -> None:
    memory = opened(encoder="given")
    fan(memory)
    before = scores(memory, at(20))
    memory.feedback("flat", relevant=["middle"], irrelevant=["level"], vector=at(20))
    always(DEMOTED)
    assert memory.evolve().published
    # One document was wrong once: its mass is 1 and so is the median, and its key moves by −γ/2 of the query.
    moved = at(0) - 0.2 * at(20)
    after = scores(memory, at(20))
    assert after["level"] == pytest.approx(float(moved @ at(20) / np.linalg.norm(moved)), abs=1e-6)
    assert after["middle"] == before["middle"] and after["upright"] == before["upright"]
    (found,) = report(memory).displacements
    assert found.within and found.largest == pytest.approx(1 - float(at(0) @ moved / np.linalg.norm(moved)), abs=1e-6)


def test_a_push_is_bounded_however_many_say_so(opened: Opener, always: Always) -> None:
    memory = opened(encoder="given")
    fan(memory)
    for number in range(50):
        memory.feedback(f"flat {number}", relevant=["middle"], irrelevant=["level"], vector=at(20))
    memory.feedback("once", relevant=["level"], irrelevant=["upright"], vector=at(80))
    always(DEMOTED)
    memory.evolve()
    (found,) = report(memory).displacements
    assert found.within and found.bound == pytest.approx(1 - np.sqrt(1 - 0.4**2))
    least = at(0) - 0.4 * at(20)
    assert scores(memory, at(20))["level"] > float(least @ at(20) / np.linalg.norm(least))


@pytest.mark.parametrize("encoder", ["bm25", "wordllama"])
def test_who_was_only_wrong_is_touched_only_if_pushed(opened: Opener, always: Always, encoder: str) -> None:
    memory = opened(encoder=encoder)
    memory.add([{"id": id, "text": text} for id, text in (("tea", "green tea"), ("pea", "green pea"))])
    memory.feedback("something green to drink", relevant=["tea"], irrelevant=["pea"])
    untaught = ranking(memory, "green")
    always(Choice(step=0.5))
    memory.evolve()
    assert memory.stats().documents_touched == 1
    assert dict(ranking(memory, "green"))["pea"] == dict(untaught)["pea"]
    memory.feedback("a vegetable", relevant=["pea"])
    memory.forget(query="a vegetable")
    always(Choice(step=0.5, demotion=0.4))
    memory.feedback("leaves in hot water", relevant=["tea"])
    memory.evolve()
    assert memory.stats().documents_touched == 2
    assert dict(ranking(memory, "green"))["pea"] < dict(untaught)["pea"]
    (view,) = memory.explain("pea", "green").views
    assert view.after < view.before and [(pull.text, pull.amount < 0) for pull in view.contributions] == [
        ("something green to drink", True)
    ]
    memory.forget(query="something green to drink")
    assert dict(ranking(memory, "green"))["pea"] == dict(untaught)["pea"]


def test_a_verdict_that_was_taken_back_pushes_nobody(opened: Opener, always: Always) -> None:
    memory = opened(encoder="bm25")
    memory.add([{"id": id, "text": text} for id, text in (("tea", "green tea"), ("pea", "green pea"))])
    untaught = ranking(memory, "green")
    memory.feedback("something green", irrelevant=["pea"], actor="ann")
    memory.feedback("something green", relevant={"pea": 0.0}, actor="ann")
    memory.feedback("a warm drink", relevant=["tea"])
    always(DEMOTED)
    memory.evolve()
    assert dict(ranking(memory, "green"))["pea"] == dict(untaught)["pea"]


@pytest.mark.parametrize("negatives", [True, False])
def test_a_document_that_is_always_in_the_way_is_learned_to_be_wrong(opened: Opener, negatives: bool) -> None:
    """Nobody shares a right document, so that only what was wrong can be learned for questions yet to come."""
    memory = opened(encoder="bm25", policy={"name": "guarded", "negatives": negatives, "lens": "none"})
    memory.add([{"id": f"d{n}", "text": f"leaf{n} tree with many other words to read"} for n in range(60)])
    memory.add([{"id": "magnet", "text": "please wait here with these words"}])
    for number in range(40):
        memory.feedback(f"please tell me about leaf{number}", relevant=[f"d{number}"], irrelevant=["magnet"])
    held_out = [f"please tell me about leaf{number}" for number in range(40, 60)]
    assert all(memory.search(query)[0].id == "magnet" for query in held_out)
    told = memory.evolve()
    choice = told.choice["bm25"]
    found = [memory.search(query)[0].id for query in held_out]
    assert (choice.demotion > 0) == negatives
    assert told.documents == memory.stats().documents_touched == 40 + negatives
    assert (found == [f"d{number}" for number in range(40, 60)]) == negatives


def test_a_protected_document_is_not_pushed_behind_what_lies_beyond_its_pool(opened: Opener) -> None:
    """All hundred that the protected query finds first are pushed, and a hundred others were just behind them."""
    memory = opened(encoder="given")
    near = {f"near{n}": 4 + 0.01 * n for n in range(100)}
    behind = {f"behind{n}": 4.9905 + 0.00005 * n for n in range(1, 101)}
    angles = {**near, **behind, "right": 4.9}
    memory.add([evokey.Document(id, id) for id in angles], vectors=np.stack([at(one) for one in angles.values()]))
    for number in range(40):
        memory.feedback(f"q{number}", relevant=["right"], irrelevant=near, vector=at(0.005 * number - 0.1))
    memory.feedback("protected", irrelevant=["near50"], vector=at(0))
    memory.protect("protected", {"near0": 1.2, "right": 1.0})
    memory.evolve()
    assert memory.search("protected", 1, vector=at(0), epoch=0)[0].id == "near0"
    assert "near0" in [hit.id for hit in memory.search("protected", 10, vector=at(0))]


def test_the_account_names_who_pushed(opened: Opener, always: Always) -> None:
    memory = opened(encoder="bm25")
    memory.add([{"id": id, "text": text} for id, text in (("tea", "green tea"), ("pea", "green pea"))])
    memory.feedback("a warm drink", relevant=["tea"], actor="ann")
    memory.feedback("something green", irrelevant=["pea"], actor="bob")
    for choice, named in ((Choice(step=0.5), {"ann"}), (Choice(step=0.5, demotion=0.4), {"ann", "bob"})):
        always(choice)
        memory.feedback("a cup", relevant=["tea"], actor="ann")
        memory.evolve()
        account = report(memory)
        assert {one.name for one in account.actors.largest} == named
        assert {one.name for one in account.credited.largest} == {"tea"}


def test_a_part_that_was_pushed_behind_another_is_explained(opened: Opener, always: Always) -> None:
    memory = opened(encoder="bm25", keys={"name": "chunks", "tokens": 16, "overlap": 0})
    parts = (
        "please wait here for the ferry to come over from the island at noon",
        "please wait there until the train has come in from the north late at night",
    )
    memory.add([{"id": "two", "text": ". ".join(parts)}, {"id": "one", "text": "the moon"}])
    memory.feedback("please wait here for a ferry", relevant=["one"], irrelevant=["two"])
    always(Choice(demotion=0.4))
    memory.evolve()
    (view,) = memory.explain("two", "please wait").views
    assert view.best_key == "second-best part" and view.after <= view.before
    assert [(pull.text, pull.amount < 0) for pull in view.contributions] == [("please wait here for a ferry", True)]
    assert view.after == pytest.approx(dict(ranking(memory, "please wait"))["two"])
