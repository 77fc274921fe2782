"""Whether two source trees find and choose the same, to the last bit, and which is faster:

python tests/equality/compare.py OLD_TREE NEW_TREE [SET…]

The sets are folders in BEIR layout; without any, three of those beside the project.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = HERE.parents[2] / "shared" / "data"
SETS = ("scifact", "cranfield", "locomo10")


def main(arguments: list[str]) -> int:
    old, new, *sets = arguments
    sets = sets or [str(DATA / name) for name in SETS]
    before, after = (run(Path(tree), sets) for tree in (old, new))
    differing = 0
    for name in before:
        parts = [part for part in before[name] if before[name][part] != after[name][part]]
        differing += bool(parts)
        _say(f"{name:24} {'the same bits' if not parts else 'DIFFERS in ' + ', '.join(parts)}")
        for part in parts:
            _say(f"    {_difference(before[name][part], after[name][part])}")
    return 1 if differing else 0


def run(tree: Path, sets: list[str]) -> dict[str, Any]:
    begun = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(tree.resolve() / "src"), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, HERE / "record.py", *sets], env=environment, stdout=subprocess.PIPE, check=True
    )
    _say(f"{tree}: {time.perf_counter() - begun:.1f} s")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _difference(before: Any, after: Any) -> str:
    if isinstance(before, list):
        at = next(at for at, (one, other) in enumerate(zip(before, after, strict=True)) if one != other)
        return f"question {at}: {before[at][:3]} → {after[at][:3]}"
    return ", ".join(f"{key}: {before[key]} → {after[key]}" for key in before if before[key] != after[key])


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
