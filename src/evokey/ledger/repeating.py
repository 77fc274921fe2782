"""Verbs that go on after a lost connection: what was not committed is done again, as long as patience lasts.

A verb whose transaction was committed is not repeated: it would teach twice. Unless it may be done twice, such as
evolve: then what was left undone is done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from evokey.errors import ConnectionLost
from evokey.ledger.ledger import Ledger

PATIENCE = 30.0
"""Seconds after which a database that does not come back is an error."""
PAUSE = 0.2
Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class HasLedger(Protocol):
    ledger: Ledger


Owner = TypeVar("Owner", bound=HasLedger)
Verb = Callable[Concatenate[Owner, Given], Answer]


def repeated(verb: Verb[Owner, Given, Answer]) -> Verb[Owner, Given, Answer]:
    """A verb that is done again if nothing of it was committed."""
    found: Verb[Owner, Given, Answer] = _repeat(verb, twice=False)
    return found


def idempotent(verb: Verb[Owner, Given, Answer]) -> Verb[Owner, Given, Answer]:
    """A verb that may be done twice."""
    found: Verb[Owner, Given, Answer] = _repeat(verb, twice=True)
    return found


def _repeat(verb: Any, *, twice: bool) -> Any:
    @wraps(verb)
    def again(owner: Any, *args: Any, **named: Any) -> Any:
        ledger = owner.ledger
        if not ledger.shared or ledger.in_write:  # inside of another verb, that one is repeated
            return verb(owner, *args, **named)
        args = tuple(list(one) if isinstance(one, Iterator) else one for one in args)  # it can be read but once
        until = time.monotonic() + PATIENCE
        while True:
            before = ledger.own_commits
            try:
                return verb(owner, *args, **named)
            except ConnectionLost:
                if time.monotonic() >= until or (ledger.own_commits != before and not twice):
                    raise
            time.sleep(PAUSE)

    return again
