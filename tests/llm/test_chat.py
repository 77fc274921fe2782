"""Models behind HTTP: what they answer, and what becomes of every way in which they do not."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("httpx", reason="SKIPPED FOR WANT OF A PACKAGE: evokey[remote]")

from wire_chat import (
    QUESTION,
    SECRET,
    ChatServer,
    anthropic,
    anthropic_events,
    events,
    hangs,
    openai,
    openai_events,
    raw,
    sent,
    serving,
)

from evokey.errors import InvalidInput, InvalidSettings, LLMFailed
from evokey.llm.anthropic import Anthropic
from evokey.llm.openai import OpenAI
from evokey.llm.request import drain
from evokey.types import Message


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """A chat service, and its key in the environment."""
    monkeypatch.setenv("CHAT_KEY", SECRET)
    with serving() as server:
        yield server


def asked_openai(chat: ChatServer, **options: Any) -> OpenAI:
    return OpenAI("small", base_url=chat.address, key_env="CHAT_KEY", **{"retries": 0, **options})


def asked_anthropic(chat: ChatServer, **options: Any) -> Anthropic:
    return Anthropic("small", base_url=chat.address, key_env="CHAT_KEY", **{"retries": 0, **options})


def test_an_answer_of_openai_comes_with_its_tokens_and_their_price(chat: ChatServer) -> None:
    chat.play(sent(openai(reasoning_content="Six sevens …")))
    llm = asked_openai(chat, prompt_price=2.0, answer_price=10.0, extra_body={"top_k": 1})
    answer = llm.complete(QUESTION, max_tokens=50, temperature=0.5)
    assert (answer.text, answer.model, answer.finished) == ("Forty-two.", "served-1", True)
    assert (answer.spent.calls, answer.spent.prompt_tokens, answer.spent.answer_tokens) == (1, 7, 3)
    assert answer.spent.money == pytest.approx((7 * 2 + 3 * 10) / 1e6)
    [asked] = chat.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {SECRET}"
    assert asked.body == {
        "model": "small",
        "messages": [
            {"role": "system", "content": "Answer briefly."},
            {"role": "user", "content": "What is six times seven?"},
        ],
        "max_tokens": 50,
        "temperature": 0.5,
        "top_k": 1,
    }


def test_an_answer_of_anthropic_leaves_out_what_it_thought_and_takes_the_system_apart(chat: ChatServer) -> None:
    chat.play(sent(anthropic()))
    answer = asked_anthropic(chat, prompt_price=1.0, answer_price=5.0).complete(QUESTION, max_tokens=50)
    assert (answer.text, answer.model, answer.finished) == ("Forty-two.", "served-1", True)
    assert (answer.spent.prompt_tokens, answer.spent.answer_tokens) == (7, 3)
    assert answer.spent.money == pytest.approx(22e-6)
    [asked] = chat.asked
    assert asked.path == "/v1/messages"
    assert (asked.headers["x-api-key"], asked.headers["anthropic-version"]) == (SECRET, "2023-06-01")
    assert asked.body == {
        "model": "small",
        "system": "Answer briefly.",
        "messages": [{"role": "user", "content": "What is six times seven?"}],
        "max_tokens": 50,
        "temperature": 0.0,
    }


@pytest.mark.parametrize(("make", "said"), [(asked_openai, openai_events), (asked_anthropic, anthropic_events)])
def test_a_stream_gives_the_pieces_and_then_the_whole(make: Any, said: Any, chat: ChatServer) -> None:
    chat.play(events(said(["Forty", "-two", ".\u2028é"])))
    stream, pieces = make(chat).stream(QUESTION), []
    while True:
        try:
            pieces.append(next(stream))
        except StopIteration as end:
            answer = end.value
            break
    assert pieces == ["Forty", "-two", ".\u2028é"]
    assert (answer.text, answer.finished) == ("Forty-two.\u2028é", True)
    assert (answer.spent.prompt_tokens, answer.spent.answer_tokens) == (7, 3)
    assert chat.asked[0].body["stream"] is True


@pytest.mark.parametrize(
    ("make", "reply"),
    [(asked_openai, openai("Forty", "length")), (asked_anthropic, anthropic("Forty", "max_tokens"))],
)
def test_an_answer_that_was_cut_off_says_so(make: Any, reply: Any, chat: ChatServer) -> None:
    chat.play(sent(reply))
    answer = make(chat).complete(QUESTION)
    assert (answer.text, answer.finished) == ("Forty", False)


@pytest.mark.parametrize(
    ("make", "reply", "message"),
    [
        (asked_openai, openai("No.", "content_filter"), r"refused to answer \(content_filter\)"),
        (asked_openai, openai(None, refusal="I will not"), r"refused to answer \(I will not\)"),
        (asked_anthropic, anthropic("No.", "refusal"), r"refused to answer \(refusal\)"),
        (asked_openai, openai(" \n"), "answered nothing"),
        (asked_openai, openai(None, "length", (7, 50)), "its 50 tokens were spent before it; raise max_tokens"),
        (asked_anthropic, anthropic(""), "answered nothing"),
        (asked_openai, {"choices": []}, "in a shape that is no chat answer"),
        (asked_openai, {"choices": [{"message": {"content": 7}}]}, "in a shape that is no chat answer"),
        (asked_openai, {"choices": [{"message": "Forty"}]}, "in a shape that is no chat answer"),
        (asked_anthropic, {"content": [{"kind": "text"}]}, "in a shape that is no chat answer"),
        (asked_openai, [1, 2], "answered with a list"),
        (asked_openai, {"error": {"message": "out of memory"}}, "answered with an error: .*out of memory"),
    ],
)
def test_what_is_no_answer_is_an_error(make: Any, reply: Any, message: str, chat: ChatServer) -> None:
    chat.play(sent(reply))
    with pytest.raises(LLMFailed, match=message):
        make(chat).complete(QUESTION)


def test_what_is_no_json_is_an_error_that_shows_its_beginning(chat: ChatServer) -> None:
    chat.play(raw(b"<html>Welcome to the router</html>"))
    with pytest.raises(LLMFailed, match=r"not JSON.*Welcome to the router.*Check base_url"):
        asked_openai(chat).complete(QUESTION)


@pytest.mark.parametrize(
    ("make", "data"),
    [
        (asked_openai, openai_events(["Forty"], reason=None, usage=None)),
        (asked_anthropic, anthropic_events(["Forty"], reason=None)),
    ],
)
@pytest.mark.parametrize("cut", [True, False])
def test_half_a_stream_is_no_answer(make: Any, data: Any, cut: bool, chat: ChatServer) -> None:
    chat.play(events(data, cut=cut))
    stream = make(chat).stream(QUESTION)
    assert next(stream) == "Forty"
    with pytest.raises(LLMFailed, match="ended in the middle of its answer"):
        next(stream)


@pytest.mark.parametrize(
    "data", [{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "{half", [1], {"x": 1}]
)
def test_nonsense_within_a_stream_is_an_error(data: Any, chat: ChatServer) -> None:
    chat.play(events([*anthropic_events(["Forty"], reason=None), data]))
    with pytest.raises(LLMFailed):
        drain(asked_anthropic(chat).stream(QUESTION))


def test_a_refusal_at_the_end_of_a_stream_is_an_error(chat: ChatServer) -> None:
    chat.play(events(openai_events(["I ", "will"], reason="content_filter")))
    with pytest.raises(LLMFailed, match="refused"):
        drain(asked_openai(chat).stream(QUESTION))


def test_a_service_that_hangs_is_left_in_time(chat: ChatServer) -> None:
    chat.play(hangs)
    began = time.monotonic()
    with pytest.raises(LLMFailed, match=r"did not answer within 0\.3 s"):
        asked_openai(chat, timeout=0.3).complete(QUESTION)
    assert time.monotonic() - began < 5


def test_a_stream_that_hangs_is_left_in_time(chat: ChatServer) -> None:
    chat.play(events(openai_events(["Forty"], reason=None), hang=True))
    began = time.monotonic()
    with pytest.raises(LLMFailed, match="ended in the middle"):
        drain(asked_openai(chat, timeout=0.3).stream(QUESTION))
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("status", [429, 500, 529])
def test_an_overloaded_service_is_asked_again(status: int, chat: ChatServer) -> None:
    busy = sent({"type": "error", "error": {"type": "overloaded_error"}}, status, retry_after="0")
    chat.play(busy, sent(anthropic()))
    assert asked_anthropic(chat, retries=2).complete(QUESTION).text == "Forty-two."
    assert len(chat.asked) == 2


def test_a_bad_request_is_not_tried_again_and_says_what_was_wrong(chat: ChatServer) -> None:
    chat.play(sent({"error": {"message": "temperature does not support 0"}}, 400))
    with pytest.raises(LLMFailed, match="answered 400: temperature does not support 0"):
        asked_openai(chat, retries=3).complete(QUESTION)
    assert len(chat.asked) == 1


def test_fields_that_a_model_refuses_can_be_left_out(chat: ChatServer) -> None:
    chat.play(events(openai_events(["Forty"])))
    drain(asked_openai(chat, leave_out=["temperature", "stream_options"]).stream(QUESTION))
    assert sorted(chat.asked[0].body) == ["max_tokens", "messages", "model", "stream"]


def test_tokens_that_nobody_counted_are_estimated_and_it_is_said_once(
    chat: ChatServer, caplog: pytest.LogCaptureFixture
) -> None:
    chat.play(sent(openai("word " * 40, usage=None)))
    llm = asked_openai(chat)
    with caplog.at_level(logging.WARNING):
        spent = llm.complete(QUESTION).spent
        llm.complete(QUESTION)
    assert 30 <= spent.answer_tokens <= 70
    assert 10 <= spent.prompt_tokens <= 30
    assert [record.getMessage() for record in caplog.records] == [
        "openai/small does not say how many tokens it used; they are estimated from the texts"
    ]


def test_the_key_is_in_no_error_repr_or_log(chat: ChatServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "evokey")
    for reply in (
        sent({"error": {"message": f"Incorrect API key provided: {SECRET}"}}, 401),
        sent({"error": f"bad {SECRET}"}),
        sent({"choices": SECRET}),
        sent(openai(None, refusal=f"not with {SECRET}")),
        raw(f"key {SECRET}".encode()),
        sent({"message": f"limit of {SECRET}"}, 500),
    ):
        for make in (asked_openai, asked_anthropic):
            chat.play(reply)
            llm = make(chat)
            with pytest.raises(LLMFailed) as failed:
                llm.complete(QUESTION)
            assert SECRET not in f"{failed.value!r} {failed.value.__cause__!r} {llm!r} {vars(llm)!r} {llm.identity}"
    assert SECRET not in caplog.text


def test_a_missing_key_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(LLMFailed, match="OPENAI_API_KEY is not set"):
        OpenAI("small").complete(QUESTION)


def test_openais_key_goes_to_no_other_host(chat: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    chat.play(sent(openai()))
    OpenAI("small", base_url=chat.address).complete(QUESTION)
    assert SECRET not in str(chat.asked[0].headers)


def test_the_fields_of_a_request_are_part_of_the_identity() -> None:
    plain, varied = OpenAI("small"), OpenAI("small", extra_body={"top_k": 1})
    assert plain.identity == "openai/small"
    assert varied.identity.startswith("openai/small#")
    assert varied.identity == OpenAI("small", extra_body={"top_k": 1}).identity


@pytest.mark.parametrize(
    "options", [{"model": ""}, {"model": "small", "prompt_price": 1.0}, {"model": "small", "timeout": 0}]
)
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings):
        OpenAI(**options)


def test_anthropic_needs_more_than_a_system_message(chat: ChatServer) -> None:
    with pytest.raises(InvalidInput, match="user message"):
        asked_anthropic(chat).complete([Message("system", "Answer briefly.")])
