"""The document side of an encoder: what was paid for is on disk before the document is, and until its keys are.

Keys of documents go by numbers, and a document has one only when it is committed. So what an encoder made of a text
waits in a file by the hash of the text, and is erased when the keys are saved. A crash, an interrupt or a refused batch
costs at most the requests that were under way. Where encoding costs nothing, there is no file.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from evokey.encoders.cached import Cached, hash_texts
from evokey.encoders.pooled import Pooled
from evokey.protocols import Encoder

log = logging.getLogger(__name__)
FILE = "staged.sqlite"


class Staged:
    def __init__(self, encoder: Encoder, folder: Path | None) -> None:
        self.pooled, self._waiting = Pooled(encoder), set[bytes]()
        wanted = encoder.cost != "nothing" and not isinstance(encoder, Cached)
        self._path = folder / FILE if wanted and folder is not None else None

    def documents(self, texts: Sequence[str]) -> Any:
        if self._path is not None:
            self._waiting.update(map(hash_texts, texts))
        return self._encoder.documents(texts)

    def clear(self) -> None:
        """Erase what has waited here: its keys are saved."""
        if self._waiting and isinstance(self._encoder, Cached):
            try:
                self._encoder.erase(sorted(self._waiting))
            except sqlite3.OperationalError as error:
                log.warning("%s keeps vectors that are saved elsewhere (%s)", self._path, str(error))
        self._waiting.clear()

    @cached_property
    def _encoder(self) -> Any:
        """Made at the first document: a process that only reads has no file of this kind."""
        inner: Any = self.pooled
        return inner if self._path is None else Cached.around(inner, self._path, in_batches=True)
