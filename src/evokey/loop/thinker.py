"""The process of a background learner, asked by its pipes: python -m evokey.loop.thinker FOLDER ALLOWED…"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from evokey import memory as memory_
from evokey.loop.pipe import receive, send


def main(folder: Path, allow: Sequence[str]) -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not get among the answers
    if hasattr(os, "nice"):
        os.nice(10)
    with memory_.open(folder, allow=allow) as memory:
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
    main(Path(sys.argv[1]), sys.argv[2:])
