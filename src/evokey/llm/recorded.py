"""Answers replayed from a file, so that a run with a language model repeats anywhere, without the model.

The file has one answer a line, as JSON: what was asked, of which model, and what it said. Mode "replay" knows nothing
else; mode "record" asks the model for what the file does not have, and adds it. A request has one answer, also where it
was sampled; it comes with what it cost when it was recorded.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock

from evokey import registry
from evokey.erasure import PATIENCE, Erasure
from evokey.errors import InvalidSettings, LLMFailed
from evokey.llm.request import Answering, name_of, passed_on, price_of
from evokey.protocols import LLM
from evokey.registry import Named
from evokey.stores.segments import write_synced
from evokey.types import Completion, Message, Spent

HOW = 'Record it with mode = "record" and the llm to ask.'


class Recorded:
    def __init__(
        self, at: str | Path, *, llm: LLM | Named | None = None, mode: str = "replay", model: str | None = None
    ) -> None:
        """model: the identity of the recorded model, needed in mode "replay" where the file holds several."""
        if mode not in ("replay", "record"):
            raise InvalidSettings(f"recorded has the modes replay and record, not {mode!r}")
        if mode == "record" and llm is None:
            raise InvalidSettings("recorded needs the llm to ask in mode record: llm = {name = …}")
        self._at = Path(at).expanduser()
        self.llm: LLM | None = registry.build("llm", llm) if mode == "record" and llm is not None else None
        self._answers: dict[str, Completion] = {}
        self._read_of: int | None = None
        """Which file it was: where something is forgotten, another takes its place."""
        models = self._read()
        self.identity = self.llm.identity if self.llm is not None else self._choose_model(models, model)

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Completion:
        name = name_of(self.identity, messages, max_tokens, temperature)
        found = self._known(name)
        if found is not None:
            return found
        if self.llm is None:
            raise self._missing(messages)
        found = self.llm.complete(messages, max_tokens=max_tokens, temperature=temperature)
        self._add(name, messages, max_tokens, temperature, found)
        return found

    def stream(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Answering:
        """A recorded answer comes in one piece. One that was left before its end is not recorded."""
        name = name_of(self.identity, messages, max_tokens, temperature)
        found = self._known(name)
        if found is not None:
            yield found.text
            return found
        if self.llm is None:
            raise self._missing(messages)
        found = yield from passed_on(self.llm, messages, max_tokens, temperature)
        self._add(name, messages, max_tokens, temperature, found)
        return found

    def price(self, prompt_tokens: int, answer_tokens: int) -> float | None:
        return 0.0 if self.llm is None else price_of(self.llm, prompt_tokens, answer_tokens)

    def _known(self, name: str) -> Completion | None:
        if _number(self._at) != self._read_of:
            self._read()
        return self._answers.get(name)

    def _missing(self, messages: Sequence[Message]) -> LLMFailed:
        asked = messages[-1].text if messages else ""
        return LLMFailed(f"{self._at} has no answer of {self.identity} to {asked[:60]!r} with these parameters. {HOW}")

    def _choose_model(self, models: Sequence[str], model: str | None) -> str:
        if not models:
            raise InvalidSettings(f"recorded: {self._at} holds no answer. {HOW}")
        if model is None and len(models) > 1:
            raise InvalidSettings(f"recorded: {self._at} holds several models; name one: model = {' or '.join(models)}")
        if model is not None and model not in models:
            raise InvalidSettings(f"recorded: {self._at} holds answers of {', '.join(models)}, not of {model}")
        return model or models[0]

    def _read(self) -> list[str]:
        """The answers of the file, and the models that gave them. What a broken write left at its end is no answer."""
        models: dict[str, None] = {}
        self._answers, self._read_of = {}, _number(self._at)
        lines = self._at.read_bytes().split(b"\n")[:-1] if self._at.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                name, models[row["model"]] = row["name"], None
                self._answers[name] = Completion(
                    row["text"], row["answered_by"], Spent(**row["spent"]), row["finished"]
                )
            except (ValueError, TypeError, KeyError) as error:
                raise InvalidSettings(
                    f"recorded: line {number} of {self._at} is no recorded answer ({error})"
                ) from None
        return list(models)

    def _add(
        self, name: str, messages: Sequence[Message], max_tokens: int, temperature: float, answer: Completion
    ) -> None:
        row: dict[str, Any] = {
            "name": name,
            "model": self.identity,
            "messages": [[message.role, message.text] for message in messages],
            "max_tokens": max_tokens,
            "temperature": temperature,
            "text": answer.text,
            "answered_by": answer.model,
            "finished": answer.finished,
            "spent": asdict(answer.spent),
        }
        self._at.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{self._at}.lock"), self._at.open("ab+") as file:
            _cut_broken_end(file)
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        self._read_of = self._read_of or _number(self._at)
        self._answers[name] = answer


def forget(file: Path, erasure: Erasure) -> None:
    """Erase answers to requests that quote a forgotten query, and answers that quote one."""
    if not erasure.queries:
        return
    with FileLock(f"{file}.lock", timeout=PATIENCE):
        lines = file.read_bytes().split(b"\n")[:-1]
        left = [line for line in lines if not erasure.quoted_in(_texts(line))]
        for unfinished in file.parent.glob(f"{glob.escape(file.name)}.*.tmp"):
            unfinished.unlink(missing_ok=True)
        making = file.with_name(f"{file.name}.{os.getpid()}.tmp")
        write_synced(making, b"".join(line + b"\n" for line in left))
        making.replace(file)


def _texts(line: bytes) -> list[str]:
    """All that a recorded answer quotes, and says."""
    try:
        row = json.loads(line)
        return [row["text"], *(text for _, text in row["messages"])]
    except (ValueError, TypeError, KeyError):
        return [line.decode("utf-8", "replace")]


def _number(file: Path) -> int | None:
    return file.stat().st_ino if file.exists() else None


def _cut_broken_end(file: Any) -> None:
    size = file.seek(0, 2)
    file.seek(max(0, size - (1 << 20)))
    tail = file.read()
    if tail and not tail.endswith(b"\n"):
        file.truncate(size - len(tail) + tail.rfind(b"\n") + 1)
