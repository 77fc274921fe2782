"""A folder of documents."""

from pathlib import Path

Path("docs").mkdir()
Path("docs/guide.md").write_text("# Guide\n\nHow to undo a commit.\n")
