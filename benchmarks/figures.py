"""Draw the figures of the result files: benchmarks/results/*.png and *.svg.

python benchmarks/figures.py
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from beside_paper import RESULTS

from evokey.bench import charts, style


def loaded(name: str) -> Any:
    return json.loads((RESULTS / name).read_text("utf-8"))


def main() -> None:
    expansion = loaded("expansion.json")
    drawn = {
        "index-methods": partial(charts.index_methods, loaded("grid.json")),
        "expanders": partial(charts.bubbles, expansion["asked"], expansion["taught"]),
        "evolve-cost": partial(charts.corpus_cost, loaded("speed.json")["growth"]),
    }
    print("written:", ", ".join(path.name for path in style.save(drawn, RESULTS)))


if __name__ == "__main__":
    main()
