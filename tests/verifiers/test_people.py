"""People, one's own function, and the unified rule with its controls."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from verifiers.attempts import attempt, hits

from evokey.errors import InvalidInput, InvalidSettings
from evokey.types import Attempt, Ruling, Spent
from evokey.verifiers.custom import Custom
from evokey.verifiers.human import Human
from evokey.verifiers.unified import Unified

ASKED = attempt("Capital?", "Paris", "Paris!", cites=["paris"])


def test_an_attempt_waits_for_a_person_and_then_their_word_is_the_ruling(tmp_path: Path) -> None:
    human = Human(tmp_path / "new" / "queue.sqlite", now=lambda: 12.5)
    assert human.verify(ASKED) == Ruling(None, reason="it waits for a person")
    assert human.verify(ASKED).success is None
    (question,) = human.pending()
    assert (question.query, question.answer, question.cites, question.time) == ("Capital?", "Paris", ("paris",), 12.5)
    assert [document.id for document in question.documents] == ["paris", "lyon", "wine"]
    human.answer(question.id, True, {"paris": 2, "lyon": -1}, actor="anna")
    ruling = human.verify(ASKED)
    assert (ruling.success, dict(ruling.grades)) == (True, {"paris": 2, "lyon": -1})
    assert human.pending() == []
    human.answer(question.id, False)
    assert (human.verify(ASKED).success, dict(human.verify(ASKED).grades)) == (False, {})


def test_a_person_who_names_no_document_vouches_for_the_cited_ones(tmp_path: Path) -> None:
    human = Human(tmp_path / "q")
    human.verify(ASKED)
    human.answer(human.pending()[0].id, True)
    assert human.verify(ASKED).grades == {"paris": 1.0}


def test_the_order_of_documents_makes_no_new_question_but_another_text_does(tmp_path: Path) -> None:
    human = Human(tmp_path / "q")
    for found in (hits("paris", "lyon"), hits("lyon", "paris"), hits("lyon", paris="Paris burnt.")):
        human.verify(attempt("Capital?", "Paris", found=found))
    assert len(human.pending()) == 2


def test_what_was_skipped_waits_no_more_and_is_no_word(tmp_path: Path) -> None:
    human = Human(tmp_path / "q")
    human.verify(ASKED)
    human.skip(human.pending()[0].id)
    assert human.pending() == []
    assert human.verify(ASKED) == Ruling(None, reason="a person skipped it")


def test_words_that_cannot_be_taken_are_refused_and_change_nothing(tmp_path: Path) -> None:
    human = Human(tmp_path / "q")
    human.verify(ASKED)
    id = human.pending()[0].id
    for grades, message in (({"gone": 1.0}, "showed no document 'gone'"), ({"paris": math.nan}, "finite number")):
        with pytest.raises(InvalidInput, match=message):
            human.answer(id, True, grades)
    for act in (lambda: human.answer(99, True), lambda: human.skip(99)):
        with pytest.raises(InvalidInput, match="no question 99 was asked"):
            act()
    assert len(human.pending()) == 1


def test_a_file_that_is_no_queue_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no queue at all, but a text that is long enough" * 50)
    with pytest.raises(InvalidSettings, match=r"notes\.txt cannot keep a queue"):
        Human(tmp_path / "notes.txt")


def test_a_queue_that_breaks_later_is_an_abstention(tmp_path: Path) -> None:
    human = Human(tmp_path / "q")
    for file in tmp_path.iterdir():
        file.write_bytes(b"broken " * 2000)
    ruling = human.verify(ASKED)
    assert ruling.success is None
    assert "does not answer" in ruling.reason


PROCESS = """
import sys
from evokey.types import Attempt, Document, Hit
from evokey.verifiers.human import Human
human = Human(sys.argv[1])
for number in range(40):
    human.verify(Attempt(f"question {number}", (Hit("d", 1.0, Document("d", "text")),)))
if sys.argv[2] == "answer":
    for question in human.pending():
        human.answer(question.id, True, {"d": 1.0})
"""


def test_processes_share_one_queue(tmp_path: Path) -> None:
    at = str(tmp_path / "queue.sqlite")
    asking = [subprocess.Popen([sys.executable, "-c", PROCESS, at, "ask"]) for _ in range(2)]
    assert [process.wait(60) for process in asking] == [0, 0]
    human = Human(at)
    assert sorted(question.query for question in human.pending()) == sorted(f"question {n}" for n in range(40))
    subprocess.run([sys.executable, "-c", PROCESS, at, "answer"], check=True, timeout=60)
    assert human.pending() == []
    again = Attempt("question 7", hits(d="text"))
    assert human.verify(again).grades == {"d": 1.0}


def shouts(asked: Attempt) -> bool:
    return asked.query.isupper()


@pytest.mark.parametrize(
    ("told", "success", "score"),
    [
        (True, True, 1.0),
        (np.bool_(False), False, 0.0),
        (0.5, True, 0.5),
        (0.49, False, 0.49),
        (np.float32(0.75), True, 0.75),
        (1, True, 1.0),
        (math.nan, None, None),
        (None, None, None),
        ("yes", None, None),
        ([True], None, None),
    ],
)
def test_what_one_s_own_function_may_return(told: Any, success: bool | None, score: float | None) -> None:
    ruling = Custom(lambda asked: told).verify(ASKED)
    assert (ruling.success, ruling.score) == (success, score)
    assert ruling.grades == ({"paris": 1.0} if success else {})
    assert ruling.reason


def test_a_ruling_of_one_s_own_is_taken_as_it_is() -> None:
    mine = Ruling(False, 3.0, {"wine": -1.0}, "because")
    assert Custom(lambda asked: mine).verify(ASKED) is mine


def test_a_function_by_its_path_and_one_that_raises() -> None:
    by_path = Custom(f"{__name__}:shouts")
    assert by_path.identity == f"custom/{__name__}:shouts/0.5"
    assert by_path.identity == Custom(shouts).identity
    assert by_path.verify(attempt("CAPITAL?")).success is True

    def broken(asked: Attempt) -> bool:
        raise KeyError("oops")

    ruling = Custom(broken).verify(ASKED)
    assert ruling.success is None
    assert "raised KeyError: 'oops'" in ruling.reason


class Says:
    """Rules as it is told to, by the query."""

    def __init__(self, looks_at: Any, rulings: dict[str, Ruling]) -> None:
        self.identity, self.looks_at, self._rulings = looks_at, looks_at, rulings

    def verify(self, asked: Attempt) -> Ruling:
        return self._rulings[asked.query]


YES, NO, UNSURE = True, False, None
RIGHT, COST = {"paris": 1.0}, Spent(calls=1)


def unified(retrieval: Any, generation: Any, **options: Any) -> Unified:
    """From what each says of the attempt, of the plain query and of the closed book."""
    sides = [
        Says(
            looks_at,
            {
                name: Ruling(success, grades=RIGHT if success else {"wine": -1.0}, spent=COST)
                for name, success in zip(("expanded", "plain", "closed"), said, strict=False)
            },
        )
        for looks_at, said in (("retrieval", retrieval), ("generation", generation))
    ]
    return Unified(*sides, **options)


EXPANDED, PLAIN, CLOSED = (attempt(name, "Paris") for name in ("expanded", "plain", "closed"))


@pytest.mark.parametrize(
    ("retrieval", "generation", "either", "both"),
    [
        (YES, YES, YES, YES),
        (YES, NO, YES, NO),
        (NO, YES, YES, NO),
        (NO, NO, NO, NO),
        (YES, UNSURE, YES, UNSURE),
        (UNSURE, YES, YES, UNSURE),
        (NO, UNSURE, NO, NO),
        (UNSURE, NO, NO, NO),
        (UNSURE, UNSURE, UNSURE, UNSURE),
    ],
)
def test_the_rules_over_all_that_two_verifiers_can_say(retrieval: Any, generation: Any, either: Any, both: Any) -> None:
    for rule, success in (("either", either), ("both", both)):
        ruling = unified([retrieval], [generation], rule=rule).verify(EXPANDED)
        assert ruling.success is success
        assert ("paris" in ruling.grades) is (success is True)
        assert ruling.spent == Spent(calls=2)


def test_where_two_contradict_each_other_on_a_document_nothing_is_said_of_it() -> None:
    found = Says("retrieval", {"expanded": Ruling(True, grades={"a": 2.0, "b": -1.0, "c": 1.0, "z": 0.0})})
    answered = Says("generation", {"expanded": Ruling(True, grades={"a": 1.0, "b": 1.0, "d": 1.0})})
    assert Unified(found, answered).verify(EXPANDED).grades == {"a": 2.0, "c": 1.0, "d": 1.0}


@pytest.mark.parametrize(
    ("plain", "success", "reason"),
    [(NO, YES, ""), (YES, NO, "the plain query does as well"), (UNSURE, UNSURE, "cannot be told")],
)
def test_gain_is_success_with_the_expansion_and_not_without_it(plain: Any, success: Any, reason: str) -> None:
    ruling = unified([YES, plain], [UNSURE, UNSURE]).verify_against(EXPANDED, PLAIN, None)
    assert ruling.success is success
    assert ("paris" in ruling.grades) is (success is True)
    assert reason in ruling.reason
    assert ruling.spent == Spent(calls=4)


@pytest.mark.parametrize(
    ("retrieval", "closed", "success"),
    [(NO, YES, NO), (NO, NO, YES), (NO, UNSURE, NO), (UNSURE, YES, UNSURE), (YES, YES, YES)],
)
def test_an_answer_the_model_knew_anyway_credits_nothing(retrieval: Any, closed: Any, success: Any) -> None:
    verifier = unified([retrieval], [YES, YES, closed])
    assert verifier.verify(EXPANDED).success is YES
    ruling = verifier.verify_against(EXPANDED, None, CLOSED)
    assert ruling.success is success
    assert ("paris" in ruling.grades) is (success is True)
    assert ruling.spent == Spent(calls=3)


def test_what_the_model_knew_is_no_success_of_the_plain_query_either() -> None:
    verifier = unified([YES, NO], [YES, YES, YES])
    assert verifier.verify_against(EXPANDED, PLAIN, None).success is NO
    assert verifier.verify_against(EXPANDED, PLAIN, CLOSED).success is YES


@pytest.mark.parametrize("demand", ["gain", "control"])
def test_a_control_that_is_demanded_and_not_tried_is_an_abstention(demand: str) -> None:
    verifier = unified([YES, NO], [YES, NO, NO], **{demand: True})
    ruling = verifier.verify(EXPANDED)
    assert (ruling.success, dict(ruling.grades)) == (None, {})
    assert "was not tried" in ruling.reason
    assert verifier.verify_against(EXPANDED, PLAIN, CLOSED).success is YES
    assert f"+{demand}" in verifier.identity


def test_rulings_are_plain_data() -> None:
    ruling = unified([YES], [NO]).verify(EXPANDED)
    assert json.loads(json.dumps(dict(ruling.grades)))["paris"] == 1.0
