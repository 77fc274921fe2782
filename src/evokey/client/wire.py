"""Requests to a service, and its errors as the errors that Memory raises."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from evokey import errors
from evokey.errors import EvokeyError, ServiceFailed, UnknownComponent

try:
    import httpx
except ModuleNotFoundError as error:
    raise UnknownComponent("the client needs httpx: pip install 'evokey[client]'") from error

ATTEMPTS = 3
"""How often a request that changes nothing is sent, while the service is busy."""
BUSY = (429, 503)
SLEEP = 30.0
"""Seconds that it waits at the most, if the service says so."""


class Wire:
    def __init__(self, url: str, key: str | None, timeout: float) -> None:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._http = httpx.Client(base_url=url.rstrip("/"), headers=headers, timeout=timeout)
        self._url = url

    def get(self, path: str, **query: Any) -> Any:
        asked = {name: value for name, value in query.items() if value is not None}
        return self._insist("GET", path, params=asked).json()

    def post(self, path: str, *, again: bool = False, **body: Any) -> Any:
        """again: it changes nothing, and may be sent again."""
        said = {name: value for name, value in body.items() if value is not None}
        return (self._insist if again else self._send)("POST", path, json=said).json()

    def delete(self, path: str, **query: Any) -> Any:
        return self._send("DELETE", path, params=query).json()

    def lines(self, path: str, **query: Any) -> Iterator[Any]:
        """The lines of an export."""
        with self._http.stream("GET", path, params=query) as answer:
            self._check(answer)
            yield from (json.loads(line) for line in answer.iter_lines() if line)

    def events(self, path: str, **body: Any) -> Iterator[tuple[str, Any]]:
        """Server-sent events: a name and what it says."""
        said = {name: value for name, value in body.items() if value is not None}
        with self._http.stream("POST", path, json=said) as answer:
            self._check(answer)
            name = ""
            for line in answer.iter_lines():
                kind, _, text = line.partition(": ")
                name = text if kind == "event" else name
                if kind == "data":
                    yield name, json.loads(text)

    def close(self) -> None:
        self._http.close()

    def _insist(self, method: str, path: str, **more: Any) -> httpx.Response:
        for _ in range(ATTEMPTS - 1):
            answer = self._request(method, path, **more)
            if answer.status_code not in BUSY:
                return self._check(answer)
            time.sleep(min(float(answer.headers.get("Retry-After", 1)), SLEEP))
        return self._send(method, path, **more)

    def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self._check(self._request(method, path, **more))

    def _request(self, method: str, path: str, **more: Any) -> httpx.Response:
        try:
            return self._http.request(method, path, **more)
        except httpx.HTTPError as error:
            raise ServiceFailed(f"{self._url} does not answer ({type(error).__name__}); is it running?") from error

    def _check(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_success:
            return answer
        answer.read()
        try:
            told = answer.json()
            raise error_of(str(told["error"]), f"{told['message']}")
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, EvokeyError):
                raise
            raise ServiceFailed(f"{self._url} answered {answer.status_code}, and not as evokey does") from error


def error_of(kind: str, message: str) -> EvokeyError:
    """The error that Memory would have raised; of others, that the service failed."""
    found = getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, EvokeyError):
        return found(message)
    return ServiceFailed(f"{message} ({kind})")
