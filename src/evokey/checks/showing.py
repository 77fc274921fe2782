"""Values as errors show them: never longer than a line or two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

LONGEST_SHOWN, MOST_LISTED = 200, 20
"""Characters of a value, and names in a row, that an error shows."""


def shown(value: Any) -> str:
    """A value as an error shows it: never longer than a line or two."""
    try:
        spelled = repr(value)
    except (ValueError, RecursionError):  # a number of too many digits, or too deep a nesting
        return f"something too large to show ({type(value).__name__})"
    return spelled if len(spelled) <= LONGEST_SHOWN else f"{spelled[:LONGEST_SHOWN]}… ({len(spelled):,} characters)"


def list_names(names: Iterable[Any]) -> str:
    """Names in a row, as an error shows them."""
    several = [str(name) for name in names]
    more = f" and {len(several) - MOST_LISTED} more" if len(several) > MOST_LISTED else ""
    whole = ", ".join(several[:MOST_LISTED])
    return (whole if len(whole) <= LONGEST_SHOWN else f"{whole[:LONGEST_SHOWN]}…") + more
