"""The programs under examples/ that need an engine or a framework run, and show what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import own_folders  # noqa: F401
from examples.test_examples import load


@pytest.mark.filterwarnings("default")
def test_a_chroma_index_finds_more_after_it_was_imported_and_taught(tmp_path: Path) -> None:
    told = load("improve_chroma").main(tmp_path, size=1_500)
    assert told["documents"] == 1_500 and told["lessons"] >= 20
    assert told["taught"] >= told["chroma"] + 0.05


def test_a_langchain_app_answers_more_after_people_voted(tmp_path: Path) -> None:
    told = load("langchain_feedback").main(tmp_path / "kb", size=1_500)
    assert told["votes"] >= 20
    assert told["after"] >= told["before"] + 0.1
