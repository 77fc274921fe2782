"""The page on expansion cannot rot: its examples run, one after the other, and print what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from evokey import registry

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "expansion.md"


def test_the_examples_print_what_they_say(tmp_path: Path) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
    said = re.findall(r"print\(.*#\s*(\S+)", code)
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.split() == said
    assert len(said) == 5
    assert run.stderr == ""


def test_every_expander_is_on_the_page() -> None:
    named = set(re.findall(r"`([a-z0-9-]+)`", PAGE.read_text("utf-8")))
    assert {part.name for part in registry.parts("expander")} <= named


def test_the_page_counts_methods_and_nothing_else() -> None:
    text = PAGE.read_text("utf-8")
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|", text, re.MULTILINE)
    assert len(rows) == 12 and "There are twelve methods" in text
    others = {part.name for part in registry.parts("expander") if part.package == "evokey"} - set(rows)
    assert others == {"query", "given", "recorded", "several"}
    assert "twelve methods of query expansion" in (ROOT / "README.md").read_text("utf-8")


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)", PAGE.read_text("utf-8"))
    assert targets
    assert [link for link in targets if "://" not in link and not PAGE.parent.joinpath(link).exists()] == []
