"""Make everything under benchmarks/results again, then the tables of README and docs.

python benchmarks/run.py [DATA_DIR]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"
HALF = (
    "scifact nfcorpus cranfield pubmedqa_l climate_fever_evidence bright_theoremqa_theorems locomo10 clinc150".split()
)
WRONG = "scifact nfcorpus cranfield climate_fever_evidence pubmedqa_l locomo10".split()

PAPER = "scifact cranfield locomo10".split()
MINILM = "nfcorpus scifact cranfield locomo10 climate_fever_evidence".split()
OFFICIAL = "nfcorpus scifact".split()
GRID = "nfcorpus scifact cranfield".split()


def script(name: str, *arguments: object) -> None:
    subprocess.run([sys.executable, HERE / name, *map(str, arguments)], check=True)


def evokey(*arguments: object) -> None:
    subprocess.run([Path(sys.executable).parent / "evokey", *map(str, arguments)], check=True)


def main() -> None:
    data = Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parents[1] / "shared" / "data")
    evokey("demo", "--out", "demo-output")
    RESULTS.mkdir(exist_ok=True)
    shutil.copy("demo-output/results.json", RESULTS / "demo.json")
    shutil.copy("demo-output/before-after.png", RESULTS / "demo.png")
    script("sets.py", data, "--out", RESULTS / "sets.json")
    script("holdout.py", *(data / name for name in HALF), "--out", RESULTS / "holdout.json")
    script("holdout.py", *(data / name for name in WRONG), "--wrong", 0.3, "--out", RESULTS / "holdout-wrong.json")
    script("negatives.py", *(data / name for name in HALF), "--out", RESULTS / "negatives.json")
    minilm = ["--encoder", "all-MiniLM-L6-v2", "--out", RESULTS / "negatives.json"]
    script("negatives.py", *(data / name for name in MINILM), *minilm)
    script("unrelated.py", *(data / name for name in HALF), "--out", RESULTS / "unrelated.json")
    script("languages.py", "--out", RESULTS / "languages.json")
    paper = ["--encoder", "bm25", "wordllama", "--policy", "guarded", "paper", "--out", RESULTS / "paper.json"]
    script("holdout.py", *(data / name for name in PAPER), *paper)
    cache = ["--cache", "bench-output/cache"]
    minilm = ["--encoder", "all-MiniLM-L6-v2", "bm25+MiniLM", *cache, "--out", RESULTS / "holdout-minilm.json"]
    script("holdout.py", *(data / name for name in MINILM), *minilm)
    official = [
        "--split",
        "official",
        "--encoder",
        "all-MiniLM-L6-v2",
        *cache,
        "--out",
        RESULTS / "holdout-minilm.json",
    ]
    script("holdout.py", *(data / name for name in OFFICIAL), *official)
    retrievers = ["--encoder", "bm25", "wordllama", "all-MiniLM-L6-v2", *cache, "--out", "bench-output/grid", "--force"]
    script("grid.py", *(data / name for name in GRID), *retrievers)
    shutil.copy("bench-output/grid/grid.json", RESULTS / "grid.json")
    evokey("bench", "speed", "--data", data, "--out", RESULTS / "speed.json")
    script("figures.py")
    script("tables.py")


if __name__ == "__main__":
    main()
