"""The process of a background learner, asked by its pipes; the first that it is told is where the memory is."""

from __future__ import annotations

import os
import sys

from evokey import memory as memory_
from evokey.loop.pipe import receive, send


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not get among the answers
    if hasattr(os, "nice"):
        os.nice(10)
    place, allow = receive(sys.stdin.buffer)
    with memory_.open(place, allow=allow) as memory:
        while True:
            try:
                what, arguments = receive(sys.stdin.buffer)
            except EOFError:
                return
            try:
                answer = memory.think(*arguments) if what == "think" else memory.propose()
            except Exception as error:  # noqa: BLE001 - whatever it is, the learner must hear of it
                send(answers, (False, f"{type(error).__name__}: {error}"))
            else:
                send(answers, (True, answer))


if __name__ == "__main__":
    main()
