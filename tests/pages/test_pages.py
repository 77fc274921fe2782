"""No page can rot: every code block of README and docs is run, or says why not."""

from __future__ import annotations

import re
from pathlib import Path

import page as runner
import pytest
from pages.running import run_page

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "integrations").glob("*/README.md"))
ELSEWHERE = {"haystack.md", "import.md", "langchain.md", "llamaindex.md"}
"""Pages whose packages have an environment of their own: integrations/engines/tests/test_framework_pages.py."""
INDENTED = re.compile(r"(?:^|\n)\n    (?![-*] |\d+\. )\S")


def is_run_here(page: Path) -> bool:
    blocks = runner.blocks(page.read_text("utf-8"))
    mine = page.name not in ELSEWHERE and "integrations" not in page.parts
    return mine and any(one.language in runner.RUN and not one.reason for one in blocks)


@pytest.mark.parametrize("page", [one for one in PAGES if is_run_here(one)], ids=lambda page: page.name)
def test_the_code_of_a_page_runs_and_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    text = page.read_text("utf-8")
    known = (*runner.RUN, "text")
    unknown = [(one.line, one.language) for one in runner.blocks(text) if one.language not in known]
    assert not unknown, f"write these blocks as one of {', '.join(known)}"
    assert len(re.findall(r"^ *```", text, re.MULTILINE)) == 2 * len(runner.blocks(text)), "a fence is not at its place"
    rest = runner.FENCE.sub("", text)
    indented = INDENTED.search(re.sub(r"^(?:[-*]|\d+\.) .*(?:\n(?:  .*)?)*", "", rest, flags=re.MULTILINE))
    assert indented is None, "write an indented block between fences, with its language"


def test_a_block_is_found_with_its_reason_and_its_file() -> None:
    text = (
        "a\n\n```python\nx = 1\n```\n\n<!-- not run: no\ttime -->\n```sh\nls\n```\n<!-- own.py -->\n```python\ny\n```\n"
    )
    found = [(one.language, one.line, one.reason, one.file) for one in runner.blocks(text)]
    assert found == [("python", 3, "", ""), ("sh", 8, "no\ttime", ""), ("python", 12, "", "own.py")]


def test_a_page_that_prints_something_else_fails(tmp_path: Path) -> None:
    page = tmp_path / "wrong.md"
    page.write_text("```python\nprint(1 + 1)  # 3\n```\n")
    with pytest.raises(AssertionError, match=r"wrong\.md, the python block at line 1"):
        run_page(page, tmp_path)
    page.write_text("```sh\ntrue\nfalse   # fails\n```\n")
    with pytest.raises(AssertionError, match=r"wrong\.md, the sh block at line 1"):
        run_page(page, tmp_path)
