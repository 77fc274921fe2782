"""reStructuredText by docutils, Sphinx's directives and roles included: unknown ones are read as what they hold.

Nothing is included from other files, and nothing is run.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import Directive, directives, roles

from evokey.ingest.content import Content
from evokey.ingest.encoding import decode
from evokey.ingest.markup import MarkdownWriter
from evokey.ingest.readers.text import name_encoding

SETTINGS = {
    "report_level": 5, "halt_level": 5, "file_insertion_enabled": False, "raw_enabled": False, "_disable_config": True,
    "line_length_limit": 100_000, "smart_quotes": False, "doctitle_xform": False,
}  # fmt: skip
DROPPED = frozenset(
    "toctree contents index highlight currentmodule module py:module py:currentmodule image figure raw include "
    "literalinclude sectionauthor codeauthor tabularcolumns default-role autosummary".split()
)
"""Directives that hold no text of their own."""
VERBATIM = frozenset(
    "code code-block sourcecode ipython plot doctest testcode testsetup testoutput productionlist math jupyter-execute "
    "graphviz parsed-literal prompt console".split()
)


class _AnyOption(dict[str, Callable[[str], str]]):
    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> Callable[[str], str]:
        return str


class _Unknown(Directive):
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[Any] = _AnyOption()

    def run(self) -> list[nodes.Node]:
        if self.name in DROPPED:
            return []
        if self.name in VERBATIM:
            return [nodes.literal_block("\n".join(self.content), "\n".join(self.content))]
        found = nodes.container()
        if self.arguments:
            found += nodes.paragraph(text=self.arguments[0])
        self.state.nested_parse(self.content, self.content_offset, found)
        return [found]


_find_directive, _find_role = directives.directive, roles.role


def _directive(name: str, language: Any, document: Any) -> Any:
    known, messages = _find_directive(name, language, document)
    return (_Unknown, []) if known is None or name in DROPPED | VERBATIM else (known, messages)


def _role(name: str, language: Any, line: int, reporter: Any) -> Any:
    known, messages = _find_role(name, language, line, reporter)
    return (known, messages) if known is not None else (_read_role, [])


def _read_role(name: str, raw: str, text: str, *_: Any, **__: Any) -> tuple[list[nodes.Node], list[Any]]:
    """`title <target>` is the title; a leading ~ or ! is not text."""
    title, _mark, target = text.partition(" <")
    shown = title if target.endswith(">") else text
    return [nodes.inline(text=shown.lstrip("~!"))], []


def read(data: bytes, path: Path) -> Content:
    text, encoding = decode(data)
    directives.directive = _directive  # type: ignore[assignment]
    roles.role = _role  # type: ignore[assignment]
    with redirect_stderr(io.StringIO()):
        tree = publish_doctree(text, source_path=None, settings_overrides=SETTINGS)
    writer = MarkdownWriter()
    _write(tree, writer, 0)
    return Content(writer.text, writer.title, name_encoding(encoding))


def _write(node: Any, writer: MarkdownWriter, level: int, mark: str = "") -> None:
    """A node with what is in it; `level` is that of the section around it."""
    if isinstance(node, nodes.title | nodes.subtitle | nodes.rubric):
        writer.heading(max(level, 1), node.astext())
    elif isinstance(node, nodes.literal_block | nodes.doctest_block | nodes.math_block):
        writer.code(node.astext())
    elif isinstance(node, nodes.table):
        writer.table([cell.astext() for cell in row.findall(nodes.entry)] for row in node.findall(nodes.row))
    elif isinstance(node, nodes.term):
        writer.paragraph(node.astext())
    elif isinstance(node, nodes.TextElement) and not isinstance(node, nodes.Invisible | nodes.system_message):
        writer.paragraph(node.astext(), mark)
    elif isinstance(node, nodes.system_message | nodes.Invisible | nodes.docinfo | nodes.image):
        return
    else:
        _write_inside(node, writer, level, mark)


def _write_inside(node: Any, writer: MarkdownWriter, level: int, mark: str) -> None:
    deeper = level + isinstance(node, nodes.section)
    for place, child in enumerate(node.children):
        first = "- " if isinstance(node, nodes.list_item) and not place else mark if not place else ""
        _write(child, writer, deeper, first)
