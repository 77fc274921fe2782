"""Draw the figures of the result files: benchmarks/results/*.svg.

python benchmarks/figures.py
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import exploration
import stream
import training_tables
from results import RESULTS, read

from evokey.bench import charts, style


def main() -> None:
    expansion = read("expansion.json")
    figures = {
        "index-methods": partial(charts.index_methods, read("grid.json")),
        "expanders": partial(charts.bubbles, expansion["asked"], expansion["taught"]),
        "evolve-cost": partial(charts.corpus_cost, read("speed.json")["growth"]),
        "exploration": partial(exploration.draw, read("exploration.json")["rows"]),
        "stream": partial(stream.draw, read("stream.json")),
        "training": training_tables.draw,
    }
    with tempfile.TemporaryDirectory() as folder:
        drawn = [path for path in style.save(figures, Path(folder)) if path.suffix == ".svg"]
        for path in drawn:
            (RESULTS / path.name).write_bytes(path.read_bytes())
    print("written:", ", ".join(path.name for path in drawn))


if __name__ == "__main__":
    main()
