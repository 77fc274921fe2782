"""What a service is told when it starts."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from evokey.errors import InvalidSettings
from evokey.postgres.address import Address

CANDIDATE = "candidate"
"""The name of the proposal that is not published yet."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes and times of requests."""

    body: int = 1_000_000
    """Bytes of a request."""
    documents: int = 64_000_000
    """Bytes of a request that adds documents."""
    reading: float = 30.0
    """Seconds in which a request must have arrived."""
    answering: float = 60.0
    """Seconds in which it is answered; one that calls a language model may take ten times as long."""
    hits: int = 1_000
    """Hits of one search, and entries of one page."""


@dataclass(frozen=True, slots=True)
class Learning:
    """When the service evolves by itself. Nothing is set: never."""

    lessons: int | None = None
    """After so many new lessons."""
    minutes: float | None = None
    """Every so many minutes, where there are new lessons."""
    saturation: bool = False
    """When new lessons bring little that the memory does not find already (the paper's rule)."""
    traffic: bool = False
    """Also learn from the queries that are searched: needs a verifier that needs no person."""
    rollback: bool = False
    """Roll back an epoch by itself after which a watched figure falls."""

    @property
    def on(self) -> bool:
        return self.lessons is not None or self.minutes is not None or self.saturation


@dataclass(frozen=True, slots=True)
class Options:
    at: Path | Address | None = None
    """The memory that is served, as the collection "default"."""
    root: Path | None = None
    """A folder whose memories are the collections."""
    files: Path | None = None
    """Folder of the service's own file, with its keys; the memory's, unless that is in a database."""
    layers: Path | None = None
    """A file that names the search of each collection that is a layer (layers.py)."""
    host: str = "127.0.0.1"
    port: int = 8321
    auth: bool = True
    keep_shown: bool = True
    """Whether what was shown is kept for a week, so that it can be rated."""
    shadow: int | str | None = None
    """An epoch, or "candidate", that answers beside the published one, and is only recorded."""
    tracing: bool = False
    workers: int = 1
    limits: Limits = field(default_factory=Limits)
    learning: Learning = field(default_factory=Learning)

    def __post_init__(self) -> None:
        if (self.at is None) == (self.root is None):
            raise InvalidSettings("a service has one memory (--at DIR) or a folder of memories (--root DIR)")
        if self.files is None and isinstance(self.at, Address):
            raise InvalidSettings("a memory in a database needs a folder for the API keys: --files DIR")
        if self.workers > 1 and not isinstance(self.at, Address):
            raise InvalidSettings(
                "several workers need a memory in a database (--at postgresql://…): one process writes to a directory"
            )
        if not self.auth and not is_loopback(self.host):
            raise InvalidSettings(
                f"--no-auth lets everybody who reaches {self.host} read, teach and forget: it is allowed on this "
                f"machine alone (--host 127.0.0.1). Make a key with: evokey api-keys create NAME"
            )

    @property
    def folder(self) -> Path:
        """Where the service keeps its own file."""
        folder = self.files or self.root or self.at
        assert isinstance(folder, Path)
        return folder


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
