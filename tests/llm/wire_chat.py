"""A chat service on this computer, over real HTTP, that answers, refuses, breaks off or hangs as a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from evokey.types import Message

SECRET = "sk-very-secret"
QUESTION = [Message("system", "Answer briefly."), Message("user", "What is six times seven?")]


@dataclass(frozen=True)
class Asked:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class ChatServer(ThreadingHTTPServer):
    """Plays its replies one after the other; the last one for ever."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: list[Reply] = []
        self.asked: list[Asked] = []
        self.at_once, self.most_at_once = 0, 0
        self.released, self.lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, *_: Any) -> None:
        """A client that goes away is what some tests want."""

    def play(self, *replies: Reply) -> None:
        self.replies = list(replies)

    def stop(self) -> None:
        self.released.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: ChatServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.server.asked.append(Asked(self.path, headers, self.body))
            replies = self.server.replies
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
            self.server.at_once += 1
            self.server.most_at_once = max(self.server.most_at_once, self.server.at_once)
        try:
            reply(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with self.server.lock:
                self.server.at_once -= 1

    def log_message(self, *_: Any) -> None:
        pass

    def whole(self, content: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)


Reply = Callable[[Handler], None]


@contextmanager
def serving() -> Iterator[ChatServer]:
    server = ChatServer()
    try:
        yield server
    finally:
        server.stop()


def sent(body: Any, status: int = 200, **headers: str) -> Reply:
    return lambda handler: handler.whole(json.dumps(body).encode(), status, **headers)


def raw(content: bytes, status: int = 200) -> Reply:
    return lambda handler: handler.whole(content, status)


def either(whole: Reply, streamed: Reply) -> Reply:
    """One reply to a plain request, another to one that wants a stream."""
    return lambda handler: (streamed if handler.body.get("stream") else whole)(handler)


def echoed(handler: Handler) -> None:
    """What the user said, in capitals."""
    handler.whole(json.dumps(openai(handler.body["messages"][-1]["content"].upper())).encode())


def slowly(reply: Reply, seconds: float) -> Reply:
    def play(handler: Handler) -> None:
        handler.server.released.wait(seconds)
        reply(handler)

    return play


def hangs(handler: Handler) -> None:
    handler.server.released.wait(60)
    handler.close_connection = True


def events(data: Iterable[Any], *, cut: bool = False, hang: bool = False) -> Reply:
    """Server-sent events in chunks; cut off without the chunk that ends them, or hanging after the last."""
    lines = [f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n".encode() for one in data]

    def play(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for line in lines:
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            handler.wfile.flush()
        if hang:
            handler.server.released.wait(60)
        if cut:
            handler.close_connection = True
        else:
            handler.wfile.write(b"0\r\n\r\n")

    return play


def openai(text: Any = "Forty-two.", reason: str = "stop", usage: Any = (7, 3), **message: Any) -> dict[str, Any]:
    counted = {"usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]}} if usage else {}
    said = {"role": "assistant", "content": text, **message}
    return {"model": "served-1", "choices": [{"message": said, "finish_reason": reason}], **counted}


def openai_events(pieces: Iterable[str], reason: str | None = "stop", usage: Any = (7, 3)) -> list[Any]:
    said: list[Any] = [{"model": "served-1", "choices": [{"delta": {"role": "assistant", "content": ""}}]}]
    said += [{"choices": [{"delta": {"reasoning_content": "Hm."}, "finish_reason": None}]}]
    said += [{"choices": [{"delta": {"content": piece}, "finish_reason": None}]} for piece in pieces]
    if reason:
        said.append({"choices": [{"delta": {}, "finish_reason": reason}]})
    if usage:
        said.append({"choices": [], "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]}})
    return [*said, "[DONE]"] if reason else said


def anthropic(text: str = "Forty-two.", reason: str = "end_turn") -> dict[str, Any]:
    return {
        "type": "message",
        "model": "served-1",
        "content": [{"type": "thinking", "thinking": "Hm."}, *([{"type": "text", "text": text}] if text else [])],
        "stop_reason": reason,
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 3},
    }


def anthropic_events(pieces: Iterable[str], reason: str | None = "end_turn") -> list[Any]:
    start = {"model": "served-1", "usage": {"input_tokens": 7, "output_tokens": 1}}
    said: list[Any] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    said += [{"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "Hm."}}]
    said += [{"type": "content_block_delta", "delta": {"type": "text_delta", "text": piece}} for piece in pieces]
    if reason:
        said.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}})
        said.append({"type": "message_stop"})
    return said
