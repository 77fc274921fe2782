"""Settings → a verifier, parts inside parts: {"name": "unified", "retrieval": "labels", "generation": {…}}."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from evokey import registry
from evokey.errors import InvalidSettings
from evokey.llm.build import build as build_llm
from evokey.protocols import LLM, Verifier

Described = Verifier | str | Mapping[str, Any]
"""A verifier, its name, or its name with options."""
INNER = ("llm", "reranker", "retrieval", "generation")


def build(described: Described, llm: LLM | None = None) -> Verifier:
    """llm: the memory's own model, for verifiers that ask one and name none."""
    if not isinstance(described, str | Mapping):
        return described
    name, options = registry.named(described)
    kind = registry.load("verifier", name)
    taken = inspect.signature(kind).parameters
    if "llm" in taken and "llm" not in options:
        if llm is None:
            raise InvalidSettings(f"verifier {name!r} asks a language model, and none is set")
        options["llm"] = llm
    try:
        inspect.signature(kind).bind(**options)
    except TypeError as error:
        raise InvalidSettings(f"verifier {name!r}: {error}; it takes {', '.join(taken) or 'nothing'}") from error
    made: Verifier = kind(**{option: _inner(option, value, llm) for option, value in options.items()})
    return made


def _inner(option: str, value: Any, llm: LLM | None) -> Any:
    if option not in INNER or not isinstance(value, str | Mapping):
        return value
    if option == "llm":
        return build_llm(value)
    return registry.made("reranker", *registry.named(value)) if option == "reranker" else build(value, llm)
