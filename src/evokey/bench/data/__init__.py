"""Data sets for the bench: folders (BEIR, BRIGHT, TREC) or names that the hub has → one Dataset.

dataset = load("../data/nfcorpus")      # a folder
dataset = load("demo")                  # the demo's documents and questions
dataset = load("irds:vaswani")          # a set of ir_datasets
dataset = load("biology")               # one of the paper's 13 sets, or another name of BEIR or BRIGHT, from the hub
dataset.judged, dataset.problems
"""

from __future__ import annotations

from pathlib import Path

from evokey.bench.data import beir, bright, demo, irds, trec
from evokey.bench.data.beir import expansions
from evokey.bench.data.dataset import Dataset, Judgements, prefix
from evokey.bench.data.presets import BEIR, BRIGHT, Preset, Reported, preset_of, presets
from evokey.bench.data.statistics import Beside, Statistics, beside, statistics
from evokey.errors import InvalidInput

__all__ = [
    "Beside",
    "Dataset",
    "Judgements",
    "Preset",
    "Reported",
    "Statistics",
    "beside",
    "expansions",
    "load",
    "prefix",
    "preset_of",
    "presets",
    "statistics",
]


def load(name_or_folder: str | Path, split: str = "test", *, cache: Path | None = None) -> Dataset:
    """A folder that is there, else a name. What comes from the hub is kept in `cache`, or in the hub's own cache."""
    path, name = Path(name_or_folder), str(name_or_folder)
    if path.is_dir():
        return _folder(path, split)
    if (found := bright.place(path)) is not None:
        return bright.read(found, split)
    if name == demo.NAME:
        return demo.read(split)
    if name.startswith(irds.PREFIX):
        return irds.read(name, split)
    if name in BRIGHT:
        return bright.from_hub(name, split, cache)
    if name in BEIR or name.startswith("BeIR/"):
        return beir.from_hub(name.removeprefix("BeIR/"), split, cache)
    raise InvalidInput(
        f"{name} is neither a folder nor the name of a data set. Names are: demo, {', '.join(sorted(BEIR | BRIGHT))}; "
        f"other sets that the hub holds in BEIR's form are given as BeIR/<name>, those of ir_datasets as irds:<name>"
    )


def _folder(folder: Path, split: str) -> Dataset:
    if beir.is_beir(folder):
        return beir.read(folder, split)
    if (found := bright.place(folder)) is not None:
        return bright.read(found, split)
    if trec.is_trec(folder):
        return trec.read(folder, split)
    if copied := bright.names(folder):
        raise InvalidInput(
            f"{folder} is a copy of BRIGHT with {len(copied)} sets; name one of them, as in {folder / copied[0]}"
        )
    raise InvalidInput(
        f"{folder} holds no data set. It needs queries.jsonl and qrels/<split>.tsv (BEIR), examples and documents "
        f"(BRIGHT), or topics* and qrels* (TREC)"
    )
