"""A memory whose vectors come from the embedding of a framework."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evokey.encoders.functions import Embed, Functions, same_vectors
from evokey.errors import EncoderMismatch
from evokey.memory import Memory, open
from evokey.settings.toml import FILE, read


def open_with(path: str | Path, documents: Embed, queries: Embed, name: str, **settings: Any) -> Memory:
    """Open the memory in a directory, or make it: its vectors are those of two functions. Each call embeds two texts,
    to see that the memory was made with the same vectors."""
    encoder = Functions(documents, queries, name)
    stored = _identity(Path(path))
    if stored is not None:
        if not same_vectors(stored, encoder.identity):
            raise EncoderMismatch(
                f"{path} was made with vectors of {_name(stored)}; those of {_name(encoder.identity)} differ. Open it "
                f"with the embedding that it was made with, or make a new memory in another directory"
            )
        encoder.identity = stored
    return open(path, encoder=encoder, **settings)


def _identity(folder: Path) -> str | None:
    """Of the encoder that a memory was made with, where that was an object."""
    if not (folder / FILE).exists():
        return None
    described: Mapping[str, Any] = read(folder / FILE).retrievers[0].encoder
    return str(described.get("identity") or described["name"])


def _name(identity: str) -> str:
    return identity.partition("/unit/probe=")[0].removeprefix("functions/")
