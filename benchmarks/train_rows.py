"""Fine-tune an encoder for each row of the table of training.py: the part that is worth a GPU.

    python benchmarks/train_rows.py FOLDER --out OUT [--rows NAME …] [--settings N …] [--jobs N] [--seconds S]
    python benchmarks/train_rows.py FOLDER --out OUT --again RESULTS

FOLDER is what `training.py --export` writes: model/, rows.json.xz and sets.tar.xz. Needs numpy, torch and
sentence-transformers, and of evokey the module of training alone. Several trainings run side by side; the settings with
the best score of the held-out fifth of the lessons win a row. OUT gets results.json and the vectors of all documents
and queries, in numbers of 16 bits. After so many seconds no further training begins, and somewhat later those that
still run are given up. --again: the settings that won in an earlier results.json, one training after another, for their
seconds. --sets: also write the sets there, with vectors of the untrained model beside them.
"""

from __future__ import annotations

import argparse
import json
import lzma
import multiprocessing
import os
import shutil
import sys
import tarfile
import tempfile
import time
import types
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).parents[1] / "src" / "evokey"
LARGEST = 15 * 2**20
"""Bytes of a file of vectors."""
SETTINGS: list[dict[str, Any]] = [
    {"learning_rate": 5e-5, "hard_negatives": 2, "batch_size": 32},
    {"learning_rate": 1e-4, "hard_negatives": 2, "batch_size": 32},
    {"learning_rate": 5e-5, "hard_negatives": 0, "batch_size": 64},
    {"learning_rate": 2e-5, "hard_negatives": 4, "batch_size": 32},
    {"learning_rate": 1e-4, "hard_negatives": 0, "batch_size": 64},
    {"learning_rate": 2e-4, "hard_negatives": 4, "batch_size": 64},
]
"""Tried in this order."""
EPOCHS, MODEL = 12, "all-MiniLM-L6-v2"
GRACE = 130.0
"""Seconds for trainings that have begun."""


@dataclass(frozen=True)
class Part:
    """A TrainingSet without what makes one."""

    queries: list[str]
    texts: list[str]
    positives: list[list[int]]
    weights: list[list[float]]

    @property
    def negatives(self) -> list[list[int]]:
        return [[] for _ in self.queries]


@dataclass(frozen=True)
class Job:
    row: str
    settings: int
    folder: Path
    scratch: Path
    epochs: int = EPOCHS
    threads: int = 2
    deadline: float = float("inf")
    """Of the clock, not of this training."""

    @property
    def vectors(self) -> Path:
        return self.scratch / f"{self.row}.{self.settings}.npz"


class TooLate(Exception):
    pass


def neural() -> Any:
    """The module of training, without the rest of evokey, which needs more than this machine has."""
    if "evokey" not in sys.modules:
        package = types.ModuleType("evokey")
        package.__path__ = [str(SOURCE)]
        sys.modules["evokey"] = package
    from evokey.tuning import neural as found

    return found


def read_rows(folder: Path) -> dict[str, Any]:
    with lzma.open(folder / "rows.json.xz", "rt", encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


def read_set(folder: Path) -> dict[str, list[str]]:
    """The texts of documents and queries, in the order of their files."""
    parts = {}
    for name, file in (("documents", "corpus.jsonl"), ("queries", "queries.jsonl")):
        lines = (folder / file).read_text("utf-8").splitlines()
        known = [json.loads(line) for line in lines if line.strip()]
        parts[name] = [f"{one.get('title', '')} {one['text']}".strip() for one in known]
    return parts


def run(job: Job) -> dict[str, Any]:
    """Train one row with one of the settings, and write the vectors."""
    os.environ["RAYON_NUM_THREADS"] = str(job.threads)
    import torch

    torch.set_num_threads(job.threads)
    module, row = neural(), read_rows(job.folder)[job.row]
    known = read_set(job.scratch / "sets" / row["set"])
    texts = list(dict.fromkeys(text for text in known["documents"] if text))
    data, held_out = (Part(texts=texts, **row[name]) for name in ("train", "held_out"))
    options = module.TrainingOptions(epochs=job.epochs, **SETTINGS[job.settings])
    place = job.scratch / f"{job.row}.{job.settings}"
    trained = module.train(job.folder / "model", data, held_out, place, options, lambda _: check_time(job))
    encode(trained.model, known, job.vectors)
    shutil.rmtree(place)
    return {"row": job.row, **{**asdict(trained), "model": None}, "options": asdict(options)}


def check_time(job: Job) -> None:
    if time.time() > job.deadline:
        raise TooLate(f"{job.row} {SETTINGS[job.settings]}")


def encode(model: Path, known: dict[str, list[str]], file: Path) -> None:
    """Vectors of all documents and queries of a set."""
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(str(model), local_files_only=True).float()
    made = {}
    for name, call in (("documents", encoder.encode_document), ("queries", encoder.encode_query)):
        texts = known[name]
        found = call(texts, batch_size=128, normalize_embeddings=True, show_progress_bar=False)
        found[[place for place, text in enumerate(texts) if not text.strip()]] = 0
        made[name] = found.astype(np.float16)
    np.savez(file, **made)


def write_sets(folder: Path, place: Path) -> None:
    """The sets with vectors of the model as it came, as training.py reads them."""
    with tarfile.open(folder / "sets.tar.xz") as archive:
        archive.extractall(place, filter="data")
    for one in sorted(place.iterdir()):
        (one / "embeddings").mkdir(exist_ok=True)
        encode(folder / "model", read_set(one), place / "vectors.npz")
        with np.load(place / "vectors.npz") as made:
            for side, part in (("documents", "corpus"), ("queries", "queries")):
                np.save(one / "embeddings" / f"{MODEL}.{part}.npy", made[side])
    (place / "vectors.npz").unlink()


def plan(options: argparse.Namespace, scratch: Path) -> list[Job]:
    """The first settings for all rows first."""
    threads = max(1, (os.cpu_count() or 1) // options.jobs)
    deadline = time.time() + options.seconds + GRACE
    common = Job("", 0, options.folder.resolve(), scratch, options.epochs, threads, deadline)
    if options.again is not None:
        known = [one for one in json.loads(options.again.read_text("utf-8")) if one["chosen"]]
        pairs = [(one["row"], one["settings"]) for one in known if one["row"] in (options.rows or [one["row"]])]
    else:
        rows = options.rows or list(read_rows(options.folder))
        pairs = [(row, settings) for settings in options.settings for row in rows]
    return [replace(common, row=row, settings=settings) for row, settings in pairs]


def train_all(jobs: list[Job], workers: int, seconds: float) -> dict[Job, dict[str, Any]]:
    began, found, waiting = time.perf_counter(), {}, list(reversed(jobs))
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(run, job): job for job in (waiting.pop() for _ in range(min(workers, len(waiting))))}
        while running:
            done = next(as_completed(running))
            job, spent = running.pop(done), time.perf_counter() - began
            try:
                found[job] = {**done.result(), "settings": job.settings, "side_by_side": workers}
                print(f"{spent:.0f} s: {job.row} {SETTINGS[job.settings]} {found[job]['scores']}", flush=True)
            except TooLate as error:
                print(f"{spent:.0f} s: given up: {error}", flush=True)
            if waiting and spent < seconds:
                following = waiting.pop()
                running[pool.submit(run, following)] = following
    return found


def choose(found: dict[Job, dict[str, Any]]) -> dict[str, Job]:
    best: dict[str, Job] = {}
    for job, result in found.items():
        if job.row not in best or result["after"] > found[best[job.row]]["after"]:
            best[job.row] = job
    return best


def write(found: dict[Job, dict[str, Any]], out: Path) -> None:
    """results.json with everything, and the vectors of the best settings, a few rows in each file."""
    best = choose(found)
    results = [{**result, "chosen": best[job.row] == job} for job, result in found.items()]
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    parts: list[dict[str, Any]] = [{}]
    for row in sorted(best):
        arrays = {f"{row}.{name}": array for name, array in np.load(best[row].vectors).items()}
        if sum(array.nbytes for array in (*parts[-1].values(), *arrays.values())) > LARGEST:
            parts.append({})
        parts[-1] |= arrays
    for number, arrays in enumerate(parts):
        np.savez(out / f"vectors-{number}.npz", **arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", nargs="+")
    parser.add_argument("--settings", type=int, nargs="+", default=range(len(SETTINGS)))
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--again", type=Path)
    parser.add_argument("--sets", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.sets is not None:
        write_sets(options.folder, options.sets)
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(options.folder / "sets.tar.xz") as archive:
            archive.extractall(Path(scratch) / "sets", filter="data")
        write(train_all(plan(options, Path(scratch)), options.jobs, options.seconds), options.out)


if __name__ == "__main__":
    main()
