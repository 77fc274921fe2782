"""Plain text, in any encoding."""

from __future__ import annotations

from pathlib import Path

from evokey.ingest.content import Content
from evokey.ingest.encoding import decode


def read(data: bytes, path: Path) -> Content:
    text, encoding = decode(data)
    return Content(text, metadata=name_encoding(encoding))


def name_encoding(encoding: str) -> dict[str, str]:
    """For the metadata, where it is another than UTF-8."""
    return {} if encoding.startswith("utf-8") else {"encoding": encoding}
