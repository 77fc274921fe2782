"""Source code as it is written. Sections are classes and functions (Python), or runs of lines (other languages)."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from evokey.ingest.content import Content
from evokey.ingest.encoding import decode
from evokey.ingest.kinds import CODE
from evokey.ingest.readers.text import name_encoding
from evokey.types import Section

RUN = 60
"""Lines of a section where nothing else divides the text."""
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def read(data: bytes, path: Path) -> Content:
    text, encoding = decode(data)
    language = CODE[path.suffix.lower()]
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    sections = _definitions(text, starts) if language == "python" else ()
    return Content(text, path.name, {"code": language, **name_encoding(encoding)}, sections or _runs(text, starts))


def _definitions(text: str, starts: list[int]) -> tuple[Section, ...]:
    """From the first line of a definition to the next one, whatever stands in between."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # another version of Python, or a template
        return ()
    found = sorted(_walk(tree, ""))
    seen = Counter[str]()
    sections = [Section(0, 0, "top")] if not found or found[0][0] > 1 else []
    seen["top"] += len(sections)
    for line, name in found:
        seen[name] += 1
        sections.append(Section(starts[line - 1], 0, name if seen[name] == 1 else f"{name} ({seen[name]})"))
    ends = [one.start for one in sections[1:]] + [len(text)]
    return tuple(Section(one.start, end, one.where) for one, end in zip(sections, ends, strict=True) if end > one.start)


def _walk(tree: ast.AST, above: str) -> Iterator[tuple[int, str]]:
    """Classes, functions and methods, with their first lines; not what is inside functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Definition):
            name = f"{above}{node.name}"
            yield min([node.lineno, *(one.lineno for one in node.decorator_list)]), name
            if isinstance(node, ast.ClassDef):
                yield from _walk(node, f"{name} > ")


def _runs(text: str, starts: list[int]) -> tuple[Section, ...]:
    lines = len(starts) - 1
    edges = [(first, min(first + RUN, lines)) for first in range(0, lines, RUN)]
    return tuple(
        Section(starts[first], min(starts[last], len(text)), f"lines {first + 1}–{last}") for first, last in edges
    )
