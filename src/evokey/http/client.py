"""The one way out over HTTP: JSON posted to a service, with patience, limits and clean errors.

A Provider says where a service lives and how it takes its key; a Service asks it. What may pass is tried again, with
growing pauses or the pause that the service asks for; what cannot is told at once, with what the service said.
The time of a call, the time with all its retries and the size of an answer have limits that no service can stretch.
Keys come from the environment at the time of the call, go to the provider's own host or where the settings name the
variable, and are in no message, repr or log.
"""

from __future__ import annotations

import json
import logging
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from evokey.errors import InvalidSettings, ServiceFailed
from evokey.http import network, reply

log = logging.getLogger(__name__)

PASSING = frozenset({408, 409, 429})
"""Refusals that may be over in a moment, as every status of 500 and above may."""
REFUSING = frozenset({400, 413, 415, 422})
"""Refusals that may be owed to what was sent."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
LARGEST_ANSWER = 1 << 24
MOST_TOKENS = 10**9
"""Of one call. What is counted is added up, kept in files and paid for: nonsense must not get there."""
MASK = "***"
"""In a key as some services show it, half hidden."""
LAST_EVENT = "[DONE]"
UNKEPT = "Nothing of it was kept: try again, or check model and base_url."
Taken = TypeVar("Taken")
Piece = TypeVar("Piece")
Done = TypeVar("Done")
Take = Callable[[httpx.Response, network.Deadline], Taken]


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

    def origin(self, address: str | None = None) -> str:
        """Scheme, host and port of an address, or of the provider's own: what a key may be sent to."""
        url = httpx.URL(_checked_url(self.name, address or self.home))
        return f"{url.scheme}://{url.netloc.decode()}"


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
        total: float = 600.0,
        rest: float = 0.0,
        largest: int = LARGEST_ANSWER,
        requests_per_minute: int | None = None,
        parallel: int = 4,
        failure: type[ServiceFailed] = ServiceFailed,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """timeout: seconds for an attempt, from connecting to the last byte; in a stream, for each wait.
        total: seconds for a call with all its attempts and pauses, and for a stream. patience: the longest pause that
        a service may ask for before the call is given up. rest: seconds for which a service whose last attempt failed
        is not asked again. largest: bytes of an answer, unpacked."""
        limits = {"timeout": timeout, "retries": retries, "total": total, "rest": rest, "largest": largest}
        _check_limits(provider.name, limits, requests_per_minute, parallel)
        self.provider, self.parallel = provider, parallel
        self.base_url = _checked_url(provider.name, base_url or provider.home)
        self.at_home = provider.origin(self.base_url) == provider.origin()
        self._key_env = key_env or (provider.key_env if self.at_home else None)
        self._timeout, self._retries, self._patience = timeout, retries, patience
        self._total, self._largest, self._breaker = total, largest, network.Breaker(rest, now)
        self._failure, self._now, self._sleep, self._chance = failure, now, sleep, chance
        self._pace = network.Pace(requests_per_minute, now, sleep)
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
            raise self.failure(
                f"answered with a {type(answer).__name__} where a JSON object is expected. Check base_url."
            )
        return answer

    def ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """The same for services that answer with a list."""
        with self._send(path, body, lambda response, _: self._whole(response)) as content:
            return self._parse(content)

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
                yield from network.results(begun)
            finally:
                for one in begun:
                    one.cancel()

    def stream(self, path: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The data of each server-sent event, until the service is done. Only the beginning is tried again."""
        with self._send(path, {**body, "stream": True}, self._pieces) as pieces:
            try:
                for data in reply.events(reply.lines(pieces)):
                    if data == LAST_EVENT:
                        return
                    yield self._event(data)
            except (httpx.TransportError, httpx.DecodingError) as error:
                raise self.failure(f"ended in the middle of its answer ({_kind(error)}). Try again.") from None
            except network.TooLarge:
                raise self._too_large() from None

    def failure(self, what: str) -> ServiceFailed:
        """An error of this service, to be raised: what it did, and what to do."""
        return self._failure(f"{self.provider.name} ({self.base_url}) {self._scrub(what)}")

    def in_order(self, entries: Any, count: int) -> list[dict[str, Any]]:
        """The entries of an answer in the order of what was sent, by the index that each must carry, once."""
        if not (isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)):
            raise self.failure("sent an answer without a list of entries. Check base_url and format.")
        if len(entries) != count:
            raise self.failure(f"answered with {len(entries)} entries for {count} texts. {UNKEPT}")
        placed = {entry["index"]: entry for entry in entries if type(entry.get("index")) is int}
        if placed.keys() != set(range(count)):
            raise self.failure(
                f"numbered the entries of its answer wrongly: each of 0 to {count - 1} must occur once. {UNKEPT}"
            )
        return [placed[number] for number in range(count)]

    def tokens(self, count: Any) -> int | None:
        """A count of tokens, where the service gives one."""
        if type(count) is not int or count < 0:
            return None
        if count > MOST_TOKENS:
            raise self.failure(
                f"says that one call took {count} tokens, and no call takes more than {MOST_TOKENS}. {UNKEPT}"
            )
        return count

    def close(self) -> None:
        with self._making:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _event(self, data: str) -> dict[str, Any]:
        event = self._parse(data.encode())
        if not isinstance(event, dict):
            raise self.failure("sent an event that is not a JSON object. Check base_url.")
        if event.get("error"):
            raise self.failure(f"ended in the middle of its answer: {reply.line(reply.message_of(event))}. Try again.")
        return event

    @contextmanager
    def _send(self, path: str, body: Mapping[str, Any], take: Take[Taken]) -> Iterator[Taken]:
        """What is taken from a successful response, open. Trying again happens before it is handed out, never after."""
        content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        self._check_breaker()
        end = self._now() + self._total
        for attempt in range(self._retries + 1):
            with self._room, ExitStack() as opened:
                end += self._pace.wait()
                deadline = network.Deadline(min(self._timeout, end - self._now()), self._now)
                taken = self._try(self._request(path, content, deadline), deadline, take, opened)
                if not isinstance(taken, Trouble):
                    self._breaker.note_success()
                    yield taken
                    return
            self._pause(taken, attempt, end)

    def _request(self, path: str, content: bytes, deadline: network.Deadline) -> httpx.Request:
        address, limits = f"{self.base_url}/{path.lstrip('/')}", {"timeout": deadline.timeouts()}
        return self._connect().build_request(
            "POST", address, content=content, headers=self._headers(), extensions=limits
        )

    def _try(
        self, request: httpx.Request, deadline: network.Deadline, take: Take[Taken], opened: ExitStack
    ) -> Taken | Trouble:
        """What is taken from a response of success, or the trouble instead; trouble that will not pass is raised."""
        try:
            response = self._connect().send(request, stream=True, follow_redirects=False)
            opened.callback(response.close)
            if response.is_success:
                return take(response, deadline)
            return self._refusal(response, self._whole(response))
        except httpx.TransportError as error:
            return Trouble(self._describe_unreachable(error))

    def _check_breaker(self) -> None:
        left = self._breaker.left()
        if left:
            raise self.failure(
                f"is not called: it has just failed, and will be tried in {left:.0f} s. Set rest to change this pause."
            )

    def _refusal(self, response: httpx.Response, content: bytes) -> Trouble:
        status, said = response.status_code, reply.message(content)
        trouble = Trouble(
            f"answered {status}{f': {reply.line(said)}' if said else ''}. {self._advice(status)}",
            reply.pause_of(response.headers.get("retry-after")),
        )
        if (status not in PASSING and status < 500) or b"insufficient_quota" in content:
            failure = self.failure(trouble.what)
            failure.refused = status in REFUSING
            raise failure
        return trouble

    def _pause(self, trouble: Trouble, attempt: int, end: float) -> None:
        """Wait for the next attempt, or raise the trouble when there is none."""
        grown = min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt) * (1 + self._chance()) / 2
        pause = grown if trouble.pause is None else trouble.pause + FIRST_PAUSE * self._chance()
        over = self._over(trouble, attempt, self._now() + pause >= end)
        if over is not None:
            self._breaker.note_failure()
            raise self.failure(trouble.what + over)
        log.info(
            "%s %s Trying again in %.1f s (%d of %d)",
            self.provider.name, self._scrub(trouble.what), pause, attempt + 1, self._retries,
        )  # fmt: skip
        self._sleep(pause)

    def _over(self, trouble: Trouble, attempt: int, too_late: bool) -> str | None:
        """Why there is no further attempt, as the end of a message; None where there is one."""
        tried = f" (tried {attempt + 1} times)" if attempt else ""
        if attempt == self._retries:
            return tried
        if trouble.pause is not None and trouble.pause > self._patience:
            return f" It asks to wait {trouble.pause:.0f} s, over {self._patience:.0f} s."
        return f" Another attempt would end after total = {self._total:g} s.{tried}" if too_late else None

    def _pieces(self, response: httpx.Response, deadline: network.Deadline) -> Iterator[bytes]:
        """The body of a stream, as it comes, within the time and size of a stream."""
        deadline.extend(self._total)
        return network.body(response, self._largest)

    def _whole(self, response: httpx.Response) -> bytes:
        """All of an answer, within the size that an answer may have."""
        try:
            return b"".join(network.body(response, self._largest))
        except httpx.DecodingError as error:
            raise self.failure(f"sent an answer that cannot be unpacked: {error}. Check base_url.") from None
        except network.TooLarge:
            raise self._too_large() from None

    def _too_large(self) -> ServiceFailed:
        return self.failure(f"answered with more than {self._largest / 2**20:.1f} MB. Ask for less at once.")

    def _parse(self, content: bytes) -> Any:
        try:
            answer = json.loads(content.decode("utf-8"))
        except (ValueError, RecursionError):
            start = content[: reply.LONGEST_MESSAGE].decode("utf-8", "replace")
            raise self.failure(f"sent what is not JSON: {reply.line(start)!r}. Check base_url.") from None
        wrong = reply.nonsense(answer)
        if wrong is not None:
            raise self.failure(f"sent an answer with {wrong}. {UNKEPT}")
        return answer

    def _describe_unreachable(self, error: httpx.TransportError) -> str:
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            why = f"{_kind(error)}: {reply.line(str(error))}"
            return f"could not be reached ({why}). Is it running, and is base_url right?"
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
            raise self.failure(
                f"was not asked: {self._key_env} contains characters that are not allowed in a key. Set it again."
            )
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

    def _scrub(self, text: str) -> str:
        key = os.environ.get(self._key_env, "").strip() if self._key_env else ""
        whole = text.replace(key, "…") if key else text
        return " ".join("…" if MASK in word else word for word in whole.split(" "))

    def _connect(self) -> httpx.Client:
        with self._making:
            if self._client is None:
                self._client = network.client(self.parallel)
                weakref.finalize(self, self._client.close)
            return self._client


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a call failed that may be tried again."""

    what: str
    pause: float | None = None
    """Seconds that the service asks to wait."""


def _check_limits(name: str, limits: Mapping[str, float | None], per_minute: int | None, parallel: int) -> None:
    least = {"retries": 0, "rest": 0, "largest": 1}
    wrong = {limit: value for limit, value in limits.items() if value is None or value < least.get(limit, 1e-9)}
    wrong |= {} if parallel >= 1 else {"parallel": parallel}
    wrong |= {} if per_minute is None or per_minute >= 1 else {"requests_per_minute": per_minute}
    if wrong:
        raise InvalidSettings(
            f"{name} needs timeout > 0, total > 0, retries ≥ 0, rest ≥ 0, largest ≥ 1, parallel ≥ 1 and "
            f"requests_per_minute ≥ 1, not {', '.join(f'{limit}={value}' for limit, value in wrong.items())}"
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


def _kind(error: Exception) -> str:
    return type(error).__name__
