"""Opens a layer: in a directory, or in a database that several processes share."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evokey import checks, registry
from evokey import settings as settings_
from evokey.errors import InvalidInput, storing
from evokey.layer.engine import Allowed, Engine, Search
from evokey.layer.layer import Layer
from evokey.postgres.address import Address, find_address
from evokey.registry import Described


def beside(
    search: Search | None,
    at: str | Path | Address,
    *,
    name: str | None = None,
    allowed: Allowed | None = None,
    encoder: Described | Sequence[Described] | None = None,
    shared_feedback: bool | None = None,
    allow: Sequence[str] = (),
    now: Callable[[], float] = time.time,
) -> Layer:
    """Open the layer in a directory, or the one with a name in a PostgreSQL database, by its URL; or make it on first
    use. It learns beside `search`, whatever that is.

    `search(query, k, **filters)` returns ids and scores, best first (docs/beside.md has the shapes). `allowed(ids,
    **filters)` returns those of the ids that exist and that the caller may see: it is asked before an id is added that
    the search itself did not return. Without it, nothing is added for a caller who passes filters. The encoders compare
    questions (bm25 and wordllama, unless others are named when the layer is made). Without a search function (None) all
    but searching works. `shared_feedback` and `allow` are as in evokey.open.
    """
    if search is not None and not callable(search):
        raise InvalidInput(f"search is a function of a query and k, not {checks.shown(search)}")
    if allowed is not None and not callable(allowed):
        raise InvalidInput(f"allowed is a function of a list of ids, not {checks.shown(allowed)}")
    given = {"encoder": encoder, "shared_feedback": shared_feedback}
    said = {name: value for name, value in given.items() if value is not None}
    said["beside"] = True
    address, engine = find_address(at, name), Engine(search, allowed)
    if address is not None:
        return _open_shared(address, engine, said, allow, now)
    assert not isinstance(at, Address)
    folder, settings = settings_.resolve(Path(at), said, allow)
    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    layer = Layer(folder, settings, engine, now=now)
    try:
        with storing(folder):
            settings_.write_new(folder, settings)
    except BaseException:
        layer.close()
        raise
    return layer


def _open_shared(
    address: Address, engine: Engine, said: Mapping[str, Any], allow: Sequence[str], now: Callable[[], float]
) -> Layer:
    database = registry.load("ledger", "postgres")(address)
    try:
        folder, settings = settings_.resolve_shared(database, said, allow)
        return Layer(folder, settings, engine, now=now, database=database)
    except BaseException:
        database.close()
        raise
