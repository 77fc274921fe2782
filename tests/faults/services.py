"""Services that are dead or lie, while a memory asks them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from typing import Any, Self

from live import ask_in_thread
from wire import Reply, Request, Wire, embeddings
from world import Harm, Trial, program, rank, summary, take

PATIENT, HASTY = "timeout = 20.0", "timeout = 0.4"
PAID = {"name": "openai", "base_url": "http://127.0.0.1:1/v1", "retries": 0, "timeout": 20.0, "rest": 0.0,
        "revision": "test"}  # fmt: skip
"""An encoder over HTTP. Only where a service is slow on purpose is it given up soon: this machine may be slow too."""


class Embedder(Wire):
    """Speaks as OpenAI does; from the request numbered `fault_at` on, so many times, it answers with `fault`."""

    def __init__(self) -> None:
        super().__init__()
        self.calm()
        self.away = True
        self.answers["/v1/embeddings"] = self._embed

    def __enter__(self) -> Self:
        self.away = False
        return super().__enter__()

    def hide(self) -> None:
        """Nobody listens at the address any more, and whoever is connected is cut off."""
        if not self.away:
            self.away = True
            self.__exit__()

    def show(self) -> None:
        """At the same address again."""
        if self.away:
            self._server = ThreadingHTTPServer(("127.0.0.1", self._server.server_port), self._handler())
            self._server.daemon_threads = True
            self._thread = threading.Thread(target=lambda: self._server.serve_forever(0.01), daemon=True)
            self.__enter__()

    def reply(self, request: Request) -> Reply:
        if self.away:
            raise ConnectionResetError
        return super().reply(request)

    def calm(self) -> None:
        self.asked, self.fault_at, self.times = 0, 1 << 60, 0
        self.fault: Callable[[Any], Any] = embeddings

    def _embed(self, body: Any) -> Any:
        self.asked += 1
        if self.fault_at < self.asked <= self.fault_at + self.times:
            return self.fault(body)
        return embeddings(body)


def _changed(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A right answer that is made wrong."""

    def answer(body: Any) -> Any:
        found = embeddings({**body, "encoding_format": "float"})
        return change(found) or found

    return answer


def _each(change: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    def answer(found: Any) -> None:
        for one in found["data"]:
            one["embedding"] = change(one["embedding"])

    return _changed(answer)


DEAD: dict[str, Callable[[Any], Any]] = {
    "500": lambda _: Reply(500, {"error": {"message": "broken"}}),
    "503": lambda _: Reply(503, {"error": {"message": "overloaded"}}, {"retry-after": "1000"}),
    "429": lambda _: Reply(429, {"error": {"message": "too many"}}),
    "401": lambda _: Reply(401, {"error": {"message": "who are you"}}),
    "hangs": lambda _: Reply(delay=0.7),
    "drips": lambda _: Reply(body={"data": "x" * 200}, drip=0.02),
    "cut short": lambda _: Reply(body={"data": []}, missing=100),
    "empty": lambda _: Reply(body=b""),
}
LIES: dict[str, Callable[[Any], Any]] = {
    "dimension": _each(lambda row: row[:-7]),
    "one dimension": _each(lambda row: row[:1]),
    "NaN": lambda body: Reply(body=_text(body).replace(b"0.", b"NaN, 0.", 1)),
    "all NaN": _each(lambda row: [float("nan")] * len(row)),
    "infinite": _each(lambda row: [1e999, *row[1:]]),
    "huge number": _each(lambda row: [10**400, *row[1:]]),
    "strings": _each(lambda row: [str(number) for number in row]),
    "null": _each(lambda row: None),
    "nested": _each(lambda row: [row]),
    "too few": _changed(lambda found: {**found, "data": found["data"][1:]}),
    "too many": _changed(lambda found: {**found, "data": found["data"] + found["data"][:1]}),
    "same index": _changed(lambda found: {**found, "data": [{**one, "index": 0} for one in found["data"]] * 2}),
    "index beyond": _changed(lambda found: {**found, "data": [{**one, "index": 99} for one in found["data"]]}),
    "no data": lambda _: {"object": "list"},
    "a list": lambda _: [1, 2, 3],
    "garbage": lambda _: Reply(body=b"{not json"),
    "bytes": lambda _: Reply(body=bytes(range(256))),
    "deep": lambda _: Reply(body=b"[" * 100_000),
    "usage": _changed(lambda found: {**found, "usage": {"total_tokens": 10**30}, "data": []}),
    "packed": lambda _: Reply(body=b"no gzip", headers={"content-encoding": "gzip"}),
    "400": lambda _: Reply(400, {"error": {"message": "this text is not allowed"}}),
    "surrogate": lambda _: Reply(500, b'{"error": {"message": "\\ud800"}}'),
}


def _text(body: Any) -> bytes:
    return json.dumps(embeddings({**body, "encoding_format": "float"})).encode()


def dead_service(trial: Trial) -> None:
    meet_service(trial, trial.chance.choice([*DEAD.values(), None]))


def lying_service(trial: Trial) -> None:
    meet_service(trial, trial.chance.choice(list(LIES.values())))


def meet_service(trial: Trial, fault: Callable[[Any], Any] | None) -> None:
    """Without a fault: nobody listens at the port. Steps that fail are as if they had never been asked for."""
    server: Embedder = trial.server
    steps = program(trial, trial.chance.randint(2, 5))
    slow = fault in (DEAD["hangs"], DEAD["drips"])
    if slow:
        wait(trial, HASTY)
    memory, happened = trial.open(), []
    server.calm()
    server.fault_at, server.times = trial.chance.randrange(3), trial.chance.choice([1, 1, 1000])
    if slow:
        server.times = 1
    server.fault = fault or embeddings
    silent = trial.chance.randrange(len(steps) or 1) if fault is None else None
    for number, step in enumerate(steps):
        if number == silent:
            server.hide()
        before = len(trial.errors)
        with trial.meets():
            memory = take(memory, step, trial.open)
            happened.append(step)
        if len(trial.errors) == before and trial.chance.random() < 0.5:
            with trial.meets():
                rank(memory)
    server.calm()
    server.show()
    if slow:
        memory.close()
        wait(trial, PATIENT)
        memory = trial.open()
    if any(verb == "forget" for verb, _ in happened):
        # What is to be forgotten does not wait for an encoder: what is left is learned at the next evolve.
        memory.evolve()
        memory.close()
        trial.compare_content(trial.look(), trial.twin([*happened, ("evolve", {})]).after(len(happened) + 1))
        return
    twin = trial.twin(happened)
    with trial.meets():
        if ask_in_thread(memory) != twin.ranked(len(happened)):
            raise Harm("wrong ranking", f"after the service came back: {[summary(step) for step in happened]}")
    memory.close()
    trial.compare(trial.look(), twin.after(len(happened)))


def wait(trial: Trial, how_long: str) -> None:
    path = trial.folder / "evokey.toml"
    path.write_text(path.read_text().replace(PATIENT, how_long).replace(HASTY, how_long))
