"""HTML by lxml: the main part of a page as Markdown, without navigation, scripts and page furniture.

The main part is what the page marks as such (main, role="main", article, or the usual names of a body); what is marked
as navigation, header, footer or sidebar is left out, by its tag, its role or its class.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lxml import html

from evokey.ingest.content import Content
from evokey.ingest.encoding import declared_in, decode
from evokey.ingest.markup import MarkdownWriter
from evokey.ingest.readers.text import name_encoding

LEFT_OUT = frozenset(
    "script style noscript template nav footer aside button select option svg iframe object head form input canvas "
    "audio video map dialog".split()
)
ROLES = frozenset("navigation banner contentinfo search complementary menu menubar".split())
FURNITURE = frozenset(
    "nav navbar navigation sidebar sphinxsidebar sidebar-left sidebar-right menu breadcrumb breadcrumbs toc localtoc "
    "table-of-contents footer header site-header site-footer page-header related headerlink skip-link skiplink "
    "cookie-banner prev-next-area prev-next-bottom noprint visually-hidden sr-only edit-this-page anchor-link".split()
)
"""Classes and ids that pages give to what is not their text."""
MAIN = ("//main", "//*[@role='main']", "//article", "//*[@id='content' or @id='main-content']", "//div[@class='body']")
LEAST = 0.2
"""The part of a page's text that its main part must have to be believed."""
HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = frozenset(
    "p div section article main header body ul ol dl li dt dd blockquote figure figcaption details summary fieldset "
    "address center hr br table".split()
)


def read(data: bytes, path: Path) -> Content:
    text, encoding = decode(data, declared_in(data))
    if not text.strip():
        return Content("")
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    root = html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    writer = MarkdownWriter()
    part = _main(root)
    _Walk(writer, inside=part is not root).block(part)
    named = " ".join((root.findtext(".//title") or "").split())
    title = writer.title if writer.level == 1 else named or writer.title
    return Content(writer.text, title, {**name_encoding(encoding), **_about(root)})


def _about(root: Any) -> dict[str, str]:
    language = (root.get("lang") or "").partition("-")[0].lower()
    found = {"language": language} if language.isalpha() and len(language) <= 3 else {}
    for one in root.iterfind(".//meta[@name]"):
        name, said = one.get("name").lower(), " ".join((one.get("content") or "").split())
        if name in ("description", "author") and said:
            found[name] = said[:1_000]
    return found


def _main(root: Any) -> Any:
    whole = len(root.text_content())
    for path in MAIN:
        found = root.xpath(path)
        if found:
            largest = max(found, key=lambda one: len(one.text_content()))
            if len(largest.text_content()) >= LEAST * whole:
                return largest
    return root


class _Walk:
    """Through the tree of a page; what is read is written block by block."""

    def __init__(self, writer: MarkdownWriter, *, inside: bool) -> None:
        self.writer, self.inside = writer, inside
        self._line: list[str] = []
        self._mark = ""

    def block(self, element: Any) -> None:
        self._end()
        self._add(element.text)
        for child in element:
            self._child(child)
            self._add(child.tail)
        self._end()

    def _child(self, child: Any) -> None:
        tag = child.tag if isinstance(child.tag, str) else ""
        if not tag or self._is_furniture(child, tag):
            return
        if tag in HEADINGS:
            self._end()
            self.writer.heading(HEADINGS[tag], "".join(_words(child)).rstrip("#¶§ \n"))
        elif tag == "pre":
            self._end()
            self.writer.code("".join(_words(child)))
        elif tag == "table" and _is_grid(child):
            self._end()
            self.writer.table(["".join(_words(cell)) for cell in row.iter("td", "th")] for row in child.iter("tr"))
        elif tag == "li":
            self._end()
            self._mark = "- "
            self.block(child)
        elif tag in BLOCKS:
            self.block(child)
        else:
            self._inline(child)

    def _inline(self, element: Any) -> None:
        self._add(element.text)
        for child in element:
            self._child(child)
            self._add(child.tail)

    def _is_furniture(self, element: Any, tag: str) -> bool:
        if tag in LEFT_OUT or element.get("role") in ROLES or element.get("aria-hidden") == "true":
            return True
        if tag == "header" and not self.inside:
            return True
        names = f"{element.get('class') or ''} {element.get('id') or ''}".lower()
        return not FURNITURE.isdisjoint(names.split()) or "hidden" in element.attrib

    def _add(self, text: str | None) -> None:
        if text:
            self._line.append(text)

    def _end(self) -> None:
        text = "".join(self._line)
        if text.strip():
            self.writer.paragraph(text, self._mark)
            self._mark = ""
        self._line = []


def _words(element: Any) -> Iterator[str]:
    """The text of an element, without the signs that link to a heading."""
    if isinstance(element.tag, str) and element.tag not in LEFT_OUT:
        names = (element.get("class") or "").split()
        if FURNITURE.isdisjoint(names):
            yield element.text or ""
            for child in element:
                yield from _words(child)
                yield child.tail or ""
        return
    yield ""


def _is_grid(table: Any) -> bool:
    """Whether it holds data: a table that holds tables, code or headings only lays a page out."""
    return not any(
        isinstance(one.tag, str) and one.tag in ("table", "pre", *HEADINGS) for one in table.iterdescendants()
    )
