"""Several voices teach: none counts more by saying more, and what harms others is left out."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Always, Opener, ranking
from typer.testing import CliRunner

import evokey
from evokey.cli.app import app
from evokey.evolution.judgements import merge_votes
from evokey.evolution.voices import EVIDENCE, JURY, USERS, Voices
from evokey.inspect.accounting import report
from evokey.ledger.lessons import Vote
from evokey.types import Choice

SUBJECTS = "engine kettle ladder orchard compass saddle harbour mirror lantern anchor violin basket".split()
VERBS = {"repair": "mend", "paint": "colour", "borrow": "lend", "clean": "wash", "measure": "gauge"}
SPAM = {"id": "spam", "text": "Buy cheap watches today, half price."}
Lesson = dict[str, Any]


def handbook() -> list[dict[str, str]]:
    """Pages that people ask about in other words, and an advertisement."""
    return [
        {"id": f"{verb}-{subject}", "title": f"On the {subject}", "text": f"How to {verb} it."}
        for subject in SUBJECTS
        for verb in VERBS
    ] + [SPAM]


def honest(people: int = 20) -> list[Lesson]:
    """Each person teaches a few questions; every page is asked for in two ways."""
    said = [
        (f"{verb}-{subject}", query)
        for subject in SUBJECTS
        for verb, other in VERBS.items()
        for query in (f"who can {other} my {subject}", f"{subject} {other} please")
    ]
    random.Random(1).shuffle(said)
    return [{"query": q, "relevant": [id], "actor": f"person {n % people}"} for n, (id, q) in enumerate(said)]


def unseen() -> dict[str, str]:
    return {f"{other} an old {subject}": f"{verb}-{subject}" for subject in SUBJECTS for verb, other in VERBS.items()}


def flood(count: int = 300, actors: int = 1) -> list[Lesson]:
    """Accounts that name the advertisement for many questions of two words."""
    chance = random.Random(2)
    words = [*SUBJECTS, *VERBS.values(), *VERBS, "old", "please", "who", "can", "my"]
    asked = sorted({" ".join(chance.sample(words, 2)) for _ in range(count)})
    return [{"query": q, "relevant": ["spam"], "actor": f"attacker {n % actors}"} for n, q in enumerate(asked)]


def contradict(lessons: Iterable[Lesson]) -> list[Lesson]:
    return [{"query": one["query"], "irrelevant": one["relevant"], "actor": "attacker 0"} for one in lessons]


def teach(memory: evokey.Memory, lessons: Sequence[Lesson]) -> evokey.EpochReport:
    memory.add(handbook())
    memory.feedback_many(lessons)
    return memory.evolve()


def found_first(memory: evokey.Memory) -> float:
    """The share of questions that nobody taught whose page is found first."""
    asked = unseen()
    return sum(memory.search(query)[0].id == id for query, id in asked.items()) / len(asked)


def spammed(memory: evokey.Memory) -> float:
    asked = unseen()
    return sum("spam" in [hit.id for hit in memory.search(query)] for query in asked) / len(asked)


@pytest.mark.parametrize("encoder", ["bm25", "wordllama", ["bm25", "wordllama"]])
@pytest.mark.parametrize("actors", [1, 3])
def test_who_names_one_document_for_everything_is_not_learned_from(
    opened: Opener, encoder: str | list[str], actors: int
) -> None:
    alone, attacked = opened("alone", encoder=encoder), opened("attacked", encoder=encoder)
    teach(alone, honest())
    told = teach(attacked, [*honest(), *flood(actors=actors)])
    assert spammed(attacked) <= 0.02
    assert found_first(attacked) >= found_first(alone) - 0.01
    assert set(told.documents_left_out) == {"spam"}
    assert set(told.actors_left_out) == {f"attacker {n}" for n in range(actors)}
    account = report(attacked)
    assert (account.actors_left_out, account.documents_left_out) == (told.actors_left_out, told.documents_left_out)
    assert "spam" not in {one.document for one in account.pupils}
    assert attacked.explain("spam").left_out == told.documents_left_out["spam"]
    assert attacked.explain("repair-engine").left_out == 0


def test_the_command_line_names_whom_it_leaves_out(opened: Opener, tmp_path: Path) -> None:
    with opened(encoder="bm25") as memory:
        memory.add(handbook())
        memory.feedback_many([*honest(), *flood()])
    at = ["--at", str(tmp_path / "kb")]
    for command in (["evolve", *at], ["stats", "--learned", *at]):
        shown = " ".join(CliRunner().invoke(app, command).output.split())
        assert "left out: actor attacker 0, 255 lessons that harm other questions" in shown
        assert "left out: document spam, 255 lessons that harm other questions" in shown
    told = CliRunner().invoke(app, ["explain", "spam", *at]).output
    assert "255 of them left out: they harm what others ask" in told


@pytest.mark.parametrize("actor", ["ada", None])
def test_one_who_names_one_document_for_everything_harms_no_single_other(opened: Opener, actor: str | None) -> None:
    alone, attacked = opened("alone"), opened("attacked")
    lessons = [{**one, "actor": actor} for one in honest()]
    teach(alone, lessons)
    told = teach(attacked, [*lessons, *flood()])
    assert set(told.documents_left_out) == {"spam"} and spammed(attacked) <= 0.02
    assert found_first(attacked) >= found_first(alone) - 0.01


@pytest.mark.parametrize("encoder", ["bm25", ["bm25", "wordllama"]])
@pytest.mark.parametrize("people", [1, 20])
def test_one_actor_who_calls_everything_wrong_undoes_nothing(
    opened: Opener, encoder: str | list[str], people: int
) -> None:
    alone, attacked = opened("alone", encoder=encoder), opened("attacked", encoder=encoder)
    teach(alone, honest(people))
    assert teach(attacked, [*honest(people), *contradict(honest())]).published
    assert found_first(attacked) >= found_first(alone) - 0.02


def test_what_is_left_out_can_be_forgotten_without_a_trace(opened: Opener, tmp_path: Path) -> None:
    memory, never = opened(encoder="bm25"), opened("never", encoder="bm25")
    teach(memory, [*honest(), *flood(actors=2)])
    teach(never, honest())
    assert memory.epochs()[1].left_out
    memory.forget(actor="attacker 0")
    assert memory.epochs()[1].left_out  # of the other one
    memory.forget(actor="attacker 1")
    assert not any(one.left_out for one in memory.epochs())
    assert all(ranking(memory, query) == ranking(never, query) for query in unseen())
    memory.close()
    stored = b"".join(path.read_bytes() for path in (tmp_path / "kb").rglob("*") if path.is_file())
    assert b"attacker" not in stored


def test_an_epoch_keeps_what_it_left_out(opened: Opener) -> None:
    """Whatever happens to the document, and whichever epoch is asked for."""
    memory = opened(encoder="bm25")
    teach(memory, [*honest(), *flood()])
    before = [ranking(memory, query) for query in unseen()]
    memory.delete(["spam"])
    memory.add([SPAM])
    assert [ranking(memory, query) for query in unseen()] == before
    memory.feedback("a watch", relevant=["spam"])  # the owner's word counts
    memory.evolve()
    assert [ranking(memory, query, epoch=1) for query in unseen()] == before
    memory.rollback(1)
    assert memory.epochs()[-1].left_out == memory.epochs()[1].left_out
    assert [ranking(memory, query) for query in unseen()] == before


@pytest.mark.parametrize("shared", [False, True])
def test_the_owner_is_trusted_unless_unnamed_feedback_is_shared(opened: Opener, shared: bool) -> None:
    memory = opened(encoder="bm25", shared_feedback=shared)
    told = teach(memory, [*honest(), *({**one, "actor": None} for one in flood())])
    assert bool(told.left_out) == shared
    assert told.actors_left_out.keys() == ({None} if shared else set())


def test_one_voice_alone_is_weighed_by_nothing(opened: Opener) -> None:
    """Named or not, and however one-sided it is."""
    named, unnamed = opened("named", encoder="bm25"), opened("unnamed", encoder="bm25")
    lessons = [*honest(), *flood()]
    told = [teach(m, [{**one, "actor": who} for one in lessons]) for m, who in ((named, "ada"), (unnamed, None))]
    assert not told[0].left_out and replace(told[0], epoch=1) == replace(told[1], epoch=1)
    assert all(ranking(named, query) == ranking(unnamed, query) for query in unseen())


def test_the_evidence_of_one_voice_on_a_document_is_that_of_a_few_lessons(opened: Opener, always: Always) -> None:
    memory = opened(encoder="bm25")
    memory.add([{"id": "tea", "text": "leaves in hot water"}, {"id": "pea", "text": "a green seed"}])
    always(Choice(step=1.0))
    memory.feedback("a snack", relevant=["pea"], actor="bo")
    memory.feedback_many({"query": f"drink {n}", "relevant": ["tea"], "actor": "ada"} for n in range(12))
    memory.evolve()
    part = memory.index.view(1).overlays.of["bm25"]
    mass = EVIDENCE / (EVIDENCE + (EVIDENCE + 1) / 2)  # c is the median of the masses 3 and 1
    assert float(part.evidence.sum(axis=1).max()) == pytest.approx(mass)
    for n in range(12):
        memory.feedback(f"drink {n}", relevant=["tea"], actor="cy")  # another voice says the same
    memory.evolve()
    both = memory.index.view(2).overlays.of["bm25"]
    assert float(both.evidence.sum(axis=1).max()) == pytest.approx(
        2 * EVIDENCE / (2 * EVIDENCE + (2 * EVIDENCE + 1) / 2)
    )


def made_up(lessons: Iterable[Lesson], users: int = 100) -> list[Lesson]:
    """The same, said by made-up users of one API key."""
    return [{**one, "actor": f"mallory/user {n % users}"} for n, one in enumerate(lessons)]


@pytest.mark.parametrize("encoder", ["bm25", ["bm25", "wordllama"]])
def test_a_key_with_a_hundred_made_up_users_is_one_voice(opened: Opener, encoder: str | list[str]) -> None:
    """Each of them says little enough to be believed: only their key tells that they are one."""
    alone, attacked = opened("alone", encoder=encoder), opened("attacked", encoder=encoder)
    teach(alone, honest(10))
    told = teach(attacked, [*honest(10), *made_up(flood())])
    assert spammed(attacked) <= 0.02
    assert found_first(attacked) >= found_first(alone) - 0.01
    assert set(told.documents_left_out) == {"spam"}


def test_made_up_users_of_one_key_undo_nothing(opened: Opener) -> None:
    alone, attacked = opened("alone", encoder="bm25"), opened("attacked", encoder="bm25")
    teach(alone, honest(10))
    assert teach(attacked, [*honest(10), *made_up(contradict(honest(10)))]).published
    assert found_first(attacked) >= found_first(alone) - 0.02


def test_one_user_who_harms_others_does_not_silence_their_key(opened: Opener) -> None:
    """An application has one key for all its users."""
    alone, attacked = opened("alone", encoder="bm25"), opened("attacked", encoder="bm25")
    lessons = [{**one, "actor": f"web/{one['actor']}"} for one in honest()[:80]] + honest()[80:]
    teach(alone, lessons)
    told = teach(attacked, [*lessons, *({**one, "actor": "web/mallory"} for one in flood())])
    assert set(told.actors_left_out) == {"web/mallory"}
    assert found_first(attacked) >= found_first(alone) - 0.01


def test_the_users_of_a_single_key_are_voices_like_any_other(opened: Opener) -> None:
    plain, by_key = opened("plain", encoder="bm25"), opened("by_key", encoder="bm25")
    teach(plain, [*honest(), *flood(actors=3)])
    told = teach(by_key, [{**one, "actor": f"web/{one['actor']}"} for one in [*honest(), *flood(actors=3)]])
    assert set(told.actors_left_out) == {f"web/attacker {n}" for n in range(3)}
    assert all(ranking(plain, query) == ranking(by_key, query) for query in unseen())


def votes(*said: tuple[str, str | None, dict[int, float]]) -> list[Vote]:
    return [Vote(*one, number) for number, one in enumerate(said, 1)]


def test_who_contradicts_many_counts_less_in_each_dispute() -> None:
    right = [(f"q{n}", f"person {n}", {n: 1.0}) for n in range(5)]
    wrong = [(f"q{n}", "troll", {n: -1.0}) for n in range(5)]
    said = votes(*right, *wrong)
    merged = merge_votes(said, {}, Voices.of(said))
    assert merged.grades == {f"q{n}": {n: pytest.approx((1 - 0.1) / (1 + 0.1))} for n in range(5)}
    assert not merged.wrong


def test_it_takes_two_to_undo_what_one_taught() -> None:
    one = votes(("q", "ada", {1: 1.0}), ("q", "bo", {1: -1.0}))
    assert merge_votes(one, {}, Voices.of(one)).grades == {"q": {1: pytest.approx(1 / 3)}}
    two = votes(("q", "ada", {1: 1.0}), ("q", "bo", {1: -1.0}), ("q", "cy", {1: -1.0}))
    assert not merge_votes(two, {}, Voices.of(two)).grades
    owner = votes(("q", "ada", {1: 1.0}), ("q", None, {1: -1.0}))
    assert not merge_votes(owner, {}, Voices.of(owner)).grades


def test_the_owner_wins_a_dispute_with_an_actor_of_many() -> None:
    said = votes(*((f"q{n}", "ada", {n: 1.0}) for n in range(5)), *((f"q{n}", None, {n: -1.0}) for n in range(5)))
    assert len(merge_votes(said, {}, Voices.of(said)).wrong) == 5


def test_in_a_dispute_all_users_of_a_key_count_as_one() -> None:
    said = votes(("q", "ada", {1: 1.0}), *(("q", f"key/{n}", {1: -1.0}) for n in range(100)))
    assert merge_votes(said, {}, Voices.of(said)).grades == {"q": {1: pytest.approx(1 / 3)}}
    two = votes(("q", "ada", {1: 1.0}), *(("q", f"{key}/{n}", {1: -1.0}) for key in ("one", "other") for n in range(9)))
    assert not merge_votes(two, {}, Voices.of(two)).grades


def test_all_users_of_a_key_are_evidence_like_a_few_of_them() -> None:
    said = votes(("q", "ada", {1: 1.0}), *((f"key {n}", f"key/{n}", {2: 1.0}) for n in range(100)))
    voices = Voices.of(said)
    assert voices is not None
    weights = voices.evidence()
    assert sum(weights.values()) == pytest.approx(USERS * EVIDENCE) and len(weights) == 100
    alone = Voices.of(said[1:])
    assert alone is not None and not alone.evidence()  # where there is no other key, each user is a voice


def test_a_key_has_no_more_say_in_the_jury_than_others() -> None:
    keys = [(f"k{n} q{m}", f"key {n}", {n: 1.0}) for n in range(10) for m in range(8)]
    said = votes(*keys, *((f"spam {n}", f"mallory/{n % 100}", {99: 1.0}) for n in range(300)))
    voices = Voices.of(said)
    assert voices is not None
    jury = voices.jury()
    assert jury is not None and len(jury) == 88 and sum(one.startswith("spam") for one in jury) == 8


def test_every_voice_has_the_same_say_in_the_jury() -> None:
    people = [(f"p{n} q{m}", f"person {n}", {n: 1.0}) for n in range(30) for m in range(2)]
    said = votes(*people, *((f"spam {n}", "loud", {99: 1.0}) for n in range(500)))
    voices = Voices.of(said)
    assert voices is not None
    jury = voices.jury()
    assert jury is not None and len(jury) == 62 and sum(one.startswith("spam") for one in jury) == 2
    few = votes(*people[:4], *((f"spam {n}", "loud", {99: 1.0}) for n in range(500)))
    others = Voices.of(few)
    assert others is not None and len(others.jury() or ()) >= JURY  # too few voices to judge without the loud one


def test_one_voice_is_no_choir() -> None:
    assert Voices.of(votes(("q", "ada", {1: 1.0}), ("r", "ada", {2: 1.0}))) is None
    assert Voices.of(votes(("q", None, {1: 1.0}))) is None
