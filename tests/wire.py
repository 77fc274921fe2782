"""A real HTTP server on this machine that speaks as the providers do, for tests of what is asked over HTTP.

    with Wire() as wire:
        Service(Provider("openai", wire.url)).post("embeddings", {"input": ["a text"], "model": "wordllama"})

Embeddings are WordLlama's, so that a memory over it finds what it should; a reranker counts the words in common.
`first` holds replies that come before any other, in order: refusals, delays, nonsense. `requests` holds what was asked.
Another path is one more entry of `answers`; a stream is a Reply whose body is the bytes of its events.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import numpy as np

from evokey.encoders.wordllama import WordLlamaEncoder

LENGTH = 3.0
"""Vectors leave the server longer than one, so that it shows who makes them unit vectors."""


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: Any = None
    """Bytes go out as they are, anything else as JSON."""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before the answer."""
    drip: float = 0.0
    """Seconds after each byte of it."""
    missing: int = 0
    """Bytes that are promised and never sent."""


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: Any


Answer = Callable[[Any], Any]


class Wire:
    def __init__(self, delay: float = 0.0) -> None:
        """delay: seconds that every answer takes."""
        self.first: list[Reply] = []
        self.requests: list[Request] = []
        self.most_at_once = 0
        self.answers: dict[str, Answer] = {
            "/v1/embeddings": embeddings,
            "/v2/embed": cohere_embed,
            "/v2/rerank": rerank,
            "/rerank": tei_rerank,
        }
        self._delay, self._busy, self._lock = delay, 0, threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(0.01), daemon=True)

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        return f"{self.host}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reply(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            if self.first:
                return self.first.pop(0)
        if request.path not in self.answers:
            return Reply(404, {"error": {"message": f"no such path: {request.path}"}})
        answer = self.answers[request.path](request.body)
        return answer if isinstance(answer, Reply) else Reply(body=answer, delay=self._delay)

    def entered(self, by: int) -> None:
        with self._lock:
            self._busy += by
            self.most_at_once = max(self.most_at_once, self._busy)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        wire = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # head and body are two writes: the second would wait for an answer

            def do_POST(self) -> None:
                try:
                    self._answer(self._reply())
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def _reply(self) -> Reply:
                """A call is over before its answer is sent: whoever has the answer may begin the next."""
                wire.entered(1)
                try:
                    body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                    reply = wire.reply(Request(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                    time.sleep(reply.delay)
                    return reply
                finally:
                    wire.entered(-1)

            def _answer(self, reply: Reply) -> None:
                content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content) + reply.missing))
                self.end_headers()
                for piece in [content] if not reply.drip else [bytes([byte]) for byte in content]:
                    self.wfile.write(piece)
                    self.wfile.flush()
                    time.sleep(reply.drip)
                self.close_connection = self.close_connection or bool(reply.missing)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def vectors(texts: list[str]) -> np.ndarray:
    return WordLlamaEncoder().documents(texts) * np.float32(LENGTH)


def words(texts: list[str]) -> int:
    return sum(len(text.split()) for text in texts)


def embeddings(body: Any) -> Any:
    """OpenAI's and Voyage's: each vector with its index, in base64 where that is asked for. They come shuffled."""
    rows = vectors(body["input"])[:, : body.get("dimensions", body.get("output_dimension", 256))]
    packed = body.get("encoding_format") == "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(row.tobytes()).decode() if packed else row.tolist(),
        }
        for index, row in enumerate(rows)
    ]
    tokens = words(body["input"])
    usage = {"total_tokens": tokens} | ({} if "input_type" in body else {"prompt_tokens": tokens})
    return {"object": "list", "data": data[::-1], "model": body["model"], "usage": usage}


def cohere_embed(body: Any) -> Any:
    return {
        "id": "1",
        "embeddings": {kind: vectors(body["texts"]).tolist() for kind in body["embedding_types"]},
        "texts": body["texts"],
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": words(body["texts"])}},
    }


def rerank(body: Any) -> Any:
    scores = common_words(body["query"], body["documents"])
    best = sorted(range(len(scores)), key=lambda index: -scores[index])[: body["top_n"]]
    return {"id": "1", "results": [{"index": index, "relevance_score": scores[index]} for index in best]}


def tei_rerank(body: Any) -> Any:
    scores = common_words(body["query"], body["texts"])
    return [{"index": index, "score": scores[index]} for index in sorted(range(len(scores)), key=lambda i: -scores[i])]


def common_words(query: str, texts: list[str]) -> list[float]:
    asked = set(query.lower().split())
    return [len(asked & set(text.lower().split())) / len(asked) for text in texts]


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []
        self._lock = threading.Lock()

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.slept.append(seconds)
            self.time += seconds
