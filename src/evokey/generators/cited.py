"""Answers from numbered passages, each statement with the numbers of its passages.

Every citation is one of the passages that were shown: a number the model made up is dropped. An answer that says "not
in the passages", in whatever words, has no text and no citation; so has an answer where nothing was found, and then no
model is asked. Of a long document its passage is shown and what stands around it, so much that all of them fit the
model's context.
Passages are data: each is one line, between tags it cannot close, and what looks like a mark in it is written ‹1›.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from evokey.errors import InvalidQuery, InvalidSettings, LLMFailed
from evokey.generators.citations import certain, citation_numbers, tidy_answer
from evokey.llm.answers import THOUGHT, answer_of
from evokey.llm.prompts import Prompt, load_packaged
from evokey.llm.request import passed_on
from evokey.passages.reading import heading, widen
from evokey.protocols import LLM
from evokey.types import Answer, Citation, Completion, Hit, Message, Passage

LEAST = 16
"""Tokens of a passage below which it says nothing."""
OWN = 32
"""Tokens that a chat template adds of its own."""
_PIECE = re.compile(r"[A-Za-z]+|\s+|.", re.DOTALL)
_LIKE_A_MARK = re.compile(r"[\[【［]([^\[\]【】［］]{0,20}\d[^\[\]【】［］]{0,20})[\]】］]")
_OPENING = re.compile(r"\W*(?:```|(?:sure|certainly|of course|absolutely|okay|ok|great|here)\b)", re.IGNORECASE)
STEP = 50
"""A stream is looked at whenever it has grown by this part: looking at each piece would take its length squared."""
GREETED = 400
"""Characters after which a greeting is over."""


class Cited:
    name: ClassVar[str] = "cited"

    def __init__(
        self,
        llm: LLM,
        *,
        passages: int = 5,
        passage_tokens: int = 400,
        context: int = 4096,
        max_tokens: int = 512,
        temperature: float = 0.0,
        closed_book: bool = False,
        prompt: Prompt | None = None,
    ) -> None:
        """context: tokens the model can hold, prompt and answer together; passages are cut so that all fits.
        closed_book: without hits, let the model answer from what it knows (the control without context)."""
        for option, count in {"passages": passages, "passage_tokens": passage_tokens, "max_tokens": max_tokens}.items():
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise InvalidSettings(f"generator 'cited' needs {option} ≥ 1, not {count!r}")
        self.llm, self.passages, self.passage_tokens = llm, passages, passage_tokens
        self.context, self.max_tokens, self.temperature = context, max_tokens, temperature
        self.closed_book, self.prompt = closed_book, prompt or load_packaged("cited", "generators")
        self.closed_prompt = load_packaged("closed-book", "generators")
        used = [self.prompt, *([self.closed_prompt] if closed_book else [])]
        self.identity = "/".join([self.name, llm.identity, *(one.hash[:12] for one in used)])
        room = self._room("")
        if room < passages * LEAST:
            raise InvalidSettings(
                f"generator 'cited': a context of {context} tokens, less max_tokens = {max_tokens} and the prompt, "
                f"leaves {max(room, 0)} for {passages} passages; raise context to the model's limit, "
                f"or lower max_tokens"
            )

    def answer(self, query: str, hits: Sequence[Hit]) -> Answer:
        asking = self.prepare(query, hits)
        if asking is None:
            return self._nothing(query)
        told = self.llm.complete(asking.messages, max_tokens=self.max_tokens, temperature=self.temperature)
        return self._make_answer(query, asking, told)

    def stream(self, query: str, hits: Sequence[Hit]) -> Generator[str, None, Answer]:
        """Pieces of the answer as soon as nothing to come can change them.

        A model that closes a thought it never opened has been shown thinking: then the answer follows on a new line.
        """
        asking = self.prepare(query, hits)
        if asking is None:
            return self._nothing(query)
        said, given, looked = "", "", 0
        stream = passed_on(self.llm, asking.messages, self.max_tokens, self.temperature)
        while True:
            try:
                said += next(stream)
            except StopIteration as end:
                told: Completion = end.value
                break
            if len(said) - looked < len(said) // STEP:
                continue
            looked = len(said)
            so_far = self._certain(said, len(asking.hits))
            if len(so_far) > len(given) and so_far.startswith(given):
                yield so_far[len(given) :]
                given = so_far
        answer = self._make_answer(query, asking, told)
        rest = answer.text[len(given) :] if answer.text.startswith(given) else f"\n{answer.text}"
        if rest:
            yield rest
        return answer

    def _certain(self, said: str, count: int) -> str:
        spoken = THOUGHT.sub("", said)
        if _OPENING.match(spoken) and (len(spoken) < GREETED or spoken.lstrip().startswith("```")):
            return ""
        return certain(answer_of(said), count)

    def prepare(self, query: str, hits: Sequence[Hit]) -> Asking | None:
        """What the model is asked; None where nothing was found, and no model is."""
        room = self._room(query)
        used = tuple(hits[: self.passages])
        if room < max(len(used), 1) * LEAST:
            raise InvalidQuery(
                f"the query has about {tokens(query)} tokens and leaves no room for passages in a context of "
                f"{self.context}; shorten it, or raise context to the model's limit"
            )
        if used:
            texts = [_one_line(hit.document.title, hit.document.text) for hit in used]
            sizes = [tokens(text) for text in texts]
            level = min(self.passage_tokens, _level(sizes, room))
            shown = [
                text if size <= level else _excerpt(hit, level)
                for hit, text, size in zip(used, texts, sizes, strict=True)
            ]
            lines = [f"[{number}] {text}" for number, text in enumerate(shown, 1)]
            return Asking(self.prompt.fill(query=query, passages="\n".join(lines)), used)
        return Asking(self.closed_prompt.fill(query=query), ()) if self.closed_book else None

    def _room(self, query: str) -> int:
        """Tokens left for passages; the number before each costs a few."""
        fixed = sum(tokens(message.text) for message in self.prompt.fill(query=query, passages="")) + OWN
        return self.context - self.max_tokens - fixed - 6 * self.passages

    def _nothing(self, query: str) -> Answer:
        return Answer(query, "", (), (), self.llm.identity)

    def _make_answer(self, query: str, asking: Asking, told: Completion) -> Answer:
        said = answer_of(told.text)
        model = told.model or self.llm.identity
        if not said:
            why = "the model ended" if told.finished else f"it was cut off after {self.max_tokens}: raise max_tokens"
            raise LLMFailed(f"{model} returned only its reasoning and no answer ({why})")
        text = tidy_answer(said, len(asking.hits))
        cited = [asking.hits[number - 1] for number in citation_numbers(text) if 1 <= number <= len(asking.hits)]
        ids = tuple(dict.fromkeys(hit.id for hit in cited))
        sources = tuple(dict.fromkeys(_cite(hit) for hit in cited))
        return Answer(query, text, ids, asking.hits, model, told.spent, told.finished, sources)


@dataclass(frozen=True, slots=True)
class Asking:
    messages: list[Message]
    hits: tuple[Hit, ...]
    """Those that are shown, in the order of their numbers."""


def tokens(text: str) -> int:
    """Tokens of a text, rather too many: four letters of a word are one, and so is every other sign."""
    return sum(map(_weight, _PIECE.findall(text)))


def cut(text: str, most: int) -> str:
    """The beginning of a text, so many tokens at the most, between words."""
    left = most
    for piece in _PIECE.finditer(text):
        left -= _weight(piece[0])
        if left < 0:
            return f"{text[: piece.start()].rstrip()} …"
    return text


def _weight(piece: str) -> int:
    return 0 if piece.isspace() else math.ceil(len(piece) / 4) if piece.isascii() else 2


def _level(sizes: Sequence[int], room: int) -> int:
    """The longest that passages may be so that all fit: short ones leave their room to the others."""
    for place, size in enumerate(sorted(sizes)):
        others = len(sizes) - place
        if size * others > room:
            return room // others
        room -= size
    return max(sizes)


def _excerpt(hit: Hit, level: int) -> str:
    """The passage of a long document and what stands around it, so many tokens at the most."""
    document, passage = hit.document, hit.passage
    above = heading(document, passage)
    room = level - tokens(above) - tokens(": … …")
    start, end = widen(document, passage, room, tokens)
    text = document.text[start:end] if start == 0 else f"… {document.text[start:end]}"
    return cut(_one_line(above, text), level)


def _cite(hit: Hit) -> Citation:
    """With the passage that was found, if it is what it says: a part of the document at that place."""
    passage, text = hit.passage, hit.document.text
    exact = 0 <= passage.start <= passage.end and text[passage.start : passage.end] == passage.text
    return Citation(hit.id, passage if exact else Passage(text, 0, len(text), ""))


def _one_line(*parts: str) -> str:
    joined = ": ".join(part for part in (" ".join(one.split()) for one in parts) if part)
    return _LIKE_A_MARK.sub(r"‹\1›", joined)
