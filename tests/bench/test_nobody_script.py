"""benchmarks/nobody.py on small sets: cells of all groups, resumable, beside the version of another checkout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import small_sets

pytest.importorskip("ir_measures", reason="the benchmark's measures need: pip install 'evokey[bench]'")

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "benchmarks"
OPTIONS = ("--set", "scifact", "--encoder", "bm25", "--protocol", "holdout", "once", "--seeds", "0", "1")


def measure(place: Path, *options: str, checkout: Path | None = None) -> list[str]:
    """What it says."""
    script = [str(SCRIPTS / "nobody.py"), str(place), *OPTIONS, *options]
    called = script if checkout is None else [str(SCRIPTS / "another.py"), str(checkout), *script]
    run = subprocess.run([sys.executable, *called], capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def test_cells_of_two_versions_stand_side_by_side(tmp_path: Path) -> None:
    small_sets.gap(tmp_path / "scifact")
    before, now, out = tmp_path / "before", tmp_path / "now", tmp_path / "nobody.json"
    said = measure(tmp_path, "--now", str(before), checkout=ROOT)
    assert [line.split(",")[0] for line in said] == ["holdout scifact bm25", "once scifact bm25"]
    measure(tmp_path, "--now", str(now))
    assert measure(tmp_path, "--now", str(now)) == [], "what is there is not measured again"
    measure(tmp_path, "--now", str(now), "--before", str(before), "--out", str(out))
    half, once = json.loads(out.read_text("utf-8"))
    assert (half["protocol"], once["protocol"]) == ("holdout", "once")
    assert once["now"]["related"]["ndcg"] == [0, 1] and once["now"]["related"]["pairs"] == 24
    assert once["now"]["unrelated"]["ndcg"] == [0, 0] and once["now"]["unrelated"]["change"] is None
    assert once["now"]["taught"]["ndcg"] == once["now"]["single"]["ndcg"] == [0, 1]
    assert half["before"]["tested"] == half["now"]["tested"], "the same version, the same splits"
    assert half["against"]["change"] == [0, 0, 0]
    measure(tmp_path, "--now", str(now), "--before", str(tmp_path / "none"), "--out", str(out))
    assert json.loads(out.read_text("utf-8"))[0]["before"] == half["before"], "kept from the file"


def test_a_checkout_without_a_package_is_named(tmp_path: Path) -> None:
    called = [sys.executable, str(SCRIPTS / "another.py"), str(tmp_path), str(SCRIPTS / "nobody.py")]
    run = subprocess.run(called, capture_output=True, text=True)
    assert run.returncode == 1
    assert f"{tmp_path} has no package of its own" in run.stderr


def test_a_relative_change_has_an_interval_of_questions_not_of_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from pools import Pool

    before = {f"q{n}": 0.5 for n in range(40)}
    after = {id: 0.55 if n % 2 else 0.4 for n, id in enumerate(before)}
    once, often = Pool(), Pool()
    once.add(before, before, after)
    for _ in range(9):
        often.add(before, before, after)
    assert once.summary()["change"][0] == pytest.approx(-0.05)
    assert often.summary()["change"] == pytest.approx(once.summary()["change"])
    assert (often.summary()["pairs"], often.summary()["questions"]) == (360, 40)
    low, high = once.summary()["change"][1:]
    assert low < -0.05 < high < 0.01 and low > -0.11
