"""Runs go on where they were interrupted, whatever interrupted them; many processes measure what one measures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import small_sets

pytest.importorskip("ir_measures", reason="the benchmark's measures need: pip install 'evokey[bench]'")

from evokey.bench import runs
from evokey.bench.runs import Outcome, Run
from evokey.errors import InvalidInput

KILLED = """
import sys
from pathlib import Path
from evokey.bench import runs
planned, _ = runs.plan([sys.argv[1]], encoders=["bm25"], policies=["none", "guarded"], seeds=10)
list(runs.execute(planned, Path(sys.argv[2])))
"""


def planned(folder: Path, **given: object) -> list[Run]:
    options = {"encoders": ["bm25"], "policies": ["none", "guarded"], "seeds": 2, **given}
    return runs.plan([str(folder)], **options)[0]  # type: ignore[arg-type]


def values(outcomes: list[Outcome]) -> dict[Run, object]:
    return {one.run: one.result and (one.result["values"], one.result["metrics"]) for one in outcomes}


def test_seeds_follow_the_first_one() -> None:
    found, _ = runs.plan(["x/one"], Run(seed=101), encoders=["bm25"], policies=["none"], seeds=2)
    assert [one.seed for one in found] == [101, 102]
    assert "--seeds 1 --first-seed 102" in found[1].command


def test_a_plan_crosses_sets_encoders_systems_rates_and_seeds_without_what_cannot_be() -> None:
    found, left_out = runs.plan(
        ["x/one", "x/two"], encoders=["bm25", "wordllama"], policies=["none", "nudge-n"], rates=[0.3, 0.8], seeds=2
    )
    assert len(found) == len(set(found)) == 2 * 3 * 2 * 2
    assert left_out == ["nudge-n moves dense vectors; bm25 has others"]
    assert len({run.file for run in found}) == len(found)
    assert runs.plan(["x/one"], Run(protocol="official"), rates=[0.3, 0.8], seeds=1)[0][0].rate is None
    with pytest.raises(InvalidInput, match="two of the data sets have the same name"):
        runs.plan(["x/one", "y/one"])


def test_what_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    folder, out = small_sets.gap(tmp_path / "gap"), tmp_path / "out"
    first = list(runs.execute(planned(folder), out))
    stamps = {path.name: path.stat().st_mtime_ns for path in (out / "runs").iterdir()}
    again = list(runs.execute(planned(folder, seeds=3), out))
    assert [one.fresh for one in first] == [True] * 4
    assert sorted(one.fresh for one in again) == [False] * 4 + [True] * 2
    assert {name: (out / "runs" / name).stat().st_mtime_ns for name in stamps} == stamps
    assert values(first).items() <= values(again).items()


def test_a_file_that_is_no_result_is_made_again(tmp_path: Path) -> None:
    folder, out = small_sets.gap(tmp_path / "gap"), tmp_path / "out"
    first = list(runs.execute(planned(folder), out))
    broken = out / "runs" / first[0].run.file
    broken.write_text(broken.read_text()[:100])
    again = list(runs.execute(planned(folder), out))
    assert [one.run for one in again if one.fresh] == [first[0].run]
    assert values(again) == values(first)


def test_a_killed_benchmark_goes_on_where_it_was(tmp_path: Path) -> None:
    folder, out = small_sets.gap(tmp_path / "gap"), tmp_path / "out"
    going = subprocess.Popen([sys.executable, "-c", KILLED, str(folder), str(out)])
    deadline = time.monotonic() + 120
    while len(list((out / "runs").glob("*.json"))) < 2:
        assert going.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(going.pid, signal.SIGKILL)
    assert going.wait() == -signal.SIGKILL
    left = sorted((out / "runs").glob("*.json"))
    whole = [json.loads(path.read_text("utf-8")) for path in left]
    assert 2 <= len(whole) < 20
    outcomes = list(runs.execute(planned(folder, seeds=10), out))
    assert sum(not one.fresh for one in outcomes) == len(left)
    assert len(runs.results(out)) == len(outcomes) == 20
    assert values(outcomes) == values(list(runs.execute(planned(folder, seeds=10), tmp_path / "other")))


def test_two_processes_measure_what_one_measures(tmp_path: Path) -> None:
    folder = small_sets.gap(tmp_path / "gap")
    alone = list(runs.execute(planned(folder), tmp_path / "alone"))
    together = list(runs.execute(planned(folder), tmp_path / "together", jobs=2))
    assert values(together) == values(alone)
    assert len(runs.results(tmp_path / "together")) == 4


def test_a_run_that_fails_is_told_and_does_not_stop_the_others(tmp_path: Path) -> None:
    folder = small_sets.gap(tmp_path / "gap")
    found = list(runs.execute(planned(folder, policies=["expansion", "none"], seeds=1), tmp_path / "out"))
    assert {one.run.policy: one.error is None for one in found} == {"expansion": False, "none": True}
    failed = next(one for one in found if one.error)
    assert failed.error == "gap has no recorded expansions (expansions/NAME.jsonl)"
    assert [path.name for path in (tmp_path / "out" / "runs").iterdir()] == [
        one.run.file for one in found if one.error is None
    ]


def test_an_empty_folder_of_results_says_how_to_make_some(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="holds no results; make some with: evokey bench DATA --out"):
        runs.results(tmp_path)
