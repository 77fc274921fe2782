"""Models around models: recorded, cached, budgeted; the model inside is a real service on this computer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx", reason="SKIPPED FOR WANT OF A PACKAGE: evokey[remote]")

from wire_chat import ChatServer, echoed, either, events, hangs, openai, openai_events, raw, sent, serving, slowly

from evokey import registry
from evokey.errors import BudgetSpent, InvalidSettings, LLMFailed, UnknownComponent
from evokey.llm.budgeted import Budgeted
from evokey.llm.cached import Cached
from evokey.llm.many import many
from evokey.llm.openai import OpenAI
from evokey.llm.recorded import Recorded
from evokey.llm.request import drain
from evokey.types import Message, Spent

ONE, TWO = [Message("user", "one")], [Message("user", "two")]
DAY = 86_400.0


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    with serving() as server:
        server.play(echoed)
        yield server


@pytest.fixture
def inner(chat: ChatServer) -> dict[str, Any]:
    """The settings of the model inside."""
    return {"name": "openai", "model": "small", "base_url": chat.address, "retries": 0}


def test_wrappers_are_built_from_settings_one_around_the_other(inner: dict[str, Any], tmp_path: Path) -> None:
    budgeted = {"name": "budgeted", "llm": inner, "at": str(tmp_path / "tally.sqlite"), "calls": 1}
    llm = registry.build("llm", {"name": "cached", "llm": budgeted, "at": str(tmp_path / "answers.sqlite")})
    assert isinstance(llm, Cached)
    assert isinstance(llm.llm, Budgeted)
    assert isinstance(llm.llm.llm, OpenAI)
    assert llm.identity == "openai/small"
    assert [llm.complete(ONE).text for _ in range(3)] == ["ONE", "ONE", "ONE"]
    with pytest.raises(BudgetSpent):
        llm.complete(TWO)


def test_settings_that_make_no_model_say_why(inner: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings, match="llm 'cached' needs the option at; its options are: llm, at"):
        registry.build("llm", {"name": "cached", "llm": inner})
    with pytest.raises(InvalidSettings, match="llm 'openai' has no option modle; its options are: model, base_url"):
        registry.build("llm", {**inner, "modle": "small"})
    with pytest.raises(UnknownComponent, match="no llm called 'gpt'"):
        registry.build("llm", "gpt")
    with pytest.raises(InvalidSettings, match="needs its name"):
        registry.build("llm", {"model": "small"})


def test_what_was_asked_once_is_never_asked_again(chat: ChatServer, inner: dict[str, Any], tmp_path: Path) -> None:
    first = Cached(inner, tmp_path / "deep" / "answers.sqlite").complete(ONE)
    kept = Cached(inner, tmp_path / "deep" / "answers.sqlite").complete(ONE)
    assert (kept.text, kept.model, kept.finished) == (first.text, first.model, first.finished)
    assert (first.spent.calls, kept.spent) == (1, Spent())
    assert len(chat.asked) == 1


def test_another_parameter_message_or_model_is_another_request(
    chat: ChatServer, inner: dict[str, Any], tmp_path: Path
) -> None:
    llm = Cached(inner, tmp_path / "answers.sqlite")
    llm.complete(ONE)
    llm.complete(ONE, max_tokens=7)
    llm.complete([Message("assistant", "one")])
    llm.complete([*ONE, *ONE])
    Cached({**inner, "model": "large"}, tmp_path / "answers.sqlite").complete(ONE)
    assert len(chat.asked) == 5


def test_half_a_character_in_an_answer_is_a_failure_and_is_not_kept(
    chat: ChatServer, inner: dict[str, Any], tmp_path: Path
) -> None:
    chat.play(raw(b'{"choices": [{"message": {"content": "A \\ud83e zebra"}, "finish_reason": "stop"}]}'), echoed)
    recording = Recorded(tmp_path / "answers.jsonl", llm=Cached(inner, tmp_path / "answers.sqlite"), mode="record")
    with pytest.raises(LLMFailed, match="not valid Unicode"):
        recording.complete(ONE)
    assert recording.complete(ONE).text == Recorded(tmp_path / "answers.jsonl").complete(ONE).text


def test_several_threads_with_one_question_ask_once(chat: ChatServer, inner: dict[str, Any], tmp_path: Path) -> None:
    chat.play(slowly(echoed, 0.3))
    assert len(many(Cached(inner, tmp_path / "answers.sqlite"), [ONE] * 6, parallel=6)) == 6
    assert len(chat.asked) == 1


def test_sampled_answers_are_kept_only_when_told(chat: ChatServer, inner: dict[str, Any], tmp_path: Path) -> None:
    for sampled, asked in ((False, 2), (True, 1)):
        chat.asked.clear()
        llm = Cached(inner, tmp_path / "answers.sqlite", sampled=sampled)
        for _ in range(2):
            llm.complete(ONE, temperature=0.7)
        assert len(chat.asked) == asked


def test_a_failure_is_not_kept(chat: ChatServer, inner: dict[str, Any], tmp_path: Path) -> None:
    chat.play(sent({"error": "busy"}, 400), echoed)
    llm = Cached(inner, tmp_path / "answers.sqlite")
    with pytest.raises(LLMFailed):
        llm.complete(ONE)
    assert llm.complete(ONE).text == "ONE"


def test_a_cut_answer_is_kept_as_cut(chat: ChatServer, inner: dict[str, Any], tmp_path: Path) -> None:
    chat.play(sent(openai("On", "length")))
    llm = Cached(inner, tmp_path / "answers.sqlite")
    assert [llm.complete(ONE).finished for _ in range(2)] == [False, False]
    assert len(chat.asked) == 1


@pytest.mark.parametrize("make", [Cached, lambda llm, at: Recorded(at, llm=llm, mode="record")])
def test_a_stream_is_kept_once_it_has_ended(make: Any, chat: ChatServer, inner: dict[str, Any], tmp_path: Path) -> None:
    chat.play(events(openai_events(["Forty", "-two"])))
    llm = make(inner, tmp_path / "answers")
    left = llm.stream(ONE)
    assert next(left) == "Forty"
    left.close()
    assert list(llm.stream(ONE)) == ["Forty", "-two"]
    assert list(llm.stream(ONE)) == ["Forty-two"]
    assert llm.complete(ONE).text == "Forty-two"
    assert len(chat.asked) == 2


def test_a_file_of_another_kind_is_refused(inner: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("These are my notes, and no database at all. " * 50)
    for make in (
        lambda: Cached(inner, tmp_path / "notes.txt"),
        lambda: Budgeted(inner, tmp_path / "notes.txt", calls=1),
    ):
        with pytest.raises(InvalidSettings, match=r"notes\.txt cannot keep"):
            make()
    with pytest.raises(InvalidSettings, match=r"line 1 of .*notes\.txt is no recorded answer"):
        (tmp_path / "notes.txt").write_text("mine\n")
        Recorded(tmp_path / "notes.txt")


def test_recorded_answers_need_no_model(chat: ChatServer, inner: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    recording = Recorded(file, llm=inner, mode="record")
    first = [recording.complete(question, max_tokens=9) for question in (ONE, TWO, ONE)]
    assert len(chat.asked) == 2
    chat.play(sent({"error": "nobody is asked"}, 400))
    replayed = registry.build("llm", {"name": "recorded", "at": str(file)})
    assert replayed.identity == "openai/small"
    assert [replayed.complete(question, max_tokens=9) for question in (ONE, TWO, ONE)] == first
    assert list(replayed.stream(TWO, max_tokens=9)) == ["TWO"]
    assert len(chat.asked) == 2


def test_an_answer_that_was_not_recorded_is_an_error_with_the_way_out(inner: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    Recorded(file, llm=inner, mode="record").complete(ONE)
    for ask in (
        lambda llm: llm.complete(TWO),
        lambda llm: list(llm.stream(TWO)),
        lambda llm: llm.complete(ONE, max_tokens=2),
    ):
        with pytest.raises(LLMFailed, match=r'answers\.jsonl has no answer of openai/small to .*mode = "record"'):
            ask(Recorded(file))
    with pytest.raises(InvalidSettings, match=r'absent\.jsonl holds no answer.*mode = "record"'):
        Recorded(tmp_path / "absent.jsonl")
    with pytest.raises(InvalidSettings, match="needs the llm"):
        Recorded(file, mode="record")
    with pytest.raises(InvalidSettings, match="modes replay and record"):
        Recorded(file, mode="auto")


def test_a_file_of_several_models_needs_the_name_of_one(inner: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    for model in ("small", "large"):
        Recorded(file, llm={**inner, "model": model}, mode="record").complete(ONE)
    with pytest.raises(InvalidSettings, match="model = openai/small or openai/large"):
        Recorded(file)
    assert Recorded(file, model="openai/large").complete(ONE).text == "ONE"
    with pytest.raises(InvalidSettings, match="not of openai/medium"):
        Recorded(file, model="openai/medium")


def test_a_line_that_a_crash_cut_off_is_no_answer_and_harms_none(
    chat: ChatServer, inner: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "answers.jsonl"
    recording = Recorded(file, llm=inner, mode="record")
    recording.complete(ONE)
    recording.complete(TWO)
    file.write_bytes(file.read_bytes()[:-20])
    again = Recorded(file, llm=inner, mode="record")
    assert [again.complete(question).text for question in (ONE, TWO)] == ["ONE", "TWO"]
    assert len(chat.asked) == 3
    assert len([json.loads(line) for line in file.read_text("utf-8").splitlines()]) == 2
    assert Recorded(file).complete(TWO).text == "TWO"


def test_the_call_that_would_pass_the_bound_is_not_made(
    chat: ChatServer, inner: dict[str, Any], tmp_path: Path
) -> None:
    clock = [0.0]
    llm = Budgeted(inner, tmp_path / "tally", calls=2, now=lambda: clock[0])
    llm.complete(ONE)
    llm.complete(ONE)
    with pytest.raises(BudgetSpent, match=r"openai/small was not asked: calls for today are bounded at 2, 2 are spent"):
        llm.complete(ONE)
    with pytest.raises(BudgetSpent):
        list(llm.stream(ONE))
    assert len(chat.asked) == 2
    clock[0] = DAY
    assert llm.spent_today() == Spent()
    assert llm.complete(ONE).text == "ONE"


def test_tokens_are_bounded_with_what_the_answer_may_take(
    chat: ChatServer, inner: dict[str, Any], tmp_path: Path
) -> None:
    llm = Budgeted(inner, tmp_path / "tally", tokens=120)
    with pytest.raises(BudgetSpent, match="tokens"):
        llm.complete(ONE, max_tokens=200)
    assert chat.asked == []
    for _ in range(2):
        llm.complete(ONE, max_tokens=100)
    assert (llm.spent_today().prompt_tokens, llm.spent_today().answer_tokens) == (14, 6)
    with pytest.raises(BudgetSpent, match="20 are spent or set aside, and this call may take 105"):
        llm.complete(ONE, max_tokens=100)


def test_money_is_bounded_and_needs_prices(inner: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="set its prompt_price and answer_price"):
        Budgeted(inner, tmp_path / "tally", money=1.0)
    priced = {**inner, "prompt_price": 1_000.0, "answer_price": 1_000.0}
    llm = Budgeted(priced, tmp_path / "tally", money=0.05)
    llm.complete(ONE, max_tokens=30)
    assert llm.spent_today().money == pytest.approx(0.010)
    with pytest.raises(BudgetSpent, match="money"):
        llm.complete(ONE, max_tokens=50)
    around = Cached(Budgeted(priced, tmp_path / "tally", money=0.05), tmp_path / "answers")
    assert around.price(1, 1) == pytest.approx(0.002)


def test_the_tally_outlives_the_process_and_several_share_it(inner: dict[str, Any], tmp_path: Path) -> None:
    program = (
        "import json, sys\n"
        "from evokey.errors import BudgetSpent\n"
        "from evokey.registry import build\n"
        "from evokey.llm.many import many\n"
        "from evokey.types import Message\n"
        "answers = many(build('llm', json.loads(sys.argv[1])), [[Message('user', 'one')]] * 20, parallel=4)\n"
        "print(sum(not isinstance(one, BudgetSpent) for one in answers))\n"
    )
    settings = json.dumps({"name": "budgeted", "llm": inner, "at": str(tmp_path / "tally"), "calls": 25})
    running = [
        subprocess.Popen([sys.executable, "-c", program, settings], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    made = [int(one.communicate(timeout=60)[0]) for one in running]
    assert sum(made) == 25
    assert Budgeted(inner, tmp_path / "tally", calls=25).spent_today().calls == 25


def test_a_call_that_failed_keeps_its_prompt_on_the_bill(
    chat: ChatServer, inner: dict[str, Any], tmp_path: Path
) -> None:
    chat.play(hangs)
    llm = Budgeted({**inner, "timeout": 0.2}, tmp_path / "tally", tokens=5_000)
    with pytest.raises(LLMFailed):
        llm.complete(ONE)
    assert llm.spent_today() == Spent(1, 5, 0)


def test_a_stream_is_billed_for_what_came(chat: ChatServer, inner: dict[str, Any], tmp_path: Path) -> None:
    pieces = [f"piece {number:03}, " for number in range(40)]
    chat.play(either(echoed, events(openai_events(pieces))))
    llm = Budgeted(inner, tmp_path / "tally", tokens=5_000)
    drain(llm.stream(ONE))
    assert llm.spent_today().answer_tokens == 3
    left = llm.stream(ONE)
    next(left)
    assert llm.spent_today().answer_tokens == 3 + 1024  # set aside while it runs
    left.close()
    assert 3 < llm.spent_today().answer_tokens < 20


@pytest.mark.parametrize("bounds", [{}, {"calls": -1}, {"money": float("nan")}])
def test_a_budget_without_a_bound_is_refused(bounds: dict[str, Any], inner: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings):
        Budgeted(inner, tmp_path / "tally", **bounds)
