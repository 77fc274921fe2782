"""JSON back into the values of evokey.types, by their annotations."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


def read(kind: type[T], value: Any) -> T:
    """A value of this type. Fields that the type does not have are left out, those that are missing keep defaults."""
    return cast(T, _read(kind, value))


def _read(kind: Any, value: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if value is None:
        return None
    if origin in (Union, types.UnionType):
        return _read(next(one for one in inner if one is not type(None)), value)
    if is_dataclass(kind):
        hints = _hints(cast(Any, kind))
        known = {one.name: value[one.name] for one in fields(kind) if one.init and one.name in value}
        return kind(**{name: _read(hints[name], said) for name, said in known.items()})  # type: ignore[operator]
    if origin in (tuple, Sequence, list, frozenset):
        return (frozenset if origin is frozenset else tuple)(_read(inner[0], one) for one in value)
    if origin in (dict, Mapping):
        return {name: _read(inner[1], one) for name, one in value.items()}
    return value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
