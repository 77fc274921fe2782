"""Encoders as memories of an earlier format have them: what is made otherwise now had no name then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evokey.registry import Named, name_and_options

UNSAID: Mapping[int, Mapping[str, Mapping[str, Any]]] = {1: {"bm25": {"analyser": 1}}}
"""Format of a memory's settings → encoder → the options that it has there without saying so."""


def options_of(encoder: Named, format: int) -> dict[str, Any]:
    """The options of an encoder, and of one inside it (cached), in a memory of this format."""
    name, options = name_and_options(encoder)
    if isinstance(inner := options.get("encoder"), str | Mapping):
        options = {**options, "encoder": {"name": name_and_options(inner)[0], **options_of(inner, format)}}
    return {**UNSAID.get(format, {}).get(name, {}), **options}
