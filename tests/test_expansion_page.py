"""The page on expansion names what there is; tests/pages runs its code."""

from __future__ import annotations

import re
from pathlib import Path

from evokey import registry

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "expansion.md"


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
