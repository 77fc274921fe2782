"""What a value may be, wherever it comes from."""

from __future__ import annotations

SMALLEST, LARGEST = -(2**63), 2**63 - 1
DEEPEST = 50
"""Lists and objects inside one another, in metadata: what is stored must be readable from any depth of calls."""


def storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
