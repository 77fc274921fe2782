"""What others see of the database that a shared memory is in: where it is, and the settings that are kept there."""

from __future__ import annotations

from typing import Any, Protocol

from evokey.ledger.database import Database
from evokey.postgres.address import Address


class Shared(Database, Protocol):
    """A database for many processes, which has no folder of its own."""

    address: Address
    id: str
    """Of the ledger: no other has it."""
    read_only: bool
    encoded: Any
    """Where taught texts are kept encoded, for all machines (encoders/cached.py)."""

    @property
    def settings(self) -> str | None:
        """The text of evokey.toml; None: of a memory that is about to be made."""

    def keep_settings(self, toml: str, *, replace: bool = False) -> str:
        """Those of a new memory, unless another process was first; or others in their place. Returns what is kept."""
