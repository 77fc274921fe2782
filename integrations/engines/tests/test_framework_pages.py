"""The pages on frameworks and engines run, from top to bottom, in the environment that has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages.running import ROOT, run_page

PAGES = ["docs/haystack.md", "docs/import.md", "docs/langchain.md", "docs/llamaindex.md"]
READMES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "integrations").glob("*/README.md"))


@pytest.mark.parametrize("page", [*PAGES, *READMES])
def test_the_code_of_a_page_runs_and_prints_what_it_says(page: str, tmp_path: Path) -> None:
    run_page(ROOT / page, tmp_path)
