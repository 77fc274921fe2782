"""Kinds of files, known by how their names end, and what each needs to be read."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

JSONL = {".jsonl", ".ndjson"}
TABLES = {".csv": ",", ".tsv": "\t"}
CODE: Mapping[str, str] = {
    ".py": "python", ".pyi": "python", ".js": "javascript", ".mjs": "javascript", ".jsx": "javascript",
    ".ts": "typescript", ".tsx": "typescript", ".c": "c", ".h": "c", ".cc": "c++", ".cpp": "c++", ".hpp": "c++",
    ".cs": "c#", ".java": "java", ".kt": "kotlin", ".scala": "scala", ".go": "go", ".rs": "rust", ".rb": "ruby",
    ".php": "php", ".swift": "swift", ".lua": "lua", ".pl": "perl", ".r": "r", ".jl": "julia", ".sh": "shell",
    ".bash": "shell", ".sql": "sql", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".ini": "ini", ".cfg": "ini",
}  # fmt: skip
"""Ending → programming language."""
KINDS: Mapping[str, str] = {
    ".md": "markdown", ".markdown": "markdown", ".txt": "text", ".text": "text", ".rst": "rst", ".html": "html",
    ".htm": "html", ".xhtml": "html", ".pdf": "pdf", ".docx": "docx", ".ipynb": "notebook",
    **dict.fromkeys(CODE, "code"),
}  # fmt: skip
"""Endings of files that are one document each, and their kinds; evokey/ingest/readers has a module for each kind."""
KNOWN = JSONL | set(TABLES) | set(KINDS)
NEEDS: Mapping[str, str] = {"rst": "docutils", "html": "lxml", "pdf": "pypdfium2", "docx": "docx"}
"""Kind → the module that its reader imports, of evokey[files]."""
EXTRA = "pip install 'evokey[files]'"


def kind_of(path: Path) -> str:
    return KINDS[path.suffix.lower()]


def lacking(path: Path) -> bool:
    """Whether the library that reads such a file is not installed."""
    needed = NEEDS.get(KINDS.get(path.suffix.lower(), ""))
    return needed is not None and find_spec(needed) is None
