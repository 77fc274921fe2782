"""README and docs cannot rot: their tables are what the result files say, and their links lead somewhere.

tests/pages runs their code.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_tables_are_what_the_result_files_say_and_every_result_file_is_shown() -> None:
    check = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "tables.py", "--check"], capture_output=True, text=True
    )
    assert (check.returncode, check.stdout) == (0, "stale: none\nunused result files: none\n")


@pytest.mark.parametrize(
    "page", sorted(str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    targets = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in targets if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_the_page_of_the_command_line_is_what_the_program_says() -> None:
    check = subprocess.run([sys.executable, ROOT / "docs" / "generate.py", "--check"], check=False)
    assert check.returncode == 0, "write it again with: python docs/generate.py"
