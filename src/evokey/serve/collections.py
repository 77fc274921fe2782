"""Collections by name: memories, and layers beside a search. Each is opened when it is first asked for, and closed when
the service ends."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evokey import memory as memory_
from evokey.errors import InvalidInput, InvalidSettings, NotAMemory
from evokey.memory import Memory
from evokey.postgres.address import Address
from evokey.serve.layers import LayerCollection, open_layer, read_layers
from evokey.serve.options import Options
from evokey.settings import FILE, place

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
Collection = Memory | LayerCollection
ONLY = "default"
"""The name of the collection where one memory is served."""
ENCODERS = ("bm25", "wordllama")
"""What a collection may be made of by HTTP: nothing that runs foreign code, spends money or calls another host."""


class Collections:
    def __init__(self, options: Options) -> None:
        self._at, self._root = options.at, options.root
        self._file, self._layers = options.layers, read_layers(options.layers)
        self._open: dict[str, Collection] = {}
        self._mutex = threading.Lock()
        self._closed = False
        self._check_layers()
        if self._root is not None:
            self._root.mkdir(parents=True, exist_ok=True)
        elif ONLY not in self._layers and isinstance(self._at, Path) and not (place(self._at) / FILE).exists():
            raise NotAMemory(f"there is no memory at {self._at}; create one with: evokey init --at {self._at}")

    def _check_layers(self) -> None:
        """A layer has the name of a collection, and is a directory."""
        for name in self._layers:
            if not isinstance(self._folder(name), Path):
                raise InvalidSettings(f"{self._file}: [{name}] is the name of no collection in a directory")

    def names(self) -> list[str]:
        if self._root is None:
            return [ONLY]
        found = {one.parent.name for one in self._root.glob(f"*/{FILE}")} | set(self._layers)
        return sorted(name for name in found if NAME.fullmatch(name))

    def layers(self) -> list[str]:
        """Those of the names that are layers beside a search."""
        return sorted(self._layers)

    def get(self, name: str) -> Collection | None:
        """The collection of a name; None: there is none."""
        known = self._open.get(name)
        if known is not None:
            return known
        folder = self._folder(name)
        if folder is None:
            return None
        if name not in self._layers and isinstance(folder, Path) and not (place(folder) / FILE).exists():
            return None
        with self._mutex:
            if name not in self._open and not self._closed:
                self._open[name] = self._open_one(name, folder)
            return self._open.get(name)

    def _open_one(self, name: str, folder: Path | Address) -> Collection:
        if name not in self._layers:
            return memory_.open(folder)
        assert isinstance(folder, Path) and self._file is not None
        return open_layer(folder, self._layers[name], self._file)

    def create(self, name: str, settings: Mapping[str, Any]) -> Collection:
        if self._root is None:
            raise InvalidInput("this service has one memory; start it with --root DIR to have several")
        folder = self._folder(name)
        if not isinstance(folder, Path):
            raise InvalidInput(
                f"a collection's name is a-z, 0-9, '-' and '_', at most 63 characters; not {name[:80]!r}"
            )
        if folder.exists() or name in self._layers:
            raise InvalidInput(f"there is a collection {name!r}")
        with self._mutex:
            self._open[name] = memory_.open(folder, **settings)
        return self._open[name]

    def open_ones(self) -> dict[str, Collection]:
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
