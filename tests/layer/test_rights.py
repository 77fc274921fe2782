"""A caller with fewer rights, as an attacker: what others taught must not show, nor change anything."""

from __future__ import annotations

import pytest
from conftest import Attach
from layer.library import Library, ids, pairs, teach

import evokey
from evokey.demo import run
from evokey.demo.run import Question
from evokey.errors import InvalidResults


@pytest.fixture
def secret(questions: list[Question]) -> set[str]:
    """Half of the documents that are taught."""
    taught = [one for one in questions if one.group == run.GROUPS[0]][:60]
    intents = sorted({one.relevant for one in taught})
    return {id for relevant in intents[::2] for id in relevant}


@pytest.fixture
def guarded(pages: list[evokey.Document], secret: set[str]) -> Library:
    return Library(pages, secret=sorted(secret))


def teach_staff(layer: evokey.Layer, questions: list[Question]) -> list[Question]:
    taught = teach(layer, questions, team="staff")
    assert layer.evolve().published
    return taught


def test_nothing_secret_is_added_to_the_results_of_a_caller_who_may_not_see_it(
    attach: Attach, guarded: Library, questions: list[Question], secret: set[str]
) -> None:
    layer = attach(guarded.search, allowed=guarded.allowed)
    taught = teach_staff(layer, questions)
    for one in questions:
        assert not secret.intersection(ids(layer.search(one.text, 20, team="guest")))
    assert any(secret.intersection(ids(layer.search(one.text, 1, team="staff"))) for one in taught)


def test_without_allowed_a_caller_with_filters_only_sees_what_the_engine_returned(
    attach: Attach, guarded: Library, questions: list[Question]
) -> None:
    layer = attach(guarded.search)
    teach_staff(layer, questions)
    changed = 0
    for one in questions[:200]:
        own = [id for id, _ in guarded.search(one.text, 100, team="guest")]
        found = ids(layer.search(one.text, 10, team="guest"))
        assert set(found) <= set(own)
        changed += found != own[:10]
    assert changed, "what the engine returned is ranked anew"


def test_a_lesson_about_secret_documents_alone_changes_nothing_for_a_guest(
    attach: Attach, guarded: Library, questions: list[Question], secret: set[str]
) -> None:
    layer = attach(guarded.search, allowed=guarded.allowed)
    taught = teach_staff(layer, questions)
    touched = {id for one in taught for id in one.relevant}
    for one in questions:
        untaught = guarded.search(one.text, 100, team="guest")
        if not touched.difference(secret).intersection(id for id, _ in untaught):
            found = layer.search(one.text, 10, team="guest")
            new = [hit.id for hit in found if hit.id not in dict(untaught)]
            assert new or pairs(found) == untaught[:10]
            assert secret.isdisjoint(new)


def test_what_a_guest_sees_does_not_depend_on_secret_lessons(attach: Attach, pages: list[evokey.Document]) -> None:
    """The same epoch, with a lesson about a secret document and without it."""
    library = Library(pages, secret=["os.path.dirname"])
    layer = attach(library.search, allowed=library.allowed)
    layer.feedback("cut off the last part of a path", relevant=["os.path.dirname"], team="staff")
    layer.feedback("how long is a list", relevant=["len"], team="staff")
    layer.evolve()
    for query in ("cut off the last part of a path", "cut off the last part of the path", "the last part"):
        assert pairs(layer.search(query, 10, team="guest")) == library.search(query, 10, team="guest")
    assert layer.search("cut off the last part of a path", 1, team="staff")[0].id == "os.path.dirname"


def test_allowed_is_asked_once_and_only_for_ids_that_were_not_returned(
    attach: Attach, pages: list[evokey.Document], questions: list[Question]
) -> None:
    library = Library(pages)
    layer = attach(library.search, allowed=library.allowed)
    taught = teach_staff(layer, questions)
    library.asked_for_leave.clear()
    layer.search(taught[0].text, 5)
    assert len(library.asked_for_leave) == 1
    assert set(library.asked_for_leave[0]).isdisjoint(id for id, _ in library.search(taught[0].text, 100))
    assert len(library.asked_for_leave[0]) <= 100


def test_ids_that_nobody_asked_for_are_not_added_and_errors_of_allowed_are_its_own(attach: Attach) -> None:
    def generous(ids: list[str]) -> list[str]:
        return [*ids, "intruder"]

    def broken(ids: list[str]) -> list[str]:
        raise PermissionError("no rights today")

    layer = attach(lambda query, k: [("a", 2.0), ("b", 1.0)], allowed=generous)
    layer.feedback("where is it", relevant=["c"])
    layer.evolve()
    assert ids(layer.search("where is it")) == ["c", "a", "b"]
    layer.close()
    with pytest.raises(PermissionError, match="no rights today"):
        attach(lambda query, k: [("a", 2.0), ("b", 1.0)], allowed=broken).search("where is it")
    layer = attach(lambda query, k: [("a", 2.0), ("b", 1.0)], allowed=lambda ids: "c")
    with pytest.raises(InvalidResults, match="allowed must return"):
        layer.search("where is it")


def test_allowed_may_hand_over_the_documents_it_allows(attach: Attach) -> None:
    layer = attach(
        lambda query, k: [("a", 2.0), ("b", 1.0)],
        allowed=lambda ids: [{"id": id, "text": f"the text of {id}"} for id in ids],
    )
    layer.feedback("where is it", relevant=["c"])
    layer.evolve()
    assert layer.search("where is it")[0].document.text == "the text of c"
