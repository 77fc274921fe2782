"""The programs under examples/ run, and show what they say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_an_agent_that_tells_what_it_used_finds_more_in_words_nobody_used_before(tmp_path: Path) -> None:
    told = load("agent_memory").main(tmp_path / "kb", count=40)
    assert told["published"] and told["lessons"] >= 50
    assert told["after"] >= told["before"] + 0.05


def test_a_documentation_assistant_learns_from_thumbs_and_forgets_a_voter(tmp_path: Path) -> None:
    told = load("docs_assistant").main(tmp_path / "kb", intents=50)
    assert told["published"] and told["up"] > 0 and told["reviewed"] == told["down"]
    assert told["after"] >= told["before"] + 0.05
    assert told["forgotten"] > 0 == told["left_of_user"]


def test_a_support_desk_suggests_the_right_article_after_reading_its_closed_tickets(tmp_path: Path) -> None:
    told = load("support_desk").main(tmp_path / "faq")
    assert (told["published"], told["lessons"], len(told["gaps"])) == (True, 40, 3)
    assert told["before"] <= 0.6 and told["after"] >= 0.8
