"""Where a shared memory is: a database by its URL, and the name of the memory in it. What is shown has no password."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from evokey.errors import InvalidSettings

SCHEMES = ("postgresql://", "postgres://")
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")
"""Of a memory: it becomes a part of a schema's name, of which PostgreSQL keeps 63 bytes."""


@dataclass(frozen=True, slots=True)
class Address:
    url: str = field(repr=False)
    name: str
    unfinished: bool = False
    """Whether it is a copy that is being made: it gets its own schema in the end."""

    @property
    def schema(self) -> str:
        """One for each memory: its tables are dropped, backed up and granted together, and no query mixes two."""
        return f"evokey_{self.name}{'~' if self.unfinished else ''}"

    @property
    def shown(self) -> Mapping[str, str]:
        """The parts of the URL that may be told to anybody."""
        try:
            parts = urlsplit(self.url)
            host, port = parts.hostname or "", str(parts.port or "")
            more = {key: value for key, value in parse_qsl(parts.query) if key in ("host", "port", "dbname", "service")}
        except ValueError:
            return {}
        found = {"host": host, "port": port, "dbname": unquote(parts.path.removeprefix("/"))}
        return {key: value for key, value in {**found, **more}.items() if value}

    def __str__(self) -> str:
        told = self.shown
        where = told.get("service") or told.get("host", "")
        port = f":{told['port']}" if "port" in told else ""
        return f"postgresql://{where}{port}/{told.get('dbname', '')} (memory {self.name!r})"


def find_address(place: str | Path | Address, name: str | None) -> Address | None:
    """The memory in a database that a place means; None: it is a directory."""
    if isinstance(place, Address):
        return place
    if isinstance(place, str) and place.startswith(SCHEMES):
        return address_of(place, name)
    if name is not None:
        raise InvalidSettings(f"a name is for a memory in a database (postgresql://…); {place} is a directory")
    return None


def address_of(url: str, name: str | None) -> Address:
    """The memory of this name in the database; errors do not repeat the URL, which may hold a password."""
    if name is None:
        raise InvalidSettings(
            "a database holds several memories, and this one was given without its name: evokey.open(url, name='kb'), "
            "or on the command line --name kb"
        )
    if not NAME.fullmatch(name):
        raise InvalidSettings(
            f"the name of a memory in a database is made of small letters, digits, - and _, at most 48 of them, "
            f"not {name[:60]!r}"
        )
    return Address(url, name)


def has_password(url: str) -> bool:
    """Whether a URL says what must not be written down."""
    try:
        parts = urlsplit(url)
        return bool(parts.password) or any(
            key in ("password", "passfile", "sslpassword") for key, _ in parse_qsl(parts.query)
        )
    except ValueError:
        return True
