"""Many requests at once: so many at a time, answers in the order of the requests, a failure in its own place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Event, Thread

from evokey.errors import InvalidInput, ServiceFailed
from evokey.protocols import LLM
from evokey.types import Completion, Message

Progress = Callable[[int, int], None]
"""Called with how many requests are done, and of how many."""

LOOK_UP = 0.2
"""Seconds after which whoever waits looks up: an interrupt is then seen on every system."""


def many(
    llm: LLM,
    requests: Sequence[Sequence[Message]],
    *,
    parallel: int = 4,
    max_tokens: int = 1024,
    temperature: float = 0.0,
    progress: Progress | None = None,
) -> list[Completion | ServiceFailed]:
    """For each request its answer, or its failure (LLMFailed, BudgetSpent).

    Any other error, and an interrupt, is raised at once: no further request is made, and none is waited for.
    """
    if parallel < 1:
        raise InvalidInput(f"parallel is at least 1, not {parallel}")
    places: SimpleQueue[int] = SimpleQueue()
    done: SimpleQueue[tuple[int, Completion | BaseException]] = SimpleQueue()
    stop = Event()

    def work() -> None:
        while not stop.is_set():
            try:
                place = places.get_nowait()
            except Empty:
                return
            try:
                done.put((place, llm.complete(requests[place], max_tokens=max_tokens, temperature=temperature)))
            except BaseException as error:  # noqa: BLE001 - it is raised, or returned, where the caller waits
                done.put((place, error))

    for place in range(len(requests)):
        places.put(place)
    for _ in range(min(parallel, len(requests))):
        Thread(target=work, name="many", daemon=True).start()
    answers: dict[int, Completion | ServiceFailed] = {}
    try:
        while len(answers) < len(requests):
            try:
                place, answer = done.get(timeout=LOOK_UP)
            except Empty:
                continue
            if isinstance(answer, BaseException) and not isinstance(answer, ServiceFailed):
                raise answer
            answers[place] = answer
            if progress is not None:
                progress(len(answers), len(requests))
    finally:
        stop.set()
    return [answers[place] for place in range(len(requests))]
