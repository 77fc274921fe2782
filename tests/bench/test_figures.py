"""What figures show is what was measured: as many marks as there are results, and curves that follow the rules."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import small_sets

pytest.importorskip("ir_measures", reason="the benchmark's measures need: pip install 'evokey[bench]'")
pytest.importorskip("matplotlib", reason="figures need: pip install 'evokey[bench]'")

from evokey.bench import charts, curves, figures, runs, style, systems, tables
from evokey.bench.data import load
from evokey.bench.grid import Grid
from evokey.bench.lab import Lab
from evokey.bench.protocols import split
from evokey.inspect.accounting import report
from evokey.inspect.displacement import displacements

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.fixture(scope="module")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stream")
    gap = small_sets.gap(folder / "gap", 30)
    common, policies = runs.Run(protocol="stream", batches=3), ["none", "guarded", "paper"]
    planned, _ = runs.plan([str(gap)], common, encoders=["bm25", "wordllama"], policies=policies, seeds=1)
    assert all(one.error is None for one in runs.execute(planned, folder / "out"))
    return folder / "out"


def test_keys_that_moved_are_counted_after_every_batch(streamed: Path) -> None:
    rows = tables.keys(Grid(runs.results(streamed)))
    assert {row["policy"] for row in rows} == {"guarded", "paper"}, "the untaught index has nothing to move"
    for policy in ("guarded", "paper"):
        for retriever, kind in (("bm25", "sparse"), ("wordllama", "dense")):
            here = [row for row in rows if (row["policy"], row["retriever"]) == (policy, retriever)]
            assert [row["taught"] for row in here] == [10, 20, 30]
            assert {row["kind"] for row in here} == {kind}
            assert all(0 <= row["median"] <= row["p95"] <= row["largest"] for row in here)
    guarded = [row["moved"] for row in rows if (row["policy"], row["retriever"]) == ("guarded", "bm25")]
    assert guarded == sorted(guarded) and guarded[-1] > 0


def test_three_batches_in_a_row_below_the_bar_saturate_and_the_best_gain_is_remembered() -> None:
    def result(gains: list[float]) -> dict[str, Any]:
        return {"dataset": "s", "encoder": "bm25", "protocol": "stream", "rate": 0.5, "units": None, "policy": "paper",
                "seed": 0, "gains": {"bm25": gains}}  # fmt: skip

    rows = tables.saturation(Grid([result([2.0, 1.0, 1.0, 1.0, 1.5, 1.0])]))
    assert [row["bar"] for row in rows] == pytest.approx([0, 1.9, 1.9, 1.9, 1.9, 1.9])
    assert [row["saturated"] for row in rows] == [False, False, False, True, False, False]


def test_all_figures_of_a_stream_are_drawn(streamed: Path) -> None:
    names = {path.stem for path in figures.draw(streamed) if path.suffix == ".svg"}
    assert {
        "stream",
        "displacement",
        "saturation",
        "quality-stream-0.5",
        "gains-stream-0.5",
        "wins-stream-0.5",
    } <= names
    tables.write(streamed)
    rows = list(csv.DictReader((streamed / "keys.csv").read_text("utf-8").splitlines()))
    assert len(rows) == len(tables.keys(Grid(runs.results(streamed))))
    assert "## keys" not in (streamed / "tables.md").read_text("utf-8")


def test_a_curve_of_few_lessons_has_a_figure_of_its_own(tmp_path: Path) -> None:
    common = runs.Run(protocol="curve")
    planned, _ = runs.plan(
        [str(small_sets.gap(tmp_path / "gap"))], common, encoders=["bm25"], policies=["none", "guarded"], seeds=1
    )
    assert all(one.error is None for one in runs.execute(planned, tmp_path / "out"))
    names = {path.stem for path in figures.draw(tmp_path / "out")}
    assert "few" in names and "stream" not in names
    rows = tables.streams(Grid(runs.results(tmp_path / "out")))
    assert {(row["policy"], row["taught"]): row["again"] for row in rows}["guarded", 10] == 1


def test_only_what_learns_at_once_has_a_cost(streamed: Path) -> None:
    def result(policy: str, protocol: str, seconds: float) -> dict[str, Any]:
        return {"dataset": "s", "encoder": "bm25", "protocol": protocol, "rate": 0.5, "units": None, "seed": 0,
                "policy": policy, "counts": {"taught": 30}, "cpu_seconds": {"evolve": seconds}}  # fmt: skip

    told = [result("none", "holdout", 1e-6), result("guarded", "holdout", 2.0), result("guarded", "stream", 9.0)]
    (axis,) = curves.cost(Grid(told)).axes
    assert [(*line.get_xdata(), *line.get_ydata()) for line in axis.lines] == [(30, 2.0)]
    assert curves.cost(Grid(runs.results(streamed))) is None


def test_a_recorded_expansion_took_its_time_elsewhere_and_is_a_line() -> None:
    def result(policy: str, value: float) -> dict[str, Any]:
        measures = dict.fromkeys(tables.MEASURES, value)
        return {"dataset": "s", "encoder": "bm25", "protocol": "holdout", "rate": 0.5, "units": None, "seed": 0,
                "policy": policy, "metrics": measures, "values": {"q": value}, "search_ms": 2.0}  # fmt: skip

    grid = Grid([result("none", 0.2), result("live:hyde", 0.3), result("expansion:who", 0.4)])
    (axis,) = figures.latency(grid, grid.settings).axes
    across = [line for line in axis.lines if len(line.get_xdata()) == 2]
    assert [list(line.get_ydata()) for line in across] == [[0.4, 0.4]]
    assert len(axis.lines) == 3


def test_the_charts_show_every_result() -> None:
    cells = json.loads((RESULTS / "grid.json").read_text("utf-8"))
    assert sum(len(axis.patches) for axis in charts.index_methods(cells).axes) == len(cells)
    found = json.loads((RESULTS / "expansion.json").read_text("utf-8"))
    drawn = charts.bubbles(found["asked"], found["taught"])
    both = [one for one in found["taught"] if one["lessons"] == "both"]
    assert sum(len(axis.collections) for axis in drawn.axes) == len(found["asked"]) + len(both)
    growth = [{"encoder": "bm25", "documents": size, "evolve_cpu_seconds": 1.0, "lessons": 9} for size in (10, 100)]
    (axis,) = charts.corpus_cost(growth).axes
    assert [list(line.get_xdata()) for line in axis.lines] == [[10, 100]]


def test_systems_have_colours_of_their_own() -> None:
    names = ["none", "guarded", "paper", "nudge-n", "live:hyde", "expansion:gemini-flash-100", "no-guard", "no-rows"]
    assert len({style.colour(name) for name in names}) == len(names)


def test_displacements_are_those_of_the_account(tmp_path: Path) -> None:
    data = load(small_sets.gap(tmp_path / "gap"))
    lab = Lab(data, "bm25", tmp_path)
    with lab.memory() as memory:
        system = systems.Taught(memory, lab, systems.Lessons())
        assert [one.documents for one in displacements(memory)] == [0]
        system.teach(split(data, "same-intent").taught)
        system.evolve()
        assert displacements(memory) == report(memory).displacements
        assert len(system.displacements()["bm25"]) == 24
        assert system.gains() == {}
