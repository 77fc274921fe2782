"""The two things that are read of Markdown, line by line: headings and code blocks.

No regular expression and no second look at a line, so that no file can make reading slow.
"""

from __future__ import annotations

from itertools import takewhile

BLANK = " \t\r"


def heading(line: str) -> tuple[int, str]:
    """Level and title of a heading such as `## Title ##`; level 0 if the line is none."""
    bare = line.lstrip(" ")
    if len(line) - len(bare) > 3:
        return 0, ""
    level = sum(1 for _ in takewhile("#".__eq__, bare[:7]))
    rest = bare[level:]
    title = rest.rstrip("#" + BLANK).lstrip(BLANK)
    return (level, title) if 1 <= level <= 6 and rest[:1] in (" ", "\t") and title else (0, "")


def fence(line: str, before: str) -> str:
    """The mark of the code block that is open after this line, given the one open before it; "" outside of any."""
    if before:
        bare = line.strip()
        return "" if len(bare) >= len(before) and not bare.strip(before[0]) else before
    bare = line.lstrip(" ")
    if len(line) - len(bare) > 3 or not bare.startswith(("```", "~~~")):
        return ""
    info = bare.lstrip(bare[0])
    inline = bare[0] == "`" and "`" in info  # ```code``` within a line of prose
    return "" if inline else bare[: len(bare) - len(info)]


def title(text: str) -> str:
    """The first heading of level 1 outside of code blocks; "" if there is none."""
    mark = ""
    for line in text.split("\n"):
        after = fence(line, mark)
        level, found = heading(line)
        if level == 1 and not mark and not after:
            return found
        mark = after
    return ""
