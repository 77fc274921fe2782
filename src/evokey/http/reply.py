"""What a service sent, read: an error's message, the events of a stream, and what no answer may hold."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from email.utils import parsedate_to_datetime
from typing import Any

LONGEST_MESSAGE = 200
DEEPEST_ANSWER = 64
LARGEST_NUMBER = 1 << 64


def pause_of(header: str | None) -> float | None:
    """Retry-After, in seconds from now: it is written as a number, or as a date."""
    if not header:
        return None
    try:
        return max(0.0, min(float(header), 1e9))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def message(content: bytes) -> str:
    """What a service says was wrong, out of the several ways to say so."""
    try:
        return message_of(json.loads(content))
    except (ValueError, RecursionError):
        text = content.decode("utf-8", "replace").strip()
        return "" if text.startswith("<") else text


def nonsense(answer: Any) -> str | None:
    """What no program should have to handle in an answer; None where there is nothing. Level by level, so that depth
    costs no stack."""
    level = [answer]
    for _ in range(DEEPEST_ANSWER):
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below += [*one, *one.values()]
            elif isinstance(one, list):
                below += one if set(map(type, one)) - {float} else ()
            elif isinstance(one, int) and abs(one) > LARGEST_NUMBER:
                return f"a whole number beyond {LARGEST_NUMBER}"
            elif isinstance(one, str) and one.encode("utf-8", "replace").decode() != one:
                return "text that is not valid Unicode (a lone surrogate)"
        if not below:
            return None
        level = below
    return f"more than {DEEPEST_ANSWER} levels, one inside the other"


def message_of(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    if isinstance(answer, list):
        return "; ".join(filter(None, map(message_of, answer)))
    if isinstance(answer, dict):
        return next(filter(None, (message_of(answer.get(key)) for key in ("error", "message", "detail", "msg"))), "")
    return ""


def line(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= LONGEST_MESSAGE else f"{line[:LONGEST_MESSAGE]}…"


def lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Lines end at a line feed and nowhere else: other separators of Unicode may stand inside JSON."""
    begun: list[bytes] = []
    for piece in pieces:
        first, *more = piece.split(b"\n")
        begun.append(first)
        for start in more:
            yield b"".join(begun).decode("utf-8", "replace").removesuffix("\r")
            begun = [start]
    yield b"".join(begun).decode("utf-8", "replace")


def events(lines: Iterable[str]) -> Iterator[str]:
    """Server-sent events: the data lines up to an empty line are one."""
    data: list[str] = []
    for line in lines:
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []
    if data:
        yield "\n".join(data)
