"""Prompts are files. A query, a passage or a task is filled in as data, in one pass: nothing in it is read again.

Above a line of --- stands what the model is told (system), below it what it is given (user); without such a line, all
is said by the user.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from evokey.errors import InvalidSettings
from evokey.types import Message, digest

_PLACE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_RULE = re.compile(r"^---\s*$", re.MULTILINE)
_TAG = re.compile(r"<\s*+/?\s*+([a-z][\w-]*)", re.IGNORECASE)
_TAGS = frozenset(["query", "wording", "passage", "passages", "expansion", "response", "think"])
_TEMPLATE = r"\|[^<>|]{1,40}\||/?s|[a-z]+_of_[a-z]+|bos|eos"
"""Marks by which models tell turns apart: <|im_end|>, <end_of_turn>, </s>. A local model would obey them."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text with places such as {{query}}."""

    text: str

    @property
    def hash(self) -> str:
        return digest(self.text)

    @property
    def places(self) -> tuple[str, ...]:
        """What is filled in, each once."""
        return tuple(dict.fromkeys(_PLACE.findall(self.text)))

    @property
    def words(self) -> str:
        """What the prompt itself says: a model that repeats it has not answered."""
        return _PLACE.sub(" ", self.text)

    def fill(self, **values: str) -> list[Message]:
        """The messages to send. Data cannot close the tag it stands in, open another place, or begin another turn."""
        tags = "|".join(sorted(map(re.escape, _TAGS | set(_TAG.findall(self.text)))))
        marks = re.compile(rf"<(\s*+/?\s*+(?:{tags})\b[^<>]{{0,40}}|{_TEMPLATE})>", re.IGNORECASE)
        quoted = {name: marks.sub(r"‹\1›", value) for name, value in values.items()}
        roles = ("system", "user") if _RULE.search(self.text) else ("user",)
        parts = _RULE.split(self.text, maxsplit=1)
        filled = [_PLACE.sub(lambda place: quoted.get(place[1], place[0]), part).strip() for part in parts]
        return [Message(role, text) for role, text in zip(roles, filled, strict=True) if text]


def load_packaged(name: str, room: str = "expanders") -> Prompt:
    """A prompt that comes with evokey, out of one of its rooms."""
    return Prompt((files(f"evokey.{room}") / "prompts" / f"{name}.md").read_text("utf-8"))


def is_text(given: str | Path) -> bool:
    """Whether a prompt of the user's own is given as its text, and not as a file: it has a place, or several lines."""
    return isinstance(given, str) and ("{{" in given or "\n" in given)


def choose(given: Prompt | str | Path | None, name: str, room: str = "expanders") -> Prompt:
    """The packaged prompt, or the user's own, as a file or a text, with every place that the packaged one has."""
    packed = load_packaged(name, room)
    if given is None:
        return packed
    prompt = given if isinstance(given, Prompt) else Prompt(str(given) if is_text(given) else _read(Path(given)))
    missing = [place for place in packed.places if place not in prompt.places]
    if missing:
        source = "the prompt" if isinstance(given, Prompt) or is_text(given) else f"the prompt {given}"
        raise InvalidSettings(
            f"{name}: {source} has no place for {' and '.join(f'{{{{{one}}}}}' for one in missing)}; "
            f"write it where {name} is to fill it in"
        )
    return prompt


def _read(path: Path) -> str:
    try:
        return path.expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings(
            f"the prompt {path} cannot be read as a UTF-8 file ({error}); "
            f"a prompt is a file, or a text with {{{{query}}}}"
        ) from error
