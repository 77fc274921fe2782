"""Limits of an HTTP call that its other side cannot stretch.

The timeouts of HTTP libraries begin anew with every byte, and their decompression has no bound. Here a Deadline counts
from the start of a call, over connecting, headers and body together, and a body is unpacked in small pieces that are
counted before the next one is made. Only the system's name resolution is outside the deadline.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, as_completed
from typing import Any, TypeVar

import httpcore
import httpx

PIECE = 1 << 16
"""Bytes that are unpacked, or sent, in one step."""
PACKED = {"gzip": 31, "x-gzip": 31}
"""Encodings that are unpacked, with the window that zlib wants to hear."""


Done = TypeVar("Done")


class TooLarge(Exception):
    """A body with more bytes than it may have."""


class Deadline:
    """A timeout that does not begin anew with each byte. Handed to httpcore in place of a number of seconds."""

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._longest_gap = now, seconds
        self._begun = now()
        self._end = self._begun + seconds

    def extend(self, seconds: float) -> None:
        """Let the call take so many seconds from its start; no single wait gets longer."""
        self._end = self._begun + seconds

    def left(self) -> float:
        """Seconds for the next wait; 0 or less when the time is over."""
        return min(self._longest_gap, self._end - self._now())

    def timeouts(self) -> dict[str, Any]:
        """The timeouts of a request to httpx, as its extension "timeout"."""
        return {"connect": self, "read": self, "write": self, "pool": max(self.left(), 0.0)}


def client(parallel: int) -> httpx.Client:
    """A client whose timeouts may be Deadlines. Proxies are those of the user's environment."""
    made = httpx.Client(limits=httpx.Limits(max_connections=None, max_keepalive_connections=parallel))
    for transport in (made._transport, *made._mounts.values()):
        if isinstance(transport, httpx.HTTPTransport):
            transport._pool._network_backend = Bounded(transport._pool._network_backend)
    return made


def body(response: httpx.Response, largest: int) -> Iterator[bytes]:
    """What a response holds, unpacked; TooLarge before more than that many bytes are handed out."""
    packed = response.headers.get("content-encoding", "").strip().lower()
    if packed not in ("", "identity", *PACKED):
        raise httpx.DecodingError(f"it is packed as {packed[:20]!r}")
    pieces = response.iter_raw()
    size = 0
    for piece in _unpack(pieces, PACKED[packed]) if packed in PACKED else pieces:
        size += len(piece)
        if size > largest:
            raise TooLarge
        yield piece


def _unpack(pieces: Iterable[bytes], window: int) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(window)
    try:
        for packed in pieces:
            rest = packed
            while not unpacker.eof:
                piece = unpacker.decompress(rest, PIECE)
                rest = unpacker.unconsumed_tail
                yield piece
                if not rest and len(piece) < PIECE:
                    break
    except zlib.error as error:
        raise httpx.DecodingError(str(error)) from error
    if not unpacker.eof:
        raise httpx.DecodingError("it is truncated")


class Bounded(httpcore.NetworkBackend):
    """Connections that keep to the deadline of each request."""

    def __init__(self, inner: httpcore.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Any = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """A name may stand for many addresses: all of them share the deadline."""
        failure: Exception = httpcore.ConnectError(f"no address for {host}")
        for address in _addresses(host, port):
            try:
                seconds = _seconds(timeout, httpcore.ConnectTimeout)
                return BoundedStream(self._inner.connect_tcp(address, port, seconds, local_address, socket_options))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure


class BoundedStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: Any = None) -> bytes:
        return self._inner.read(max_bytes, _seconds(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: Any = None) -> None:
        for start in range(0, len(buffer), PIECE):
            self._inner.write(buffer[start : start + PIECE], _seconds(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: Any = None
    ) -> httpcore.NetworkStream:
        seconds = _seconds(timeout, httpcore.ConnectTimeout)
        return BoundedStream(self._inner.start_tls(ssl_context, server_hostname, seconds))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _seconds(timeout: Any, late: type[Exception]) -> float | None:
    if not isinstance(timeout, Deadline):
        return None if timeout is None else float(timeout)
    left = timeout.left()
    if left <= 0:
        raise late("the time limit of the whole call is reached")
    return left


def _addresses(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(str(error)) from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Breaker:
    """Keeps callers away from a service that has just failed: for `rest` seconds, and then all but one."""

    def __init__(self, rest: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rest, self._now, self._lock = rest, now, threading.Lock()
        self._closed_until: float | None = None

    def left(self) -> float:
        """Seconds until the service may be asked; 0 lets this caller through, and no other until it has reported."""
        with self._lock:
            if self._closed_until is None:
                return 0.0
            left = self._closed_until - self._now()
            if left <= 0:
                self._closed_until = self._now() + self._rest
            return max(left, 0.0)

    def note_failure(self) -> None:
        with self._lock:
            self._closed_until = self._now() + self._rest if self._rest else None

    def note_success(self) -> None:
        with self._lock:
            self._closed_until = None


class Pace:
    """At most so many calls in any minute, each waiting for its turn."""

    def __init__(self, per_minute: int | None, now: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._turns: deque[float] | None = deque(maxlen=per_minute) if per_minute else None
        self._now, self._sleep, self._lock = now, sleep, threading.Lock()

    def wait(self) -> float:
        """The seconds that were waited."""
        if self._turns is None:
            return 0.0
        with self._lock:
            now = self._now()
            turn = max(now, self._turns[0] + 60) if len(self._turns) == self._turns.maxlen else now
            self._turns.append(turn)
        if turn > now:
            self._sleep(turn - now)
        return turn - now


def results(begun: Mapping[Future[Done], int]) -> Iterator[tuple[int, Done]]:
    """Each result with its place as it comes. After a failure nothing begins, and what is under way is waited for."""
    failure: BaseException | None = None
    for one in as_completed(begun):
        if one.cancelled():
            continue
        error = one.exception()
        if error is None:
            yield begun[one], one.result()
        elif failure is None:
            failure = error
            for other in begun:
                other.cancel()
    if failure is not None:
        raise failure
