"""The paper's 13 sets: what it says of each, what the published collection has, and what lies here.

python benchmarks/sets.py [DATA_DIR] --out FILE
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from evokey.bench.data import Preset, load, presets, statistics

SHARED = Path(__file__).parents[2] / "shared" / "data"
FOUND = ("queries", "documents", "right_per_query", "shared", "answered")


def row(preset: Preset, data: Path) -> dict:
    names = (preset.name, f"bright_{preset.name}")
    folder = next((data / name for name in names if (data / name).is_dir()), None)
    here = None if folder is None else statistics(load(str(folder))).to_dict()
    return {
        "set": preset.name,
        "benchmark": preset.benchmark,
        "paper": asdict(preset.paper),
        "published": asdict(preset.published),
        "here": here and {name: here[name] for name in FOUND},
        "note": preset.note,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=SHARED)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = [row(preset, options.data) for preset in presets().values()]
    options.out.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
