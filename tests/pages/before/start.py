"""A folder of documents."""

from pathlib import Path

Path("docs").mkdir()
Path("docs/revert.md").write_text("# git revert\n\nRecord new changes that reverse the effect of earlier ones.\n")
Path("docs/commit.md").write_text("# git commit\n\nRecord changes to the repository: make a commit.\n")
