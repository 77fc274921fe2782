"""Components on a command line: `paper`, `paper:x=2,capacity=8`, `mymodule:Mine`, `mymodule:Mine:x=2`.

Values are read as JSON where they are JSON (2, 0.5, true, [1, 2]), and as texts elsewhere. What somebody types for a
benchmark of their own is their own word, so a class by its place is built without further questions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from evokey import registry
from evokey.registry import Named

_OPTIONS = re.compile(r":(?=[A-Za-z_]\w*=)")
_NEXT_OPTION = re.compile(r",(?=[A-Za-z_]\w*=)")
_NEXT_NAME = re.compile(r",(?![A-Za-z_]\w*=)")


def split(said: Iterable[str]) -> list[str]:
    """Names separated by commas, each once; a comma before option=value belongs to the name before."""
    return list(dict.fromkeys(part.strip() for one in said for part in _NEXT_NAME.split(one) if part.strip()))


def parse(said: str) -> Named:
    """A name, or a mapping with name and options."""
    name, *rest = _OPTIONS.split(said, maxsplit=1)
    options = dict(one.split("=", 1) for part in rest for one in _NEXT_OPTION.split(part))
    return {"name": name, **{option: _value(text) for option, text in options.items()}} if options else name


def base(said: str) -> str:
    """The name without its options."""
    return _OPTIONS.split(said, maxsplit=1)[0]


def encoder_kind(said: str) -> str:
    return registry.encoder_kind(*registry.name_and_options(parse(said)))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
