"""What a reader makes of a file, before it is a document: text as Markdown, a title, metadata, and named sections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from evokey.types import Section


@dataclass(frozen=True, slots=True)
class Content:
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What the file says of itself: its front matter, author, language, number of pages."""
    sections: tuple[Section, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Content:
        return cls(**{**told, "sections": tuple(Section(**one) for one in told["sections"])})
