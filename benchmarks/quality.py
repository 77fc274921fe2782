"""Make benchmarks/results/bench again with `evokey bench`: hours, resumable (runs are kept in bench-output).

python benchmarks/quality.py [DATA_DIR] [--only holdout stream …] [--jobs 2]
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from run import HALF, HERE, MINILM, OFFICIAL, RESULTS, evokey

DENSE = "all-MiniLM-L6-v2"
STREAM, ABLATED = "scifact cranfield".split(), "scifact cranfield".split()
HOLDOUT = "--seeds 3 --most 2000"
LIVE = "--encoder bm25 --seeds 1 --policy none,guarded,live:hyde"
BENCHES: dict[str, list[tuple[list[str], str]]] = {
    "holdout": [
        (
            [*MINILM, "bright_theoremqa_theorems"],
            f"--encoder {DENSE} --policy none,guarded,nudge-n --rate 0.3,0.5,0.8 {HOLDOUT}",
        ),
        (MINILM, f"--encoder {DENSE} --policy paper {HOLDOUT}"),
        (["pubmedqa_l", "clinc150"], f"--encoder {DENSE} --policy none,guarded,nudge-n {HOLDOUT}"),
        (HALF, f"--encoder bm25 --policy none,guarded --rate 0.3,0.5,0.8 {HOLDOUT}"),
        (HALF, f"--encoder bm25 --policy paper,bm25s {HOLDOUT}"),
        (HALF, f"--encoder wordllama,hybrid --policy none,guarded,paper,nudge-n {HOLDOUT}"),
    ],
    "official": [
        (OFFICIAL, f"--encoder bm25,{DENSE} --policy none,guarded,nudge-n,nudge-m --protocol official --seeds 1")
    ],
    "ablations": [
        (ABLATED, f"--encoder bm25,{DENSE} --policy none,guarded,ablations"),
        (["scifact"], "--encoder bm25 --policy expansion:gemini-flash-100,expansion:gpt-4.1-query2doc"),
        (["scifact"], "--encoder bm25 --policy guarded,query-only,units-only --units gemini-flash-100"),
        (["scifact"], f"--encoder {DENSE} --policy none,guarded,ablations --protocol official --seeds 1"),
    ],
    "intent": [(["clinc150"], "--encoder bm25 --policy none,guarded,paper --protocol same-intent")],
    "stream": [
        (STREAM, f"--encoder {DENSE} --policy none,guarded,paper,nudge-n --protocol stream --batches 8"),
        (["scifact"], "--encoder bm25,wordllama --policy none,guarded,paper,nudge-n --protocol stream --seeds 1"),
        (
            ["locomo10"],
            "--encoder bm25,wordllama --policy none,guarded,paper,nudge-n --protocol stream --seeds 1 --most 1000",
        ),
    ],
    "live": [
        (["scifact"], f"{LIVE},expansion:gemini-flash-100 --most 60"),
        (["bright_theoremqa_theorems"], f"{LIVE},expansion:tongsearch-qr-7b"),
    ],
    "answers": [
        (["locomo10"], "--encoder hybrid --policy none,guarded,judged --seeds 1 --answers 120"),
        (["pubmedqa_l"], "--encoder hybrid --policy none,guarded,judged --seeds 1 --answers 8"),
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--only", nargs="+", choices=BENCHES, default=list(BENCHES))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    for name in options.only:
        out, kept = Path("bench-output") / name, RESULTS / "bench" / name
        for sets, said in BENCHES[name]:
            evokey("bench", *(options.data / one for one in sets), *said.split(), "--out", out, "--jobs", options.jobs)
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(out, kept, ignore=shutil.ignore_patterns("runs", "results.json"))


if __name__ == "__main__":
    main()
