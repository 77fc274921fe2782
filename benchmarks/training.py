"""The encoder fine-tuned on the same lessons, a trained linear adapter, and `evokey tune`, beside evolve alone.

    python benchmarks/training.py [DATA_DIR] --train --out benchmarks/results/training.json

Resumable: what bench-output/training has is not made again. Training is worth a GPU. Where that is another machine:

    python benchmarks/training.py [DATA_DIR] --export FOLDER           here: what is trained
    python benchmarks/train_rows.py FOLDER --out TRAINED               there (see that file)
    python benchmarks/training.py [DATA_DIR] --trained TRAINED … --out benchmarks/results/training.json

Without --train and --trained, what needs a trained encoder stays as the result file has it. Seconds are those of
training; of evolve and of the adapter those of one processor. TRAINED/results-alone.json, if there is one, has the
seconds of trainings that ran alone (train_rows.py --again).
"""

from __future__ import annotations

import argparse
import json
import lzma
import multiprocessing
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tuned import Case, Recorded, read_vectors

from evokey.bench import protocols
from evokey.bench.data import Dataset, load
from evokey.bench.measures import MAIN
from evokey.bench.runs import Result, Run, execute, write_json
from evokey.bench.trained import divide, training_set
from evokey.encoders.hub import folder_of
from evokey.tuning.pairs import TrainingSet, split
from evokey.tuning.tuner import HELD_OUT, LEAST, VALIDATION

MINILM = "all-MiniLM-L6-v2"
HYBRID = f"bm25+{MINILM}"
CLIMATE, LOCOMO = "climate_fever_evidence", "locomo10"
TUNE = ".tune"
"""Rows that are trained on what `evokey tune` trains on: it holds out further questions, for its guard."""
AS_TUNE = 3
"""The settings of train_rows.py that tune has."""
MODEL_FILES = ("config.json", "config_sentence_transformers.json", "modules.json", "sentence_bert_config.json",
               "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json",
               "1_Pooling/config.json")  # fmt: skip
LINKED = ("corpus.jsonl", "queries.jsonl", "qrels")
RUNS = Path("bench-output/training")
CORE = "one CPU core"


@dataclass(frozen=True)
class Row:
    """One split of one set."""

    set: str
    protocol: str = "holdout"
    seed: int = 0

    @property
    def name(self) -> str:
        return f"{self.set}-{'official' if self.protocol == 'official' else self.seed}"

    def split(self, data: Dataset) -> protocols.Split:
        return protocols.split(data, self.protocol, rate=0.5, seed=self.seed)

    def run(self, folder: Path, encoder: str, policy: str) -> Run:
        rate = 0.5 if self.protocol == "holdout" else None
        return Run(str(folder), encoder, self.protocol, rate, self.seed, policy)


FIRST = [
    *(Row(name, "official") for name in ("scifact", "nfcorpus")),
    *(Row(name) for name in ("scifact", "cranfield", "nfcorpus", CLIMATE, LOCOMO)),
]
"""The rows of the table."""
FURTHER = [Row(name, seed=seed) for name in (CLIMATE, LOCOMO) for seed in (1, 2)]
"""Further splits of the two sets where training helps most."""
ROWS = [*FIRST, *FURTHER]


# ---- what is trained


def export(data: Path, folder: Path) -> None:
    """What train_rows.py needs: the model in numbers of 16 bits, the sets, and who teaches."""
    folder.mkdir(parents=True, exist_ok=True)
    export_model(folder_of(MINILM), folder / "model")
    rows: dict[str, Any] = {}
    for row in ROWS:
        known = load(data / row.set)
        everything = training_set(known, row.split(known).taught)
        rows[row.name] = {"set": row.set, **describe(*divide(everything))}
        parts = split(everything.queries, VALIDATION, HELD_OUT)
        chosen = (everything.only(queries) for queries in (parts.train, parts.validation))
        rows[row.name + TUNE] = {"set": row.set, **describe(*chosen)}
    with lzma.open(folder / "rows.json.xz", "wt", encoding="utf-8") as file:
        json.dump(rows, file, ensure_ascii=False)
    with tarfile.open(folder / "sets.tar.xz", "w:xz") as archive:
        for name in sorted({row.set for row in ROWS}):
            for part in LINKED:
                archive.add(data / name / part, f"{name}/{part}")


def describe(train: TrainingSet, held_out: TrainingSet) -> dict[str, Any]:
    return {
        name: {"queries": part.queries, "positives": part.positives, "weights": part.weights}
        for name, part in (("train", train), ("held_out", held_out))
    }


def export_model(source: Path, folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    for name in MODEL_FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, folder / name)
    weights = load_file(source / "model.safetensors")
    halves = {name: one.half() if one.is_floating_point() else one for name, one in weights.items()}
    save_file(halves, folder / "model.safetensors", metadata={"format": "pt"})


def train(data: Path) -> list[Path]:
    """Train here what is not trained yet; where the results are."""
    place = RUNS / "in"
    if not (place / "sets.tar.xz").exists():
        export(data, place)
    made = []
    for name, rows, more in (
        ("fine-tune", [row.name for row in ROWS], []),
        ("tune", [row.name + TUNE for row in ROWS], ["--settings", str(AS_TUNE)]),
    ):
        made.append(RUNS / name)
        if not (made[-1] / "results.json").exists():
            command = [Path(__file__).with_name("train_rows.py"), place, "--out", made[-1], "--rows", *rows, *more]
            subprocess.run([sys.executable, *map(str, command)], check=True)
    return made


# ---- what was trained


@dataclass(frozen=True)
class Training:
    """A trained row: what train_rows.py said of it, and a copy of the set with the trained encoder's vectors."""

    said: Mapping[str, Any]
    folder: Path


def read_trained(data: Path, folders: Sequence[Path], place: Path) -> dict[str, Training]:
    """By row. Of a row that several folders hold, the last one counts."""
    found = {}
    for folder in folders:
        results = json.loads((folder / "results.json").read_text("utf-8"))
        said = {one["row"]: one for one in results if one["chosen"]}
        alone = read_alone(folder / "results-alone.json")
        for file in sorted(folder.glob("vectors-*.npz")):
            with np.load(file) as arrays:
                for name in {one.rpartition(".")[0] for one in arrays.files}:
                    vectors = {side: arrays[f"{name}.{side}"] for side in ("documents", "queries")}
                    told = {**said[name], **alone.get(name, {})}
                    found[name] = Training(told, copy_set(data, name, vectors, place))
    return found


def read_alone(file: Path) -> dict[str, dict[str, Any]]:
    """By row, the seconds of a training with the same settings that had the machine for itself."""
    known = json.loads(file.read_text("utf-8")) if file.exists() else []
    return {one["row"]: {name: one[name] for name in ("seconds", "device", "side_by_side")} for one in known}


def copy_set(data: Path, name: str, vectors: Mapping[str, Any], place: Path) -> Path:
    """A set whose vectors are the trained encoder's; everything else is linked. Documents without text keep theirs."""
    source, folder = data / name.removesuffix(TUNE).rpartition("-")[0], place / name
    (folder / "embeddings").mkdir(parents=True, exist_ok=True)
    for one in LINKED:
        if not (folder / one).exists():
            (folder / one).symlink_to((source / one).resolve())
    for side, part in (("documents", "corpus"), ("queries", "queries")):
        file, found = f"embeddings/{MINILM}.{part}.npy", vectors[side]
        np.save(folder / file, np.where(found.any(axis=1, keepdims=True), found, np.load(source / file)))
    return folder


# ---- measuring


@dataclass(frozen=True)
class Cell:
    """A system on a row."""

    row: Row
    encoder: str
    system: str


def encoders(row: Row) -> Sequence[str]:
    return (MINILM, HYBRID) if row.set in (CLIMATE, LOCOMO) else (MINILM,)


def plan(rows: Sequence[Row], data: Path, trained: Mapping[str, Training]) -> Iterator[tuple[Cell, Run]]:
    """What is not measured by the way of `evokey tune`."""
    for row in rows:
        for encoder in encoders(row):
            if row.name + TUNE not in trained:
                for system in ("none", "guarded"):
                    yield Cell(row, encoder, system), row.run(data / row.set, encoder, system)
            if row.name in trained:
                yield Cell(row, encoder, "fine-tune"), row.run(trained[row.name].folder, encoder, "none")
        yield Cell(row, MINILM, "adapter"), row.run(data / row.set, MINILM, "adapter")


def summarise(cell: Cell, result: Result, trained: Mapping[str, Training]) -> dict[str, Any]:
    learned = result["cpu_seconds"]["evolve"] if cell.system in ("guarded", "adapter") else 0.0
    training = trained[cell.row.name].said if cell.system.startswith("fine-tune") else None
    return {
        **asdict(cell.row),
        "encoder": cell.encoder,
        "system": cell.system,
        "ndcg": result["metrics"][MAIN],
        **{group: result[group][MAIN] if result[group] else None for group in ("taught", "related", "unrelated")},
        "lessons": result["counts"]["taught"],
        "queries": result["queries"],
        "seconds": learned if training is None else training["seconds"],
        "device": CORE if training is None else training["device"],
        "side_by_side": 1 if training is None else training["side_by_side"],
        "settings": result["report"].get("settings") if training is None else training["options"],
    }


def measure(options: argparse.Namespace) -> None:
    trained = read_trained(options.data, options.trained, RUNS / "sets")
    rows = [row for row in ROWS if row.name in (options.rows or [row.name])]
    planned = {run: cell for cell, run in plan(rows, options.data, trained)}
    for outcome in execute(list(planned), RUNS, jobs=options.jobs):
        if outcome.result is None:
            print(f"failed: {outcome.run.file}: {outcome.error}", flush=True)
        else:
            keep(options.out, summarise(planned[outcome.run], outcome.result, trained))
    cases = [TuneCase(row, encoder, options.data / row.set, trained[row.name + TUNE])
             for row in rows if row.name + TUNE in trained for encoder in encoders(row)]  # fmt: skip
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        for made in pool.map(TuneCase.run, cases):
            for one in made:
                keep(options.out, one)


def keep(file: Path, made: Mapping[str, Any]) -> None:
    """In place of what the file had for the same system on the same row."""
    known: list[dict[str, Any]] = json.loads(file.read_text("utf-8")) if file.exists() else []
    rows = sorted([*(one for one in known if label(one) != label(made)), made], key=label)
    write_json(file, rows, indent=1)
    print(*label(made), f"{made['ndcg']:.4f}", flush=True)


@dataclass(frozen=True)
class TuneCase:
    """`evokey tune` on a row, with the encoder that was trained for it (tuned.py)."""

    row: Row
    encoder: str
    folder: Path
    training: Training

    def run(self) -> list[dict[str, Any]]:
        """The untaught index, evolve, and tune."""
        file = RUNS / "tune" / f"{self.row.name}.{self.encoder}.json"
        if not file.exists():
            data = load(self.folder)
            base, trained = (
                Recorded(name, data, read_vectors(folder, MINILM))
                for name, folder in (("base", self.folder), ("trained", self.training.folder))
            )
            case = Case(data, self.row.split(data), base, trained, self.encoder == HYBRID)
            counts = {"lessons": len(case.dealt.taught), "queries": len(case.dealt.tested)}
            write_json(file, {**case.run(), **counts})
        return list(self._describe(json.loads(file.read_text("utf-8"))))

    def _describe(self, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        head = {**asdict(self.row), "encoder": self.encoder, "lessons": found["lessons"], "queries": found["queries"]}
        yield {**head, "system": "none", **found["none"], "seconds": 0.0, "device": CORE}
        yield {**head, "system": "guarded", **found["guarded"], "device": CORE}
        refusal = found["refusal"] if found["lessons"] >= LEAST else f"fewer than {LEAST} questions"
        said, chosen = self.training.said, found["guarded" if refusal else "unguarded"]
        spent = {"seconds": said["seconds"], "device": said["device"], "side_by_side": said["side_by_side"]}
        told = {"refusal": refusal, **{name: found[name] for name in ("held_out", "unguarded", "weights")}}
        yield {**head, "system": "tune", **chosen, **told, **spent, "settings": said["options"]}


def label(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(one[name] for name in ("protocol", "seed", "set", "encoder", "system"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--export", type=Path)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--trained", type=Path, nargs="*", default=[])
    parser.add_argument("--rows", nargs="+", choices=[row.name for row in ROWS])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.export is not None:
        export(options.data, options.export)
    if options.train:
        options.trained = [*options.trained, *train(options.data)]
    if options.out is not None:
        measure(options)


if __name__ == "__main__":
    main()
