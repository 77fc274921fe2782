"""The query alone: nothing is added, nothing is asked."""

from __future__ import annotations

from typing import ClassVar

from evokey.protocols import Look
from evokey.types import Expansion


class Query:
    name: ClassVar[str] = "query"
    search: ClassVar[str] = "blend"
    needs: ClassVar[str] = ""

    def __init__(self) -> None:
        self.identity = self.name

    def expand(self, query: str, look: Look) -> Expansion:
        return Expansion(query, (), self.name, self.search)
