"""The page docs/langchain.md, and the version."""

from __future__ import annotations

import tomllib
from pathlib import Path

from frameworks.pages import check_examples

import evokey


def test_the_examples_of_the_page_run_and_print_what_they_say(tmp_path: Path) -> None:
    assert check_examples("langchain.md", tmp_path) == 3


def test_the_version_is_that_of_evokey() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == evokey.__version__
    assert f"evokey[client]=={evokey.__version__}" in project["dependencies"]
