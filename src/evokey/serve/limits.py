"""Limits: how large and how slow a request may be, how many a key may make, and how many lessons a day."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evokey.serve import replies
from evokey.serve.options import Limits

LONG = ("/ask", "/learn", "/export", "/forget")
"""Ends of paths that may take ten times as long."""
BUCKETS = 10_000
"""Keys and users whose pace is remembered; of more, those that were quiet longest are new again."""


class BoundedBodies:
    """Refuses a request whose body is too large or arrives too slowly, and answers one that takes too long."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app, self._limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await self._read(scope, receive)
        except _Refused as refused:
            await replies.error(*refused.args)(scope, receive, send)
            return
        if body is not None:
            await self._answer(scope, _replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; None where the client went away."""
        most = self._limits.documents if scope["path"].endswith("/documents") else self._limits.body
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > most:
            raise _Refused(413, "TooLarge", f"a request of this kind has {most:,} bytes at the most; send several")
        parts, size = list[bytes](), 0
        deadline = asyncio.get_running_loop().time() + self._limits.reading
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise _Refused(413, "TooLarge", f"a request has {most:,} bytes at the most; send several")
                    if not message.get("more_body"):
                        return b"".join(parts)
        except TimeoutError:
            raise _Refused(408, "TooSlow", f"the request did not arrive within {self._limits.reading:g} s") from None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def note(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        seconds = self._limits.answering * (10 if scope["path"].endswith(LONG) else 1)
        try:
            async with asyncio.timeout(seconds):
                await self._app(scope, receive, note)
        except TimeoutError:
            if not begun:
                text = f"no answer within {seconds:g} s; what was begun may still be done"
                await replies.error(503, "TookTooLong", text)(scope, receive, send)


class _Refused(Exception):
    pass


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body that was read, and then whatever the client does."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


@dataclass
class Pace:
    """A token bucket for each name: so many a second, twice as many at once."""

    now: Callable[[], float] = time.monotonic
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def wait(self, name: str, rate: float) -> float:
        """Take a token; returns the seconds after which there is one again, 0 where there was one."""
        with self._mutex:
            now, most = self.now(), max(2 * rate, 1.0)
            tokens, since = self._buckets.pop(name, (most, now))
            tokens = min(most, tokens + (now - since) * rate)
            taken = tokens >= 1
            self._buckets[name] = (tokens - 1 if taken else tokens, now)
            if len(self._buckets) > BUCKETS:
                self._buckets.popitem(last=False)
        return 0.0 if taken else (1 - tokens) / rate


@dataclass
class DailyLessons:
    """How many lessons an actor may give in a day: one user of a key, and the key with all its users."""

    user: int = 1_000
    key: int = 100_000
    now: Callable[[], float] = time.time
    _counts: dict[tuple[int, str], int] = field(default_factory=dict)
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def take(self, key: str, user: str | None, count: int) -> bool:
        """Count lessons of today; False where that would be too many. Counts begin anew when the service starts."""
        day = int(self.now() // 86_400)
        wanted = [((day, key), self.key), *([((day, f"{key}/{user}"), self.user)] if user is not None else [])]
        with self._mutex:
            self._counts = {name: number for name, number in self._counts.items() if name[0] == day}
            if any(self._counts.get(name, 0) + count > most for name, most in wanted):
                return False
            for name, _ in wanted:
                self._counts[name] = self._counts.get(name, 0) + count
        return True
