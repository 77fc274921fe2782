"""The examples of a page of the docs, run as a reader would: each by itself, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def check_examples(page: str, folder: Path) -> int:
    """Run them all; how many there were. Each prints what its comments say, and nothing else."""
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text("utf-8"), re.DOTALL)
    around = {**os.environ, "PYTHONPATH": os.pathsep.join(str(Path(one).resolve()) for one in sys.path)}
    for number, code in enumerate(examples):
        place = folder / str(number)
        place.mkdir()
        said = re.findall(r"print\(.*?\)  # (.*)", code)
        run = subprocess.run([sys.executable, "-c", code], cwd=place, env=around, capture_output=True, text=True)
        assert (run.returncode, run.stderr, run.stdout.splitlines()) == (0, "", said), f"{run.stderr}{run.stdout}"
    return len(examples)
