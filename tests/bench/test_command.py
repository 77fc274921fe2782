"""`evokey bench` on a folder it has never seen: JSON for machines, tables and figures for people."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import small_sets
from rich.console import Console
from typer.testing import CliRunner, Result

pytest.importorskip("ir_measures", reason="the benchmark's measures need: pip install 'evokey[bench]'")

from evokey.bench import runs, tables
from evokey.bench.grid import Grid, Setting
from evokey.cli import screen
from evokey.cli.app import app

MEASURES = {"nDCG@1", "nDCG@5", "nDCG@10", "Recall@5", "Recall@10", "Recall@100", "MRR"}


@pytest.fixture(autouse=True)
def nobody_is_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setattr(screen, "console", Console(force_terminal=False))
    monkeypatch.setattr(screen, "errors", Console(force_terminal=False, stderr=True))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


def test_an_unseen_folder_is_measured_and_told_as_json(tmp_path: Path) -> None:
    folder, out = small_sets.gap(tmp_path / "unseen"), tmp_path / "out"
    result = run(folder, "--encoder", "bm25", "--policy", "none,guarded,paper", "--seeds", 2, "--out", out, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(result.stdout)
    assert len(found) == 6
    for one in found:
        assert (one["dataset"], one["encoder"], one["protocol"], one["rate"]) == ("unseen", "bm25", "holdout", 0.5)
        assert one["policy"] in ("none", "guarded", "paper")
        assert one["seed"] in (0, 1)
        assert one["queries"] == 24
        assert set(one["metrics"]) == set(one["taught"]) == set(one["untaught"]) == MEASURES
        assert one["metrics"] == one["untaught"]
        assert all(0 <= value <= 1 for value in one["metrics"].values())
    means = {one["policy"]: one["taught"]["nDCG@10"] for one in found}
    assert (means["none"], means["guarded"]) == (0, 1)


def test_an_interrupted_benchmark_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, out, execute = small_sets.gap(tmp_path / "unseen"), tmp_path / "out", runs.execute

    def interrupted(*arguments: Any, **options: Any) -> Iterator[runs.Outcome]:
        yield next(execute(*arguments, **options))
        raise KeyboardInterrupt

    asked = (folder, "--encoder", "bm25", "--policy", "none,guarded", "--seeds", 1, "--out", out, "--json")
    with monkeypatch.context() as patch:
        patch.setattr(runs, "execute", interrupted)
        result = run(*asked)
    assert result.exit_code == 130 and f"kept in {out}" in result.stderr
    assert len(list((out / "runs").iterdir())) == 1
    assert len(json.loads(run(*asked).stdout)) == 2


def test_tables_and_figures_stand_beside_the_results_and_can_be_made_again(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need: pip install 'evokey[bench]'")
    folder, out = small_sets.gap(tmp_path / "unseen"), tmp_path / "out"
    result = run(
        folder, "--encoder", "bm25", "--policy", "none,guarded", "--seeds", 1, "--rate", "0.3,0.6", "--out", out
    )
    assert result.exit_code == 0, result.output
    assert "2 runs" not in result.stdout and "4 runs, 0 of them measured before" in result.stdout
    drawn = {"quality-holdout-0.3", "quality-holdout-0.6", "gains-holdout-0.3", "latency-holdout-0.3", "budget"}
    for name in drawn:
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "</svg>" in (out / f"{name}.svg").read_text("utf-8")
    rows = list(csv.DictReader((out / "quality.csv").read_text("utf-8").splitlines()))
    assert [(row["set"], row["protocol"], float(row["none"])) for row in rows] == [
        ("unseen", "holdout 0.3", 0.0),
        ("unseen", "holdout 0.6", 0.0),
    ]
    assert "| unseen | bm25 | holdout 0.3 | 0.000 | **" in (out / "tables.md").read_text("utf-8")
    assert len(json.loads((out / "results.json").read_text("utf-8"))) == 4
    before = (out / "tables.md").read_text("utf-8")
    (out / "tables.md").unlink()
    again = run("--tables", out, "--json")
    assert str(out / "tables.md") in json.loads(again.stdout)
    assert (out / "tables.md").read_text("utf-8") == before
    assert (
        run(folder, "--encoder", "bm25", "--policy", "none", "--seeds", 1, "--rate", "0.6", "--out", out).stdout.count(
            "1 run, 1 of"
        )
        == 1
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name what to measure: a memory of yours (evokey bench --at DIR), data sets"),
        (["nowhere"], "nowhere is neither a folder nor the name of a data set"),
        (["{}", "--policy", "magic"], "there is no policy 'magic'"),
        (["{}", "--protocol", "guess"], "there is no protocol 'guess'"),
        (["{}", "--rate", "half"], "--rate half: a rate is the share of queries that teach"),
        (["{}", "--rate", "1.5"], "between 0 and 1, not 1.5"),
        (["{}", "--encoder", "bert"], "there is no encoder called 'bert'"),
        (["{}", "--encoder", "bm25", "--policy", "nudge-n"], "nothing to measure: nudge-n moves dense vectors"),
        (["{}", "--protocol", "official"], "has no train judgements"),
        (["--tables", "nowhere"], "nowhere holds no results"),
    ],
)
def test_wrong_use_is_one_line_that_says_what_to_do(tmp_path: Path, arguments: list[str], message: str) -> None:
    folder = small_sets.gap(tmp_path / "unseen")
    result = run(*(part.format(folder) for part in arguments), "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_command_line_itself_does_without_what_the_benchmark_needs() -> None:
    import subprocess

    code = (
        "import sys; import evokey.cli.app; assert not {'evokey.bench', 'ir_measures', 'matplotlib'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_comparisons_go_over_seeds_that_both_systems_have() -> None:
    def result(policy: str, seed: int, **values: float) -> dict[str, Any]:
        mean = {name: sum(values.values()) / len(values) for name in MEASURES}
        return {"dataset": "s", "encoder": "e", "protocol": "holdout", "rate": 0.5, "units": None, "policy": policy,
                "seed": seed, "values": values, "metrics": mean, "taught": None}  # fmt: skip

    grid = Grid([result("none", 0, a=0.0, b=0.5), result("none", 1, b=0.3), result("guarded", 0, a=1.0, b=0.5),
                 result("guarded", 1, b=0.1), result("guarded", 2, a=0.0)])  # fmt: skip
    setting = Setting("s", "e", "holdout", 0.5, None)
    assert grid.settings == [setting]
    found = grid.compare(setting, "guarded", "none")
    assert (found.queries, found.wins, found.losses) == (2, 1, 1)
    assert found.difference == pytest.approx((1.0 + (0.3 - 0.4)) / 2)
    assert grid.mean(setting, "guarded") == pytest.approx((0.75 + 0.1 + 0.0) / 3)
    assert grid.mean(setting, "guarded", "taught") is None
    (row,) = tables.quality(grid)
    assert row["change"] == pytest.approx((0.85 / 3) / 0.275 - 1)
