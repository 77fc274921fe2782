"""Collections: memories by name. Each is opened when it is first asked for, and closed when the service ends."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evokey import memory as memory_
from evokey.errors import InvalidInput, NotAMemory
from evokey.memory import Memory
from evokey.postgres.address import Address
from evokey.serve.options import Options
from evokey.settings import FILE, place

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
ONLY = "default"
"""The name of the collection where one memory is served."""
ENCODERS = ("bm25", "wordllama")
"""What a collection may be made of by HTTP: nothing that runs foreign code, spends money or calls another host."""


class Collections:
    def __init__(self, options: Options) -> None:
        self._at, self._root = options.at, options.root
        self._open: dict[str, Memory] = {}
        self._mutex = threading.Lock()
        self._closed = False
        if self._root is not None:
            self._root.mkdir(parents=True, exist_ok=True)
        elif isinstance(self._at, Path) and not (place(self._at) / FILE).exists():
            raise NotAMemory(f"there is no memory at {self._at}; create one with: evokey init --at {self._at}")

    def names(self) -> list[str]:
        if self._root is None:
            return [ONLY]
        found = (one.parent.name for one in self._root.glob(f"*/{FILE}"))
        return sorted(name for name in found if NAME.fullmatch(name))

    def get(self, name: str) -> Memory | None:
        """The memory of a name; None: there is none."""
        known = self._open.get(name)
        if known is not None:
            return known
        folder = self._folder(name)
        if folder is None or (isinstance(folder, Path) and not (place(folder) / FILE).exists()):
            return None
        with self._mutex:
            if name not in self._open and not self._closed:
                self._open[name] = memory_.open(folder)
            return self._open.get(name)

    def create(self, name: str, settings: Mapping[str, Any]) -> Memory:
        if self._root is None:
            raise InvalidInput("this service has one memory; start it with --root DIR to have several")
        folder = self._folder(name)
        if not isinstance(folder, Path):
            raise InvalidInput(
                f"a collection's name is a-z, 0-9, '-' and '_', at most 63 characters; not {name[:80]!r}"
            )
        if folder.exists():
            raise InvalidInput(f"there is a collection {name!r}")
        with self._mutex:
            self._open[name] = memory_.open(folder, **settings)
        return self._open[name]

    def opened(self) -> dict[str, Memory]:
        return dict(self._open)

    def close(self) -> None:
        with self._mutex:
            self._closed = True
            for memory in self._open.values():
                memory.close()
            self._open = {}

    def _folder(self, name: str) -> Path | Address | None:
        """Where a memory of this name lies; None for what is no name."""
        if self._root is None:
            return self._at if name == ONLY else None
        return self._root / name if NAME.fullmatch(name) else None
