"""benchmarks/paper.py on a small set: one command, resumable, a row for each system and verifier."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import small_sets

pytest.importorskip("ir_measures", reason="the benchmark's measures need: pip install 'evokey[bench]'")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "paper.py"


def measure(place: Path, *options: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows, and what was measured anew."""
    out = place / "paper.json"
    given = [str(place), "--out", str(out), "--runs", str(place / "runs"), "--set", "scifact", "--seeds", "1", *options]
    run = subprocess.run([sys.executable, str(SCRIPT), *given], capture_output=True, text=True, check=True)
    said = [line for line in run.stdout.splitlines() if "nudge" not in line]
    return json.loads(out.read_text("utf-8")), said


def test_one_command_measures_the_rule_its_gate_and_the_pipeline_and_resumes(tmp_path: Path) -> None:
    small_sets.recorded(small_sets.gap(tmp_path / "scifact"))
    parts = ("--part", "fair", "pipeline", "--rates", "0.3", "0.5")
    rows, said = measure(tmp_path, *parts)
    fair = {(one["system"], one["expanded"]): one for one in rows if (one["part"], one["encoder"]) == ("fair", "bm25")}
    assert fair["none", False]["ndcg"] == 0 and fair["none", False]["difference"] is None
    assert fair["paper", False]["passed"] == 0, "untaught, the plain query finds nothing, so nothing is verified"
    assert fair["paper", True]["passed"] == fair["paper", True]["taught"] == 24
    assert fair["guarded", False]["difference"][0] == pytest.approx(fair["guarded", False]["ndcg"])
    piped = {(one["system"], one["rate"]): one for one in rows if (one["part"], one["encoder"]) == ("pipeline", "bm25")}
    assert {rate for _, rate in piped} == {0.3, 0.5}
    assert piped["paper", 0.5]["lessons"] == piped["guarded", 0.5]["lessons"] == 24, "the same evidence for both"
    assert piped["guarded", 0.5]["verifier"] == "labels"
    assert fair["guarded", False]["unrelated"] == 0 < fair["guarded", False]["related"]
    again, fresh = measure(tmp_path, "--part", "fair")
    assert said and fresh == []
    assert again == sorted(rows, key=lambda one: one["part"] == "fair"), "rows of other parts are kept"
    changed, fresh = measure(tmp_path, "--part", "fair", "--again", "guarded")
    assert fresh and all(".guarded." in line for line in fresh), "one policy is measured again, the others are kept"
    assert changed == again
