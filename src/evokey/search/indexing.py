"""Documents → base keys, piece by piece: progress can be followed, and a document that an encoder refuses is found.

An encoder that refuses a piece is asked for its halves, and so on down to the document. If it refuses the first few
documents one by one and takes none, the fault is not theirs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evokey.errors import DocumentRefused, EvokeyError, ServiceFailed
from evokey.ledger.documents import Documents, Entry
from evokey.protocols import Corpus, Cost
from evokey.scoring.block import Keys
from evokey.search.retriever import Retriever
from evokey.types import Numbers

log = logging.getLogger("evokey")
Progress = Callable[[float], None]
"""Is told which share of the work is done."""
PIECE: Mapping[Cost, int] = {"nothing": 1024, "time": 256, "money": 1024}
"""Documents encoded at a time."""
LOGGED_EVERY = 10.0
"""Seconds between two lines in the log."""
DOUBTED = 10
"""Documents refused with none taken, after which the encoder is at fault."""
NAMED = 5
"""Documents that a message names."""


@dataclass
class Watch:
    """How far the keys of so many documents, by so many retrievers, are: for a hook, and for the log."""

    documents: int
    retrievers: int
    hook: Progress | None = None
    now: Callable[[], float] = time.monotonic
    _done: int = field(default=0, init=False)
    _logged: float = field(init=False)

    def __post_init__(self) -> None:
        self._logged = self.now()

    def advance(self, retriever: Retriever, documents: int) -> None:
        self._done += documents
        share = self._done / max(self.documents * self.retrievers, 1)
        if self.hook is not None:
            self.hook(min(share, 1.0))
        if self.now() - self._logged >= LOGGED_EVERY:
            self._logged = self.now()
            log.info("encoding %d documents, now by %s: %.0f %% done", self.documents, retriever.name, 100 * share)


@dataclass
class Encoding:
    """The keys of some documents by one retriever, as far as its encoder makes them."""

    retriever: Retriever
    corpus: Corpus
    keys: list[Keys] = field(default_factory=list)
    refused: dict[str, Exception] = field(default_factory=dict)
    """Documents (by id) of which the encoder makes no key, and what it says."""
    failure: EvokeyError | None = None
    """Why nothing was asked any more."""

    def take(self, entries: Sequence[Entry]) -> None:
        if self.failure is not None:
            return
        try:
            self.keys.append(self.retriever.keys(entries, self.corpus))
        except EvokeyError as error:
            if isinstance(error, ServiceFailed) and error.refused:
                self._narrow(entries, error)
            else:
                self.failure = error
        except Exception as error:  # noqa: BLE001 - an encoder may be anybody's, and raise anything
            self._narrow(entries, error)

    def _narrow(self, entries: Sequence[Entry], error: Exception) -> None:
        if len(entries) > 1:
            middle = len(entries) // 2
            self.take(entries[:middle])
            self.take(entries[middle:])
            return
        self.refused[entries[0].document.id] = error
        if not self.keys and len(self.refused) >= DOUBTED:
            self.failure = ServiceFailed(
                f"encoder {self.retriever.name} refused every document it was given, the first with: "
                f"{reason(next(iter(self.refused.values())))}. Check its options in evokey.toml."
            )


def attempt(retriever: Retriever, documents: Documents, numbers: Numbers, corpus: Corpus, watch: Watch) -> Encoding:
    """Encode what can be encoded of documents that are in the ledger."""
    size = PIECE[retriever.cost]
    pieces = (list(documents.entries(numbers[start : start + size].tolist())) for start in range(0, len(numbers), size))
    return _encoded(Encoding(retriever, corpus), pieces, watch)


def encode(retriever: Retriever, entries: Sequence[Entry], corpus: Corpus, watch: Watch) -> list[Keys]:
    """Encode all, or raise: a refused document is named."""
    size = PIECE[retriever.cost]
    pieces = (entries[start : start + size] for start in range(0, len(entries), size))
    encoding = _encoded(Encoding(retriever, corpus), pieces, watch)
    if encoding.failure is not None:
        raise encoding.failure
    if encoding.refused:
        raise DocumentRefused(
            f"encoder {retriever.name} makes no key of {named(list(encoding.refused))}: "
            f"{reason(next(iter(encoding.refused.values())))}. None of these {len(entries)} documents was stored: "
            f"leave these out, or change their text. The others are not encoded again."
        ) from next(iter(encoding.refused.values()))
    return encoding.keys


def _encoded(encoding: Encoding, pieces: Iterable[Sequence[Entry]], watch: Watch) -> Encoding:
    for piece in pieces:
        encoding.take(piece)
        if encoding.failure is not None:
            break
        watch.advance(encoding.retriever, len(piece))
    return encoding


def named(ids: Sequence[str]) -> str:
    """Documents, in a message."""
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return f"document{'s' * (len(ids) != 1)} {', '.join(map(repr, ids[:NAMED]))}{more}"


def reason(error: Exception) -> str:
    said = str(error).rstrip(".")
    return said if isinstance(error, EvokeyError) else f"{type(error).__name__}: {said}"
