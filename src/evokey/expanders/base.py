"""What the methods share. A method that asks a language model writes one function: the model's answer → units."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from evokey.errors import ExpansionFailed, InvalidSettings, ServiceFailed
from evokey.expanders.units import LONGEST, MOST, tidy
from evokey.llm.prompts import Prompt, choose
from evokey.protocols import LLM, Look
from evokey.types import Expansion, Spent, Unit


class LLMExpander(ABC):
    """Asks once, with the prompt of its name, or with one of the user's own: a file, or a text."""

    name: ClassVar[str]
    search: ClassVar[str] = "blend"
    needs: ClassVar[str] = "llm"
    tokens: ClassVar[int] = 1536
    """The longest answer, unless said otherwise."""

    def __init__(
        self,
        llm: LLM,
        *,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        units: int = MOST,
        longest: int = LONGEST,
        prompt: Prompt | str | Path | None = None,
    ) -> None:
        self.max_tokens = self.tokens if max_tokens is None else max_tokens
        check(self.name, max_tokens=self.max_tokens, units=units, longest=longest)
        self.llm, self.temperature = llm, temperature
        self.most, self.longest = units, longest
        self.prompt = choose(prompt, self.name)
        self.identity = f"{self.name}/{llm.identity}/{self.prompt.hash[:12]}"

    @abstractmethod
    def units(self, answer: str, query: str) -> list[Unit]:
        """What a model's whole answer holds, in order."""

    def expand(self, query: str, look: Look) -> Expansion:
        told = self.ask(query)
        return self.expansion(query, told.units, told.spent, told.model)

    def ask(self, query: str, **values: str) -> Told:
        """One question to the model; the query and the values go into the prompt's places."""
        try:
            completion = self.llm.complete(
                self.prompt.fill(query=query, **values), max_tokens=self.max_tokens, temperature=self.temperature
            )
        except ServiceFailed as error:
            raise ExpansionFailed(f"{self.name} got no answer from {self.llm.identity}: {error}") from error
        pieces = self.units(completion.text, query)
        if len(pieces) > 1 and not completion.finished and not _is_closed(completion.text):
            pieces = pieces[:-1]  # it stops in the middle of the last one
        words = f"{self.prompt.words} {values.get('task', '')}"
        found = tidy(pieces, query, words, most=self.most, longest=self.longest)
        if not any(unit.positive for unit in found):
            raise ExpansionFailed(
                f"{self.name}: the answer of {completion.model or self.llm.identity} holds no expansion: "
                f"{_glimpse(completion.text)}. {_advice(completion.finished, self.max_tokens)}"
            )
        return Told(found, completion.text, completion.model, completion.spent)

    def expansion(self, query: str, units: tuple[Unit, ...], spent: Spent, model: str) -> Expansion:
        return Expansion(query, units, self.name, self.search, model or self.llm.identity, self.prompt.hash, spent)


@dataclass(frozen=True, slots=True)
class Told:
    """What the model answered, and the units in it."""

    units: tuple[Unit, ...]
    text: str
    model: str
    spent: Spent


def check(name: str, **counts: int) -> None:
    """Options that are counts are at least one."""
    for option, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InvalidSettings(f"expander {name!r} needs {option} ≥ 1, not {count!r}")


def one_of(name: str, option: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise InvalidSettings(f"expander {name!r} knows no {option} {value!r}; choose one of: {', '.join(known)}")


def _is_closed(text: str) -> bool:
    return bool(re.search(r"<\s*/\s*(?:expansion|response)\s*>", text, re.IGNORECASE))


def _glimpse(text: str) -> str:
    short = " ".join(text.split())
    return "it is empty" if not short else repr(short[:80] + ("…" if len(short) > 80 else ""))


def _advice(finished: bool, max_tokens: int) -> str:
    if not finished:
        return f"It was cut off after {max_tokens} tokens: raise max_tokens"
    return "Ask a more capable model, or take another method"
