"""A property that is worked out once for each instance.

Before Python 3.12 that of functools takes one lock for all instances of a class while it works one out, so threads that
search would wait for each other. Without the lock, two threads may both work out the value of one instance.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 12):
    from functools import cached_property
else:
    from collections.abc import Callable
    from typing import Any, Generic, Self, TypeVar, overload

    Value = TypeVar("Value")

    class cached_property(Generic[Value]):  # noqa: N801 - as in functools
        def __init__(self, make: Callable[[Any], Value]) -> None:
            self._make, self.__doc__ = make, make.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type | None = None) -> Value: ...
        def __get__(self, instance: object | None, owner: type | None = None) -> Self | Value:
            if instance is None:
                return self
            found = instance.__dict__[self._name] = self._make(instance)
            return found


__all__ = ["cached_property"]
