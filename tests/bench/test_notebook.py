"""The notebook on one's own data and encoder runs, cell after cell, without a network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ir_measures", reason="the benchmark's measures need: pip install 'evokey[bench]'")

NOTEBOOK = Path(__file__).parents[2] / "docs" / "your-data.ipynb"


def test_the_notebook_runs_and_shows_what_learning_brings(tmp_path: Path) -> None:
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    assert (notebook["nbformat"], len({cell["id"] for cell in notebook["cells"]})) == (4, len(notebook["cells"]))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    script = tmp_path / "notebook.py"
    fewer = "\n\n".join(cells).replace("seeds=3", "seeds=1")
    script.write_text(fewer, "utf-8")
    run = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    rows = [[cell.strip("* ") for cell in line.split("|")[1:-1]] for line in run.stdout.splitlines()]
    quality = {row[1]: [float(value) for value in row[3:5]] for row in rows if row[:1] == ["my-data"]}
    assert list(quality) == ["__main__:Trigrams", "bm25"]
    assert all(after > before for before, after in quality.values())
    (low,) = [float(row[4]) for row in rows if row[:2] == ["__main__:Trigrams", "none"] and len(row) == 9]
    assert low > 0, "the interval of the gain lies above zero"
    assert len(list((tmp_path / "my-rankings").glob("*.trec"))) == 4
    assert re.search(r"\d+ documents, 488 judged questions", run.stdout)
