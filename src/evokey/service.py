"""The one way out over HTTP: JSON posted to a service, with patience, limits and clean errors.

A Provider says where a service lives and how it takes its key; a Service asks it. What may pass is tried again, with
growing pauses or the pause that the service asks for; what cannot is told at once, with what the service said.
Keys come from the environment at the time of the call, go to the provider's own host or where the settings name the
variable, and are in no message, repr or log.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx

from evokey.errors import InvalidSettings, ServiceFailed

log = logging.getLogger(__name__)

PASSING = frozenset({408, 409, 429})
"""Refusals that may be over in a moment, as every status of 500 and above may."""
REFUSING = frozenset({400, 413, 415, 422})
"""Refusals that may be owed to what was sent."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
LONGEST_MESSAGE = 200
LARGEST_ANSWER = 1 << 28
MASKED = re.compile(r"\S*\*{3,}\S*")
"""A key as some services show it, half hidden."""
LAST_EVENT = "[DONE]"
Taken = TypeVar("Taken")
Piece = TypeVar("Piece")
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a service lives, and how it wants to be spoken to."""

    name: str
    home: str
    """The provider's own address. Its key is needed there, and sent to no other host unless key_env is named."""
    key_env: str | None = None
    """The environment variable that holds the key."""
    key_header: str = "Authorization"
    """Authorization takes "Bearer KEY", any other header the key alone."""
    headers: Mapping[str, str] = field(default_factory=dict)


class Service:
    """A provider, asked. Safe to share between threads."""

    def __init__(
        self,
        provider: Provider,
        *,
        base_url: str | None = None,
        key_env: str | None = None,
        timeout: float = 60.0,
        retries: int = 5,
        patience: float = 120.0,
        requests_per_minute: int | None = None,
        parallel: int = 4,
        failure: type[ServiceFailed] = ServiceFailed,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """patience: the longest pause, in seconds, that a service may ask for before the call is given up."""
        _check_limits(provider.name, timeout, retries, requests_per_minute, parallel)
        self.provider, self.parallel = provider, parallel
        self.base_url = _checked_url(provider.name, base_url or provider.home)
        self.at_home = httpx.URL(self.base_url).host == httpx.URL(provider.home).host
        self._key_env = key_env or (provider.key_env if self.at_home else None)
        self._timeout, self._retries, self._patience = timeout, retries, patience
        self._failure, self._now, self._sleep, self._chance = failure, now, sleep, chance
        self._pace = Pace(requests_per_minute, now, sleep)
        self._room = threading.BoundedSemaphore(parallel)
        self._making = threading.Lock()
        self._client: httpx.Client | None = None

    def __repr__(self) -> str:
        return f"Service({self.provider.name} at {self.base_url})"

    @property
    def place(self) -> str:
        """Where answers come from, for the identity of what is made of them: the provider's own API, or a host."""
        return "api" if self.at_home else httpx.URL(self.base_url).netloc.decode()

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object that the service answers."""
        answer = self.ask(path, body)
        if not isinstance(answer, dict):
            raise self.failed(f"answered with a {type(answer).__name__} where a JSON object belongs")
        return answer

    def ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """The same for services that answer with a list."""
        with self._sent(path, body, self._whole) as content:
            return self._parsed(content)

    def together(self, work: Callable[[Piece], Done], pieces: Sequence[Piece]) -> list[Done]:
        """Several calls at once, as many as may run in parallel; results in order. The first failure ends them all."""
        done = dict(self.as_completed(work, pieces))
        return [done[number] for number in range(len(pieces))]

    def as_completed(self, work: Callable[[Piece], Done], pieces: Sequence[Piece]) -> Iterator[tuple[int, Done]]:
        """The same, each result with the place of its piece as soon as it is there. After a failure no call begins;
        those under way still give their results, which were paid for."""
        if len(pieces) < 2 or self.parallel == 1:
            yield from ((number, work(piece)) for number, piece in enumerate(pieces))
            return
        with ThreadPoolExecutor(min(self.parallel, len(pieces))) as pool:
            begun = {pool.submit(work, piece): number for number, piece in enumerate(pieces)}
            try:
                yield from _results(begun)
            finally:
                for one in begun:
                    one.cancel()

    def stream(self, path: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The data of each server-sent event, until the service is done. Only the beginning is tried again."""
        with self._sent(path, {**body, "stream": True}, httpx.Response.iter_bytes) as pieces:
            try:
                for data in _events(_lines(pieces)):
                    if data == LAST_EVENT:
                        return
                    yield self._event(data)
            except (httpx.TransportError, httpx.DecodingError) as error:
                raise self.failed(f"broke off in the middle of its answer ({_kind(error)}). Ask again.") from None

    def failed(self, what: str) -> ServiceFailed:
        """An error of this service, to be raised: what it did, and what to do."""
        return self._failure(f"{self.provider.name} ({self.base_url}) {self._scrubbed(what)}")

    def in_order(self, entries: Any, count: int) -> list[dict[str, Any]]:
        """The entries of an answer in the order of what was sent, by the index that each must carry, once."""
        if not (isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)):
            raise self.failed("sent an answer without a list of entries. Check base_url and format.")
        if len(entries) != count:
            raise self.failed(f"answered with {len(entries)} entries for {count} texts. Nothing of it was kept.")
        placed = {entry["index"]: entry for entry in entries if type(entry.get("index")) is int}
        if placed.keys() != set(range(count)):
            raise self.failed(
                f"numbered the entries of its answer wrongly: each of 0 to {count - 1} belongs there once"
            )
        return [placed[number] for number in range(count)]

    def close(self) -> None:
        with self._making:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _event(self, data: str) -> dict[str, Any]:
        event = self._parsed(data.encode())
        if not isinstance(event, dict):
            raise self.failed("sent an event that is not a JSON object")
        if event.get("error"):
            raise self.failed(f"broke off in the middle of its answer: {_line(_said(event))}. Ask again.")
        return event

    @contextmanager
    def _sent(self, path: str, body: Mapping[str, Any], take: Callable[[httpx.Response], Taken]) -> Iterator[Taken]:
        """What is taken from a successful response, open. Trying again happens before it is handed out, never after."""
        content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        for attempt in range(self._retries + 1):
            with self._room, ExitStack() as opened:
                self._pace.wait()
                taken = self._tried(path, content, take, opened)
                if not isinstance(taken, Trouble):
                    yield taken
                    return
            self._pause(taken, attempt)

    def _tried(
        self, path: str, content: bytes, take: Callable[[httpx.Response], Taken], opened: ExitStack
    ) -> Taken | Trouble:
        """What is taken from a response of success, or the trouble instead; trouble that will not pass is raised."""
        client, address = self._connected(), f"{self.base_url}/{path.lstrip('/')}"
        try:
            response = opened.enter_context(
                client.stream("POST", address, content=content, headers=self._headers(), follow_redirects=False)
            )
            if response.is_success:
                return take(response)
            return self._refused(response, self._whole(response))
        except httpx.TransportError as error:
            return Trouble(self._unreached(error))

    def _refused(self, response: httpx.Response, content: bytes) -> Trouble:
        status, said = response.status_code, _told(content)
        trouble = Trouble(
            f"answered {status}{f': {_line(said)}' if said else ''}. {self._advice(status)}",
            _asked_pause(response.headers.get("retry-after")),
        )
        if (status not in PASSING and status < 500) or b"insufficient_quota" in content:
            failure = self.failed(trouble.what)
            failure.refused = status in REFUSING
            raise failure
        return trouble

    def _pause(self, trouble: Trouble, attempt: int) -> None:
        """Wait for the next attempt, or raise the trouble when there is none."""
        if attempt == self._retries:
            tried = f" (tried {attempt + 1} times)" if attempt else ""
            raise self.failed(trouble.what + tried)
        if trouble.pause is not None and trouble.pause > self._patience:
            raise self.failed(f"{trouble.what} It asks to wait {trouble.pause:.0f} s, over {self._patience:.0f} s.")
        grown = min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt) * (1 + self._chance()) / 2
        pause = grown if trouble.pause is None else trouble.pause + FIRST_PAUSE * self._chance()
        log.info(
            "%s %s Trying again in %.1f s (%d of %d)",
            self.provider.name, self._scrubbed(trouble.what), pause, attempt + 1, self._retries,
        )  # fmt: skip
        self._sleep(pause)

    def _whole(self, response: httpx.Response) -> bytes:
        """All of an answer, within the time and size that an answer may have."""
        parts, size, end = [], 0, self._now() + self._timeout
        try:
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > LARGEST_ANSWER:
                    raise self.failed(f"answered with more than {LARGEST_ANSWER >> 20} MB. Ask for less at once.")
                if self._now() > end:
                    raise httpx.ReadTimeout("the answer took too long")
        except httpx.DecodingError:
            raise self.failed("sent an answer that cannot be unpacked. Check base_url.") from None
        return b"".join(parts)

    def _parsed(self, content: bytes) -> Any:
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            start = content[:LONGEST_MESSAGE].decode("utf-8", "replace")
            raise self.failed(f"sent what is not JSON: {_line(start)!r}. Check base_url.") from None

    def _unreached(self, error: httpx.TransportError) -> str:
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return f"could not be reached ({_kind(error)}: {_line(str(error))}). Is it running, and is base_url right?"
        if isinstance(error, httpx.TimeoutException):
            return f"did not answer within {self._timeout:g} s. Raise timeout, or send less at once."
        return f"broke the connection ({_kind(error)}). Try again later."

    def _advice(self, status: int) -> str:
        if status in (401, 403) and self._key_env is None:
            return "No key was sent: name the environment variable that holds it with key_env."
        if status in (401, 403):
            return f"Check the key in {self._key_env}, and what it may be used for."
        if status == 404:
            return "Check model and base_url."
        if status == 429:
            return "Lower requests_per_minute or parallel, or raise the account's limit."
        if status in PASSING or status >= 500:
            return "Try again later."
        if 300 <= status < 400:
            return "Redirections are not followed: give the final address as base_url."
        return "Check the options of this component."

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "user-agent": "evokey", **self.provider.headers}
        key = self._key()
        if key is None:
            return headers
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise self.failed(f"was not asked: {self._key_env} holds characters that no key has. Set it again.")
        bearer = self.provider.key_header == "Authorization"
        return {**headers, self.provider.key_header: f"Bearer {key}" if bearer else key}

    def _key(self) -> str | None:
        """The key as it is now; none where none is wanted."""
        if self._key_env is None:
            return None
        key = os.environ.get(self._key_env, "").strip()
        if not key:
            raise self._failure(
                f"{self.provider.name} ({self.base_url}) needs a key, and the environment variable {self._key_env} "
                f"is not set. Set it, or name another with key_env."
            )
        return key

    def _scrubbed(self, text: str) -> str:
        key = os.environ.get(self._key_env, "").strip() if self._key_env else ""
        return MASKED.sub("…", text.replace(key, "…") if key else text)

    def _connected(self) -> httpx.Client:
        with self._making:
            if self._client is None:
                limits = httpx.Limits(max_connections=None, max_keepalive_connections=self.parallel)
                self._client = httpx.Client(timeout=self._timeout, limits=limits)
                weakref.finalize(self, self._client.close)
            return self._client


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a call failed that may be tried again."""

    what: str
    pause: float | None = None
    """Seconds that the service asks to wait."""


class Pace:
    """At most so many calls in any minute, each waiting for its turn."""

    def __init__(self, per_minute: int | None, now: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._turns: deque[float] | None = deque(maxlen=per_minute) if per_minute else None
        self._now, self._sleep, self._lock = now, sleep, threading.Lock()

    def wait(self) -> None:
        if self._turns is None:
            return
        with self._lock:
            now = self._now()
            turn = max(now, self._turns[0] + 60) if len(self._turns) == self._turns.maxlen else now
            self._turns.append(turn)
        if turn > now:
            self._sleep(turn - now)


def _results(begun: Mapping[Future[Done], int]) -> Iterator[tuple[int, Done]]:
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


def _check_limits(name: str, timeout: float, retries: int, per_minute: int | None, parallel: int) -> None:
    if not (timeout > 0 and retries >= 0 and parallel >= 1 and (per_minute is None or per_minute >= 1)):
        raise InvalidSettings(
            f"{name} needs timeout > 0, retries ≥ 0, parallel ≥ 1 and requests_per_minute ≥ 1, not "
            f"timeout={timeout}, retries={retries}, parallel={parallel}, requests_per_minute={per_minute}"
        )


def _checked_url(name: str, address: str) -> str:
    """The address without a slash at its end. One that carries a secret, or is none, is refused and not repeated."""
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, TypeError):
        raise InvalidSettings(f"base_url of {name} is no address; write it as https://host/path") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidSettings(f"base_url of {name} must begin with http:// or https:// and name a host")
    if url.userinfo or url.query or url.fragment:
        raise InvalidSettings(
            f"base_url of {name} holds a user, a query or a fragment. Settings hold no secrets: "
            f"put the key into an environment variable and name it with key_env"
        )
    return str(url).rstrip("/")


def _asked_pause(header: str | None) -> float | None:
    """Retry-After, in seconds from now: it is written as a number, or as a date."""
    if not header:
        return None
    try:
        return max(0.0, min(float(header), 1e9))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except ValueError:
        return None


def _told(content: bytes) -> str:
    """What a service says was wrong, out of the several ways to say so."""
    try:
        return _said(json.loads(content))
    except (ValueError, RecursionError):
        text = content.decode("utf-8", "replace").strip()
        return "" if text.startswith("<") else text


def _said(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    if isinstance(answer, list):
        return "; ".join(filter(None, map(_said, answer)))
    if isinstance(answer, dict):
        return next(filter(None, (_said(answer.get(key)) for key in ("error", "message", "detail", "msg"))), "")
    return ""


def _line(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= LONGEST_MESSAGE else f"{line[:LONGEST_MESSAGE]}…"


def _kind(error: Exception) -> str:
    return type(error).__name__


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Lines end at a line feed and nowhere else: other separators of Unicode may stand inside JSON."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line.decode("utf-8", "replace").removesuffix("\r") for line in lines)
    yield rest.decode("utf-8", "replace")


def _events(lines: Iterable[str]) -> Iterator[str]:
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
