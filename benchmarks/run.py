"""Make every file under benchmarks/results again, then the figures and the tables of README and docs.

    python benchmarks/run.py [DATA_DIR] [--only NAME …] [--jobs N]

A name is that of a result: a file (NAME.json) or a folder made by `evokey bench` (bench/NAME). All of them take hours.
Interrupted, the same command resumes: runs of `evokey bench` are kept in bench-output, and scripts add to their result
file (delete it to measure again). nobody.json has the version before beside the one now: another.py measures that one
(see nobody.py), otherwise its columns are kept. forget.json is made by `make forget-check`, filters.json by `make
filters`, fuzz-files.json by `make fuzz-files`, and edits.json, folder.json and readers.json by the scripts of the same
names; some columns of training.json need trained encoders (see training.py), otherwise they are kept;
unrelated-before.json was made once by unrelated.py, with the version before learning had a reach.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"
SETS = "scifact nfcorpus cranfield pubmedqa_l climate_fever_evidence bright_theoremqa_theorems locomo10 clinc150"
GIVEN = "scifact nfcorpus cranfield climate_fever_evidence locomo10"
"""Sets with vectors of MiniLM beside them."""
WRONG = "scifact nfcorpus cranfield climate_fever_evidence pubmedqa_l locomo10"
USUAL, MINILM = "bm25,wordllama,hybrid", "all-MiniLM-L6-v2"
LIVE = "--encoder bm25 --seeds 1 --policy none,guarded,live:hyde"
STREAM = "--protocol stream --policy none,guarded,paper,nudge-n"
NEGATIVES = "--policy none,guarded,no-negatives --wrong 10"
FEW = "--encoder hybrid --protocol curve --policy none,guarded"
BENCHES: dict[str, list[tuple[str, str]]] = {
    "holdout": [
        (SETS, f"--encoder {USUAL} --policy none,guarded"),
        (GIVEN, f"--encoder {MINILM},bm25+{MINILM} --policy none,guarded"),
        (SETS, f"--encoder {USUAL} --policy paper,nudge-n,bm25s"),
        (GIVEN, f"--encoder {MINILM} --policy paper,nudge-n"),
        (SETS, "--encoder bm25 --policy none,guarded --rate 0.3,0.8"),
        (GIVEN, f"--encoder {MINILM} --policy none,guarded,nudge-n --rate 0.3,0.8"),
    ],
    "shown": [(SETS, f"--encoder {USUAL} --policy none,guarded --shown 10")],
    "few": [
        ("demo scifact nfcorpus cranfield pubmedqa_l climate_fever_evidence", FEW),
        ("locomo10 clinc150", f"{FEW} --most 1000"),
    ],
    "noise": [(WRONG, f"--encoder {USUAL} --policy none,guarded --noise 0.3")],
    "wrong": [
        (SETS, f"--encoder {USUAL} {NEGATIVES}"),
        (GIVEN, f"--encoder {MINILM} {NEGATIVES}"),
        (SETS, f"--encoder {USUAL} {NEGATIVES} --noise 0.3"),
        (GIVEN, f"--encoder {MINILM} {NEGATIVES} --noise 0.3"),
    ],
    "official": [
        (
            "scifact nfcorpus",
            f"--encoder bm25,{MINILM} --policy none,guarded,nudge-n,nudge-m --protocol official --seeds 1",
        )
    ],
    "ablations": [
        ("scifact cranfield", f"--encoder bm25,{MINILM} --policy none,guarded,ablations"),
        ("scifact", "--encoder bm25 --policy expansion:gemini-flash-100,expansion:gpt-4.1-query2doc"),
        ("scifact", "--encoder bm25 --policy guarded,query-only,units-only --units gemini-flash-100"),
        ("scifact", f"--encoder {MINILM} --policy none,guarded,ablations --protocol official --seeds 1"),
    ],
    "intent": [("clinc150", "--encoder bm25 --policy none,guarded,paper --protocol same-intent")],
    "stream": [
        ("scifact cranfield", f"--encoder {MINILM} {STREAM} --batches 8"),
        ("scifact", f"--encoder bm25,wordllama {STREAM} --seeds 1"),
        ("locomo10", f"--encoder bm25,wordllama {STREAM} --seeds 1 --most 1000"),
    ],
    "live": [
        ("scifact", f"{LIVE},expansion:gemini-flash-100 --most 60"),
        ("bright_theoremqa_theorems", f"{LIVE},expansion:tongsearch-qr-7b"),
    ],
    "answers": [
        ("locomo10", "--encoder hybrid --policy none,guarded,judged --seeds 1 --answers 120"),
        ("pubmedqa_l", "--encoder hybrid --policy none,guarded,judged --seeds 1 --answers 8"),
    ],
}
"""By folder: data sets, and the options of `evokey bench`."""
SHOWN = {
    "holdout": "tables.json budget.svg cost.svg gains-holdout-0.5.svg quality-holdout-0.5.svg wins-holdout-0.5.svg",
    "shown": "tables.json",
    "few": "tables.json few.svg",
    "noise": "tables.json",
    "wrong": "tables.json",
    "official": "tables.json gains-official.svg quality-official.svg wins-official.svg",
    "ablations": "quality-holdout-0.5.svg",
    "intent": "gains-same-intent.svg",
    "stream": "stream.svg displacement.svg saturation.svg",
    "live": "latency-holdout-0.5.svg",
    "answers": "tables.json",
}
"""By folder: what docs show, or make tables of, beside tables.md."""
NEW_SEEDS = "101 102 103"
"""Of splits that nobody had looked at. Once results under them have decided something, take others."""
PAIRS = "--bystanders cranfield/climate_fever_evidence locomo10/scifact nfcorpus/scifact scifact/nfcorpus"
SCRIPTS: dict[str, list[tuple[str, str, str]]] = {
    "sets": [("sets.py", ".", "")],
    "grid": [("grid.py", "nfcorpus scifact cranfield", f"--encoder bm25 wordllama {MINILM}")],
    "languages": [("languages.py", "", "")],
    "unrelated": [("unrelated.py", SETS, "")],
    "pairs": [("unrelated.py", SETS, "--protocol pair --traffic none")],
    "nobody": [("nobody.py", ".", "")],
    "seeds": [("nobody.py", ".", "--protocol holdout once --seeds 0 1 2 3 4")],
    "confirmation": [("nobody.py", ".", f"--protocol holdout --seeds {NEW_SEEDS} --now bench-output/confirmation")],
    "attacks": [("attacks.py", "scifact cranfield nfcorpus locomo10", "")],
    "expansion": [("expansion.py", "scifact nfcorpus", "")],
    "paper-fair": [("paper.py", ".", "")],
    "regimes": [("regimes.py", "locomo10 nfcorpus scifact", "")],
    "exploration": [("exploration.py", "locomo10 nfcorpus", "--size 240 --every 120 --seeds 1")],
    "stream": [("stream.py", "", "--data {data}")],
    "lens": [
        ("lens.py", SETS, ""),
        ("lens.py", GIVEN, "--encoder minilm"),
        ("lens.py", WRONG, "--wrong 0.3"),
        ("lens.py", GIVEN, "--encoder minilm --wrong 0.3"),
        ("lens.py", GIVEN, f"--encoder bm25 wordllama minilm --traffic heard none {PAIRS}"),
        ("lens.py", GIVEN, f"--encoder bm25 wordllama minilm --wrong 0.3 {PAIRS}"),
        ("lens.py", "", "--latency 100000"),
    ],
    "lens-forms": [("lens_forms.py", ".", "--seeds 1")],
    "passages": [("passages.py", ".", "")],
    "training": [("training.py", ".", "")],
    "watching": [("watching.py", "", "--data {data}")],
}
"""By result file: script, data sets, options. Scripts measure what their result file does not have yet."""
COMMANDS = {"demo": "demo --out demo-output", "speed": "bench speed --data {data} --out {results}/speed.json"}
"""By result file: a command of evokey."""


def call(*words: object) -> None:
    subprocess.run([sys.executable, *map(str, words)], check=True)


def bench(name: str, data: Path, jobs: int) -> None:
    """Measure, and keep what docs show."""
    out, place = Path("bench-output") / name, RESULTS / "bench" / name
    for sets, options in BENCHES[name]:
        folders = [one if one == "demo" else data / one for one in sets.split()]
        call("-m", "evokey", "bench", *folders, *options.split(), "--out", out, "--jobs", jobs)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for file in ["tables.md", *SHOWN[name].split()]:
        shutil.copy(out / file, place / file)


def script(name: str, data: Path) -> None:
    for file, sets, options in SCRIPTS[name]:
        folders = [data / one for one in sets.split()]
        call(HERE / file, *folders, *options.format(data=data).split(), "--out", RESULTS / f"{name}.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=HERE.parents[1] / "shared" / "data")
    names = [*COMMANDS, *(f"bench/{name}" for name in BENCHES), *SCRIPTS]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--jobs", type=int, default=1, help="parallel processes of evokey bench")
    options = parser.parse_args()
    for name in options.only:
        if name.startswith("bench/"):
            bench(name.removeprefix("bench/"), options.data, options.jobs)
        elif name in COMMANDS:
            call("-m", "evokey", *COMMANDS[name].format(data=options.data, results=RESULTS).split())
        else:
            script(name, options.data)
    if "demo" in options.only:
        shutil.copy("demo-output/results.json", RESULTS / "demo.json")
        shutil.copy("demo-output/before-after.png", RESULTS / "demo.png")
    call(HERE / "figures.py")
    call(HERE / "tables.py")


if __name__ == "__main__":
    main()
