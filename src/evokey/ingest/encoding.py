"""Bytes → text, whatever encoding they are in: UTF-8, what a byte order mark says, else the most likely one."""

from __future__ import annotations

import codecs
import re
from encodings.aliases import aliases

from charset_normalizer import from_bytes

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
LOOKED_AT = 65_536
"""Bytes from which an encoding is guessed."""
RARE = [name for name in sorted(set(aliases.values())) if name.startswith("mac_") or name in ("cp037", "cp500", "hz")]
"""Encodings of old computers, which are guessed too often."""
DECLARED = re.compile(rb"""(?:charset|encoding)\s{0,5}=\s{0,5}["']?([A-Za-z0-9_.:-]{1,40})""")


def decode(data: bytes, declared: str | None = None) -> tuple[str, str]:
    """The text, and the name of its encoding; ValueError where it is no text."""
    for mark, name in MARKS:
        if data.startswith(mark):
            return data.decode(name), name
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        if b"\0" in data[:LOOKED_AT]:
            raise ValueError(
                f"it is not a text (byte {error.start} is {data[error.start : error.start + 1]!r})"
            ) from error
    if (text := _mostly_utf8(data)) is not None:
        return text, "utf-8"
    name = _known(declared) or _guess(data)
    return data.decode(name, "replace"), name


def declared_in(data: bytes) -> str | None:
    """The encoding that a page of HTML names in its beginning."""
    found = DECLARED.search(data[:2_048])
    return found[1].decode("ascii") if found else None


def _mostly_utf8(data: bytes) -> str | None:
    """UTF-8 with a few damaged places; None where what is beyond ASCII is no UTF-8."""
    text = data.decode("utf-8", "replace")
    damaged = text.count("\ufffd")
    beyond = sum(sign > "\x7f" for sign in text) - damaged
    return text if beyond > 10 * damaged else None


def _known(declared: str | None) -> str | None:
    try:
        return codecs.lookup(declared).name if declared else None
    except LookupError:
        return None


def _guess(data: bytes) -> str:
    best = from_bytes(data[:LOOKED_AT], cp_exclusion=RARE).best()
    if best is None:
        raise ValueError("it is in no known encoding; convert it, for example with iconv")
    return best.encoding
