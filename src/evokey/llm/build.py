"""Settings → a language model: {"name": "cached", "at": "answers.sqlite", "llm": {"name": "openai", …}}."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from evokey import registry
from evokey.errors import InvalidSettings
from evokey.protocols import LLM

Described = LLM | str | Mapping[str, Any]
"""A model, its name, or its name with options."""


def build(described: Described) -> LLM:
    if not isinstance(described, str | Mapping):
        return described
    options = {"name": described} if isinstance(described, str) else dict(described)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise InvalidSettings(f"a language model needs its name: {{'name': 'openai', …}}, not {sorted(options)}")
    made = registry.load("llm", name)
    try:
        inspect.signature(made).bind(**options)
    except TypeError as error:
        known = ", ".join(inspect.signature(made).parameters)
        raise InvalidSettings(f"llm {name!r}: {error}; it takes {known}") from error
    llm: LLM = made(**options)
    return llm
