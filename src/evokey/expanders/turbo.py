"""Turbo: a short prompt for a small, fast model; or, with backend="t5", a T5 rewriter that needs no prompt."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from evokey.errors import InvalidSettings, UnknownComponent
from evokey.expanders import parse
from evokey.expanders.base import LLMExpander, check, one_of
from evokey.expanders.units import LONGEST
from evokey.llm.prompts import Prompt
from evokey.protocols import LLM
from evokey.types import Completion, Message, Spent, Unit

REWRITER = "catyung/t5l-turbo-hotpot-0331"
"""The paper's T5L-Turbo: the T5-large (770M) of Ma et al. 2023, on the Hugging Face hub. Any folder or hub name of a T5
will do."""
REWRITER_PREFIX = "rewrite a better search query: "
"""What that model was trained to see before a query."""


class TurboRewriter(LLMExpander):
    name: ClassVar[str] = "turbo-rewriter"
    tokens: ClassVar[int] = 160

    def __init__(
        self,
        llm: LLM | None = None,
        *,
        backend: str = "llm",
        model: str = REWRITER,
        prefix: str | None = None,
        rewrites: int = 3,
        max_tokens: int | None = None,
        temperature: float = 0.0,
        units: int = 4,
        longest: int = LONGEST,
        prompt: Prompt | str | Path | None = None,
    ) -> None:
        """prefix: what a T5 sees before the query, unless a prompt says it all; every T5 was trained with its own."""
        one_of(self.name, "backend", backend, ("llm", "t5"))
        check(self.name, rewrites=rewrites)
        asked = T5(model, rewrites) if backend == "t5" else llm
        if backend == "t5" and prompt is None:
            known = REWRITER_PREFIX if model == REWRITER else ""
            prompt = Prompt((known if prefix is None else prefix) + "{{query}}")
        if asked is None:
            raise InvalidSettings(f"expander {self.name!r} asks a language model, and none is set; or set backend='t5'")
        super().__init__(
            asked, max_tokens=max_tokens, temperature=temperature, units=units, longest=longest, prompt=prompt
        )

    def units(self, answer: str, query: str) -> list[Unit]:
        return [Unit(text) for text in parse.items(parse.answer(answer, "query"))]


class T5:
    """A T5 as a language model that only rewords: a line for each rewording, by beam search, so always the same."""

    def __init__(self, model: str, rewrites: int) -> None:
        self.identity = f"t5/{model}"
        self._name, self._rewrites = model, rewrites
        self._loaded: tuple[Any, Any] | None = None

    def complete(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Completion:
        self._loaded = self._loaded or self._load()
        tokenizer, model = self._loaded
        start = time.monotonic()
        given = tokenizer(messages[-1].text, return_tensors="pt", truncation=True, max_length=512)
        made = model.generate(
            input_ids=given["input_ids"],
            attention_mask=given["attention_mask"],
            max_new_tokens=max_tokens,
            num_beams=max(4, self._rewrites),
            num_return_sequences=self._rewrites,
            do_sample=False,
            repetition_penalty=1.8,
        )
        texts = tokenizer.batch_decode(made, skip_special_tokens=True)
        spent = Spent(1, given["input_ids"].numel(), made.numel(), 0.0, time.monotonic() - start)
        return Completion("\n".join(" ".join(text.split()) for text in texts), self.identity, spent)

    def stream(self, messages: Sequence[Message], *, max_tokens: int = 1024, temperature: float = 0.0) -> Iterator[str]:
        yield self.complete(messages, max_tokens=max_tokens, temperature=temperature).text

    def _load(self) -> tuple[Any, Any]:
        try:
            transformers = import_module("transformers")
            import_module("torch")
        except ModuleNotFoundError as error:
            raise UnknownComponent(
                f"turbo-rewriter with backend 't5' needs {error.name}; install it with: pip install 'evokey[t5]'"
            ) from error
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(self._name)
            return tokenizer, transformers.AutoModelForSeq2SeqLM.from_pretrained(self._name).eval()
        except (OSError, ValueError) as error:
            raise InvalidSettings(
                f"turbo-rewriter cannot load the T5 {self._name!r}: {error}. Give a folder or a hub name that exists"
            ) from error
