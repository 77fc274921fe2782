"""Your own function, by its path "module:function" or itself: attempt → bool, a score, a Ruling, or None to abstain."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from numbers import Real
from operator import attrgetter
from typing import Any, ClassVar, Literal

import numpy as np

from evokey.errors import InvalidSettings
from evokey.types import Attempt, Ruling
from evokey.verifiers.rulings import abstain, check, credit_citations, rule


class Custom:
    name: ClassVar[str] = "custom"
    looks_at: ClassVar[Literal["both"]] = "both"

    def __init__(self, function: str | Callable[[Attempt], Any], threshold: float = 0.5) -> None:
        check(self.name, threshold=threshold)
        self._function = _found(function) if isinstance(function, str) else function
        if not callable(self._function):
            raise InvalidSettings(f"verifier 'custom': {function!r} cannot be called")
        path = function if isinstance(function, str) else _path(function)
        self.threshold = threshold
        self.identity = f"custom/{path}/{threshold:g}"

    def verify(self, attempt: Attempt) -> Ruling:
        """A function that raises has not told: one bad case must not end the learning from all others."""
        try:
            told = self._function(attempt)
        except Exception as error:  # noqa: BLE001 - whatever a stranger's function raises is the reason
            return abstain(f"{self.identity} raised {type(error).__name__}: {error}")
        if told is None:
            return abstain(f"{self.identity} abstains")
        if isinstance(told, Ruling):
            return told
        if isinstance(told, bool | np.bool_):
            return credit_citations(Ruling(bool(told), float(told), reason=f"{self.identity} says so"), attempt)
        if isinstance(told, Real):
            return credit_citations(rule(float(told), self.threshold, "the score"), attempt)
        return abstain(f"{self.identity} returned {type(told).__name__}, not a bool, a number, a Ruling or None")


def _found(path: str) -> Callable[[Attempt], Any]:
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise InvalidSettings(f"verifier 'custom' needs function = 'module:function', not {path!r}")
    try:
        found: Callable[[Attempt], Any] = attrgetter(name)(import_module(module))
    except (ImportError, AttributeError) as error:
        raise InvalidSettings(f"verifier 'custom' cannot load {path!r}: {error}") from error
    return found


def _path(function: Callable[[Attempt], Any]) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"
