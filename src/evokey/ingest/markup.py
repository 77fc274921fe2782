"""Writes Markdown, the form in which all readers hand over their text: headings, paragraphs, lists, code and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LOOKS_LIKE_MARKUP = ("#", "```", "~~~", "|")


class MarkdownWriter:
    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.title = ""
        """The first heading of the highest level."""
        self.level = 7
        """Of that heading; 7: there is none."""

    @property
    def text(self) -> str:
        return "\n\n".join(self.blocks)

    def heading(self, level: int, title: str) -> None:
        title = " ".join(title.split())
        if title:
            level = min(max(level, 1), 6)
            if level < self.level:
                self.level, self.title = level, title
            self.blocks.append(f"{'#' * level} {title}")

    def paragraph(self, text: str, mark: str = "") -> None:
        text = " ".join(text.split())
        if text:
            escape = "\\" if not mark and text.startswith(LOOKS_LIKE_MARKUP) else ""
            self._append(f"{mark}{escape}{text}", joined=bool(mark))

    def _append(self, block: str, *, joined: bool) -> None:
        """Items of a list stand line by line."""
        if joined and self.blocks and self.blocks[-1].rpartition("\n")[2].lstrip().startswith("- "):
            self.blocks[-1] += f"\n{block}"
        else:
            self.blocks.append(block)

    def code(self, text: str, language: str = "") -> None:
        text = text.strip("\n").rstrip()
        if text.strip():
            fence = "```"
            while fence in text:
                fence += "`"
            self.blocks.append(f"{fence}{language}\n{text}\n{fence}")

    def table(self, rows: Iterable[Sequence[str]]) -> None:
        """The first row is the header."""
        lines = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
        lines = [row for row in lines if any(row)]
        if not lines:
            return
        width = max(map(len, lines))
        lines = [[*row, *[""] * (width - len(row))] for row in lines]
        told = [f"| {' | '.join(row)} |" for row in lines]
        self.blocks.append("\n".join([told[0], "|" + " --- |" * width, *told[1:]]))
