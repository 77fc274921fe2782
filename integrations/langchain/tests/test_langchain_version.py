"""The version of the package."""

from __future__ import annotations

import tomllib
from pathlib import Path

import evokey


def test_the_version_is_that_of_evokey() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == evokey.__version__
    assert f"evokey[client]=={evokey.__version__}" in project["dependencies"]
