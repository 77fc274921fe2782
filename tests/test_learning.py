"""What a memory learns, keeps to itself, and forgets."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from conftest import LENS, Always, Dataset, Opener, ranking

import evokey
from evokey import Choice
from evokey.errors import InvalidInput, UnknownDocument

ENCODERS = pytest.mark.parametrize("encoder", ["bm25", "wordllama", ["bm25", "wordllama"]], ids=str)
LENSED = pytest.mark.parametrize("choice", [None, LENS], ids=["as chosen", "through a lens"])


@ENCODERS
def test_one_lesson_is_enough_to_find_the_document_for_that_question(
    opened: Opener, commands: list[evokey.Document], encoder: str | list[str]
) -> None:
    memory = opened(encoder=encoder)
    memory.add(commands)
    question = "who can rescue my afternoon?"
    assert [hit.id for hit in memory.search(question, k=1)] != ["git-bisect"]
    memory.feedback(question, relevant=["git-bisect"])
    report = memory.evolve()
    assert report.published and report.epoch == 1
    assert memory.search(question)[0].id == "git-bisect"


def test_a_lesson_also_helps_the_same_question_in_other_words(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    memory.feedback("how do I undo a commit?", relevant=["git-revert"])
    memory.evolve()
    assert memory.search("undo the commit I just made")[0].id == "git-revert"


def test_a_word_that_no_document_has_can_be_taught(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened(encoder="bm25")
    memory.add(commands)
    assert memory.search("oops") == []
    memory.feedback("oops", relevant=["git-bisect"])
    memory.evolve()
    assert [hit.id for hit in memory.search("oops")] == ["git-bisect"]


def test_feedback_alone_changes_no_ranking(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    before = ranking(memory, "undo a commit")
    memory.feedback("undo a commit", relevant=["git-bisect"])
    assert ranking(memory, "undo a commit") == before
    assert memory.stats().pending == 1


def test_a_dry_run_publishes_nothing(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    memory.feedback("who can rescue my afternoon?", relevant=["git-bisect"])
    before = ranking(memory, "who can rescue my afternoon?")
    report = memory.evolve(dry_run=True)
    assert not report.published and "dry run" in report.reason
    assert report.taught is not None and report.taught.after > report.taught.before
    assert ranking(memory, "who can rescue my afternoon?") == before


def test_evolving_twice_says_there_is_nothing_new(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    memory.feedback("who can rescue my afternoon?", relevant=["git-bisect"])
    assert memory.evolve().published
    again = memory.evolve()
    assert not again.published and again.reason == "nothing new since epoch 1"


def test_an_older_epoch_can_still_be_asked(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    untaught = ranking(memory, "who can rescue my afternoon?")
    memory.feedback("who can rescue my afternoon?", relevant=["git-bisect"])
    memory.evolve()
    assert ranking(memory, "who can rescue my afternoon?", epoch=0) == untaught
    with pytest.raises(InvalidInput, match="no epoch 7"):
        memory.search("anything", epoch=7)


def test_documents_named_wrong_are_not_credited(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    memory.feedback("show the history", irrelevant=["git-log"])
    report = memory.evolve()
    assert not report.published and "nothing to learn" in report.reason


def test_the_latest_verdict_of_an_actor_counts(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    memory.feedback("who can rescue my afternoon?", relevant=["git-merge"], actor="ada")
    memory.feedback("who can rescue my afternoon?", irrelevant=["git-merge"], actor="ada")
    assert not memory.evolve().published


def test_two_voices_against_one_credit_nothing(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    memory.feedback("who can rescue my afternoon?", relevant=["git-merge"], actor="mallory")
    for actor in ("ada", "grace"):
        memory.feedback("who can rescue my afternoon?", irrelevant=["git-merge"], actor=actor)
    assert not memory.evolve().published


def test_a_changed_document_sets_its_lessons_aside_and_takes_them_up_when_the_text_returns(
    opened: Opener, commands: list[evokey.Document]
) -> None:
    memory = opened()
    memory.add(commands)
    question = "who can rescue my afternoon?"
    memory.feedback(question, relevant=["git-bisect"])
    memory.evolve()
    taught = ranking(memory, question)
    memory.add([{"id": "git-bisect", "title": "git bisect", "text": "Deprecated; see elsewhere."}])
    assert memory.stats().set_aside == 1
    assert memory.search(question)[0].id != "git-bisect"
    memory.add([commands[5]])
    assert memory.stats().set_aside == 0
    assert dict(ranking(memory, question)) == pytest.approx(dict(taught), abs=1e-9)


def test_learned_documents_obey_filters(opened: Opener) -> None:
    memory = opened()
    memory.add(
        [
            {"id": "a", "text": "first aid for burns", "metadata": {"lang": "en"}},
            {"id": "b", "text": "erste hilfe", "metadata": {"lang": "de"}},
        ]
    )
    memory.feedback("ouch the stove", relevant=["b"])
    memory.evolve()
    assert [hit.id for hit in memory.search("ouch the stove", where={"lang": "en"})] in ([], ["a"])
    assert memory.search("ouch the stove", where={"lang": "de"})[0].id == "b"


def test_feedback_on_an_unknown_document_is_refused_and_nothing_is_recorded(
    opened: Opener, commands: list[evokey.Document]
) -> None:
    memory = opened()
    memory.add(commands)
    with pytest.raises(UnknownDocument, match="'git-undo'"):
        memory.feedback("undo", relevant=["git-log", "git-undo"])
    assert memory.stats().lessons == 0


def test_explain_names_the_lesson_and_the_row_behind_a_new_rank(
    opened: Opener, commands: list[evokey.Document]
) -> None:
    memory = opened()
    memory.add(commands)
    memory.feedback("who can rescue my afternoon?", relevant=["git-bisect"], actor="ada")
    memory.evolve()
    told = memory.explain("git-bisect", "who can rescue an afternoon?")
    assert [(lesson.query, lesson.actor) for lesson in told.lessons] == [("who can rescue my afternoon?", "ada")]
    assert told.rank_after == 1 and (told.rank_before is None or told.rank_before > 1)
    dense = next(view for view in told.views if view.retriever == "wordllama")
    assert (dense.best_key, dense.nearest_taught) == ("taught question", "who can rescue my afternoon?")


# ---- on a real set


def taught_on(memory: evokey.Memory, data: Dataset, *, actors: list[str], wrong_actor: str | None = None) -> None:
    """Teach half of the queries, in turn by each actor; one actor may teach nonsense."""
    chance = random.Random(1)
    for turn, query in enumerate(sorted(data.judged)[::2]):
        actor = actors[turn % len(actors)]
        relevant = {chance.choice(data.documents).id: 1} if actor == wrong_actor else data.judged[query]
        memory.feedback(query, relevant=relevant, actor=actor)


@LENSED
@ENCODERS
def test_forgetting_an_actor_leaves_rankings_and_scores_bit_equal_to_never_having_heard_them(
    opened: Opener, dataset: object, encoder: str | list[str], always: Always, choice: Choice | None
) -> None:
    data: Dataset = dataset("cranfield")  # type: ignore[operator]
    heard, never = (opened(name, encoder=encoder) for name in ("heard", "never"))
    if choice:
        always(choice)
    for memory in (heard, never):
        memory.add(data.documents)
    taught_on(heard, data, actors=["ada", "bob"])
    for turn, query in enumerate(sorted(data.judged)[::2]):
        if turn % 2 == 0:
            never.feedback(query, relevant=data.judged[query], actor="ada")
    assert heard.evolve().published and never.evolve().published
    asked = sorted(data.judged)[:60]
    assert [ranking(heard, query) for query in asked] != [ranking(never, query) for query in asked]
    heard.forget(actor="bob")
    assert [ranking(heard, query, k=50) for query in asked] == [ranking(never, query, k=50) for query in asked]


@LENSED
def test_forgetting_everything_leaves_the_untaught_index(
    opened: Opener, dataset: object, always: Always, choice: Choice | None
) -> None:
    data: Dataset = dataset("cranfield")  # type: ignore[operator]
    memory = opened()
    if choice:
        always(choice)
    memory.add(data.documents)
    asked = sorted(data.judged)[:40]
    untaught = [ranking(memory, query) for query in asked]
    taught_on(memory, data, actors=["ada"])
    memory.evolve()
    assert [ranking(memory, query) for query in asked] != untaught
    memory.forget(actor="ada")
    assert [ranking(memory, query) for query in asked] == untaught
    assert (memory.stats().lessons, memory.stats().epoch) == (0, 2)


def test_what_was_forgotten_is_not_left_in_the_files(tmp_path: Path, commands: list[evokey.Document]) -> None:
    secret = "where did zyxomma bury the treasure"
    with evokey.open(tmp_path / "kb", traffic=0) as memory:  # asked again after all, it would be traffic
        memory.add(commands)
        memory.feedback(secret, relevant=["git-stash"], actor="zyxomma")
        memory.evolve()
        memory.forget(actor="zyxomma")
        assert memory.search(secret)[0].score < 1
    left = [path for path in (tmp_path / "kb").rglob("*") if path.is_file() and b"zyxomma" in path.read_bytes()]
    assert left == []


@LENSED
def test_the_order_of_the_lessons_does_not_matter(
    opened: Opener, dataset: object, always: Always, choice: Choice | None
) -> None:
    data: Dataset = dataset("cranfield")  # type: ignore[operator]
    lessons = [(query, data.judged[query]) for query in sorted(data.judged)[::2]]
    one, other = opened("one"), opened("other")
    if choice:
        always(choice)
    for memory, order in ((one, lessons), (other, lessons[::-1])):
        memory.add(data.documents)
        for query, relevant in order:
            memory.feedback(query, relevant=relevant)
    other.evolve()
    reports = one.evolve(), other.evolve()
    assert reports[0].choice and reports[0].choice == reports[1].choice
    asked = sorted(data.judged)[:40]
    assert [ranking(one, query) for query in asked] == [ranking(other, query) for query in asked]


def test_teaching_half_of_a_real_set_lifts_the_other_half(opened: Opener, dataset: object) -> None:
    from evokey.demo.run import quality

    data: Dataset = dataset("cranfield")  # type: ignore[operator]
    memory = opened()
    memory.add(data.documents)
    held_out, taught = sorted(data.judged)[1::2], sorted(data.judged)[::2]

    def mean(queries: list[str]) -> float:
        found = [quality([hit.id for hit in memory.search(query)], list(data.judged[query])) for query in queries]
        return sum(found) / len(found)

    before = mean(held_out), mean(taught)
    taught_on(memory, data, actors=["judge"])
    report = memory.evolve()
    assert report.published and report.held_out is not None and report.held_out.after > report.held_out.before
    after = mean(held_out), mean(taught)
    assert after[0] > before[0] * 1.03
    assert after[1] > 0.85


def test_an_actor_who_teaches_nonsense_does_not_pull_held_out_quality_below_untaught(
    opened: Opener, dataset: object
) -> None:
    from evokey.demo.run import quality

    data: Dataset = dataset("cranfield")  # type: ignore[operator]
    memory = opened()
    memory.add(data.documents)
    held_out = sorted(data.judged)[1::2]

    def mean() -> float:
        found = [quality([hit.id for hit in memory.search(query)], list(data.judged[query])) for query in held_out]
        return sum(found) / len(found)

    before = mean()
    taught_on(memory, data, actors=["ada", "bob", "mallory"], wrong_actor="mallory")
    memory.evolve()
    assert mean() >= before


def test_forgetting_a_contradiction_teaches_what_was_contradicted(
    opened: Opener, commands: list[evokey.Document]
) -> None:
    heard, never = opened("heard"), opened("never")
    for memory in (heard, never):
        memory.add(commands)
        memory.feedback("who can rescue my afternoon?", relevant=["git-bisect"], actor="ada")
    for actor in ("eve", "mallory"):
        heard.feedback("who can rescue my afternoon?", irrelevant=["git-bisect"], actor=actor)
    assert not heard.evolve().published and never.evolve().published
    for actor in ("eve", "mallory"):
        heard.forget(actor=actor)
    question = "who can rescue my afternoon?"
    assert ranking(heard, question) == ranking(never, question)


def test_forgetting_an_actors_vectors_is_exact_too(opened: Opener) -> None:
    heard, never = opened("heard", encoder="given"), opened("never", encoder="given")
    for memory in (heard, never):
        memory.add([{"id": id, "text": id} for id in "xyz"], vectors=[[1, 0, 0], [0, 1, 0], [0, 0, 1]])
        memory.feedback("which way?", relevant=["x"], actor="ada", vector=[0.5, 0.6, 0.0])
    heard.feedback("which way?", relevant=["x"], actor="eve", vector=[0.0, 0.1, 0.9])
    for memory in (heard, never):
        memory.evolve()
    heard.forget(actor="eve")
    assert ranking(heard, "which way?") == ranking(never, "which way?")


def test_a_grade_of_zero_takes_the_verdict_back(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    memory.feedback("rescue", relevant=["git-bisect"], actor="ada")
    memory.feedback("rescue", relevant={"git-bisect": 3}, actor="bob")
    memory.feedback("rescue", relevant={"git-bisect": 0}, actor="bob")
    assert list(memory.composer.log(3).taught.grades["rescue"].values()) == [1.0]


def test_many_lessons_are_recorded_together_or_not_at_all(opened: Opener, commands: list[evokey.Document]) -> None:
    memory = opened()
    memory.add(commands)
    good = [{"query": f"question {n}", "relevant": ["git-log"]} for n in range(3)]
    with pytest.raises(UnknownDocument):
        memory.feedback_many([*good, {"query": "bad", "relevant": ["nobody"]}])
    assert memory.stats().lessons == 0
    assert [lesson.query for lesson in memory.feedback_many(good)] == [f"question {n}" for n in range(3)]


def test_documents_that_one_retriever_cannot_read_do_not_stop_learning(opened: Opener) -> None:
    memory = opened()
    memory.add([{"id": f"e{n}", "text": "🐜🐝" * (n + 1)} for n in range(25)])
    for n in range(25):
        memory.feedback(f"picture number {n}", relevant=[f"e{n}"])
    memory.evolve()
    assert memory.search("picture number 7")
