"""Every error evokey raises on purpose. Each message names the culprit, the rule and the way out.

EvokeyError
├── InvalidInput            a value that cannot be taken: nothing was changed
│   ├── InvalidDocument
│   │   └── DocumentRefused    a document of which the encoder makes no key
│   ├── InvalidQuery
│   ├── InvalidVector
│   ├── InvalidFilter
│   └── InvalidResults      what a search function that is not ours returned
├── UnknownDocument         an id that is not in this memory
│   └── UnknownPassage      a document that is, without the passage that was named
├── UnknownResult           a query_id of which nothing is kept
├── InvalidSettings         settings that make no memory
│   ├── UnknownComponent    an encoder, store, … that does not exist or is not installed
│   └── NotAllowed          settings in a directory that reach outside it without the user's word
├── NotAMemory              a path that holds something else
│   └── MissingLedger       keys without the ledger they were made from
├── DamagedLedger           a ledger that cannot be read as it was written
├── StorageFailed           a disk that is full, read-only or broken: nothing was changed
│   ├── ConnectionLost      a database that does not answer, after its retries: nothing was changed
│   └── CommitUnknown       a database that went away while it committed: look before trying again
├── MigrationFailed         a copy of a memory that is not like its source: it was not put in place
├── NewerFormat             a memory written by a newer evokey
├── EncoderMismatch         keys made by one encoder, settings that name another
├── DamagedRevision         weights of a tuned encoder that cannot be read
├── ServiceFailed           a service or model that was asked did not answer, after its retries
│   ├── StoreFailed         an engine that keeps keys does not answer; documents and lessons are safe in the ledger
│   ├── LLMFailed
│   └── BudgetSpent         a call that was not made, because it would pass the budget
├── ExpansionFailed         an answer of which no expansion can be made
├── MemoryBusy              another process is writing
└── MemoryClosed
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class EvokeyError(Exception):
    """Base of all errors raised on purpose."""


class InvalidInput(EvokeyError, ValueError):
    pass


class InvalidDocument(InvalidInput):
    pass


class DocumentRefused(InvalidDocument):
    pass


class InvalidQuery(InvalidInput):
    pass


class InvalidVector(InvalidInput):
    pass


class InvalidFilter(InvalidInput):
    pass


class InvalidResults(InvalidInput):
    pass


class UnknownDocument(EvokeyError, LookupError):
    pass


class UnknownPassage(UnknownDocument):
    pass


class UnknownResult(EvokeyError, LookupError):
    pass


class InvalidSettings(EvokeyError, ValueError):
    pass


class UnknownComponent(InvalidSettings):
    pass


class NotAllowed(InvalidSettings):
    pass


class NotAMemory(EvokeyError):
    pass


class MissingLedger(NotAMemory):
    pass


class DamagedLedger(EvokeyError):
    pass


class StorageFailed(EvokeyError, OSError):
    pass


class ConnectionLost(StorageFailed):
    pass


class CommitUnknown(StorageFailed):
    pass


@contextmanager
def storing(place: Path) -> Iterator[None]:
    """What the operating system refuses, as an error of ours."""
    try:
        yield
    except EvokeyError:
        raise
    except OSError as error:
        raise StorageFailed(
            f"{place} cannot be written ({error}). Nothing was changed; free space on the disk, or mend what refuses, "
            f"and try again"
        ) from error


class MigrationFailed(EvokeyError):
    pass


class NewerFormat(EvokeyError):
    pass


class DamagedRevision(EvokeyError):
    pass


class EncoderMismatch(EvokeyError):
    pass


class ServiceFailed(EvokeyError):
    refused = False
    """Whether the service is well and will not take what it was sent: asked with something else, it may answer."""


class StoreFailed(ServiceFailed):
    pass


class LLMFailed(ServiceFailed):
    pass


class BudgetSpent(ServiceFailed):
    pass


class ExpansionFailed(EvokeyError):
    pass


class MemoryBusy(EvokeyError):
    pass


class MemoryClosed(EvokeyError):
    pass
