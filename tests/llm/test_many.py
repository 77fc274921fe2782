"""Many requests at once, against a real service."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("httpx", reason="SKIPPED FOR WANT OF A PACKAGE: evokey[remote]")

from wire_chat import ChatServer, Handler, echoed, hangs, sent, serving, slowly

from evokey.errors import BudgetSpent, InvalidInput, LLMFailed
from evokey.llm.budgeted import Budgeted
from evokey.llm.many import many
from evokey.llm.openai import OpenAI
from evokey.types import Completion, Message

WORDS = [f"word {number}" for number in range(12)]
REQUESTS = [[Message("user", word)] for word in WORDS]


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    with serving() as server:
        yield server


def asked(chat: ChatServer, **options: Any) -> OpenAI:
    return OpenAI("small", base_url=chat.address, **{"retries": 0, "parallel": 12, **options})


def texts(answers: list[Any]) -> list[str]:
    return [one.text if isinstance(one, Completion) else type(one).__name__ for one in answers]


def test_answers_come_in_the_order_of_the_requests_so_many_at_a_time(chat: ChatServer) -> None:
    def uneven(handler: Handler) -> None:
        number = int(handler.body["messages"][0]["content"].split()[1])
        slowly(echoed, 0.2 if number % 3 == 0 else 0.05)(handler)

    chat.play(uneven)
    seen: list[tuple[int, int]] = []
    answers = many(asked(chat), REQUESTS, parallel=3, progress=lambda done, of: seen.append((done, of)))
    assert texts(answers) == [word.upper() for word in WORDS]
    assert chat.most_at_once == 3
    assert seen == [(done, 12) for done in range(1, 13)]


def test_one_failure_does_not_lose_the_others(chat: ChatServer) -> None:
    def moody(handler: Handler) -> None:
        said = handler.body["messages"][0]["content"]
        (sent({"error": "no"}, 400) if said == "word 5" else echoed)(handler)

    chat.play(moody)
    answers = many(asked(chat), REQUESTS)
    assert isinstance(answers[5], LLMFailed)
    assert texts(answers) == [word.upper() if word != "word 5" else "LLMFailed" for word in WORDS]


def test_what_the_budget_forbids_stands_in_its_place(chat: ChatServer, tmp_path: Any) -> None:
    chat.play(echoed)
    answers = many(Budgeted(asked(chat), tmp_path / "tally", calls=8), REQUESTS, parallel=4)
    assert sum(isinstance(one, BudgetSpent) for one in answers) == 4
    assert len(chat.asked) == 8


def test_a_mistake_of_the_caller_is_raised_and_ends_the_rest(chat: ChatServer) -> None:
    chat.play(echoed)
    with pytest.raises(InvalidInput, match="robot"):
        many(asked(chat), [[Message("robot", "x")], *REQUESTS], parallel=1)
    assert len(chat.asked) <= 2
    with pytest.raises(InvalidInput, match="parallel"):
        many(asked(chat), REQUESTS, parallel=0)


def test_an_interrupt_stops_at_once_and_starts_nothing_more(chat: ChatServer) -> None:
    chat.play(hangs)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    began = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        many(asked(chat), REQUESTS, parallel=2)
    assert time.monotonic() - began < 3
    chat.released.set()
    time.sleep(0.3)
    assert len(chat.asked) == 2


def test_no_requests_have_no_answers(chat: ChatServer) -> None:
    assert many(asked(chat), []) == []
