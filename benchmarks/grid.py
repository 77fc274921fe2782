"""Untaught retrieval, retriever × keys: nDCG@1, 5 and 10, recall and MRR of every pair on every set (naive retrieval).

    python benchmarks/grid.py DATA_DIR… --encoder bm25 wordllama all-MiniLM-L6-v2 --keys full title --out FOLDER

The sets are folders in BEIR layout. `bm25+wordllama` is a hybrid. Each cell is a file in FOLDER/cells, written whole
when it is done; a second run goes on where the first one stopped, and --force begins anew. At the end all cells of the
folder, earlier ones included, are in FOLDER/grid.json and FOLDER/grid.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import ir_measures
from holdout import Collection, encoder_of, written
from ir_measures import RR, R, nDCG
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from tables import MEASURES, grid_table

import evokey

DEPTH = 100
KEYS = ["full", "title", "abstract", "keywords", "chunks"]
FORMULAS = dict(zip(MEASURES, [nDCG @ 1, nDCG @ 5, nDCG @ 10, R @ 5, R @ 10, RR], strict=True))


@dataclass(frozen=True, slots=True)
class Cell:
    folder: Path
    encoder: str
    keys: str

    @property
    def name(self) -> str:
        return f"{self.folder.name} {self.encoder} {self.keys}"

    @property
    def file(self) -> str:
        return f"{self.name.replace(' ', '.').replace('/', '_')}.json"


def measured(cell: Cell, data: Collection, cache: Path | None, bar: Progress) -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory() as folder,
        evokey.open(folder, encoder=encoder_of(cell.encoder, cache), keys=cell.keys) as memory,
    ):
        step = bar.add_task(f"{cell.name}: {len(data.documents):,} documents", total=None)
        memory.add(data.documents)
        bar.update(step, description=f"{cell.name}: queries", total=len(data.test))
        found: dict[str, list[str]] = {}
        for query in data.test:
            found[query] = [hit.id for hit in memory.search(data.queries[query], k=DEPTH)]
            bar.advance(step)
        bar.remove_task(step)
    return {
        "dataset": data.name,
        "encoder": cell.encoder,
        "keys": cell.keys,
        "documents": len(data.documents),
        "queries": len(data.test),
        "measures": judged(data, found),
    }


def judged(data: Collection, found: dict[str, list[str]]) -> dict[str, float]:
    """Means over all judged queries. Ranks stand for scores: equal scores stay in the order that a caller sees."""
    qrels = [ir_measures.Qrel(query, id, grade) for query, grades in data.test.items() for id, grade in grades.items()]
    run = [ir_measures.ScoredDoc(query, id, -rank) for query, ids in found.items() for rank, id in enumerate(ids)]
    means = ir_measures.calc_aggregate(list(FORMULAS.values()), qrels, run)
    return {name: float(means[formula]) for name, formula in FORMULAS.items()}


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    for folder, encoder, keys in product(options.folders, options.encoder, options.keys):
        yield Cell(folder, encoder, keys)


def summarised(folder: Path, options: argparse.Namespace) -> None:
    """All cells of the folder: sets and encoders as they were named, others after them."""

    def place(cell: dict[str, Any]) -> tuple[Any, ...]:
        orders = {"dataset": [one.name for one in options.folders], "encoder": options.encoder, "keys": KEYS}
        return tuple((cell[by] not in order, [*order, cell[by]].index(cell[by])) for by, order in orders.items())

    found = sorted(
        (json.loads(path.read_text("utf-8")) for path in sorted((folder / "cells").glob("*.json"))), key=place
    )
    written(folder / "grid.json", json.dumps(found, indent=1) + "\n")
    written(folder / "grid.md", grid_table(found) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="DATA_DIR")
    parser.add_argument("--encoder", nargs="+", default=["bm25", "wordllama"], help="names; a hybrid as bm25+wordllama")
    parser.add_argument("--keys", nargs="+", default=KEYS, choices=KEYS)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--cache", type=Path, help="folder that keeps what a model has encoded")
    parser.add_argument("--force", action="store_true", help="measure again what is there")
    options = parser.parse_args()
    asked = list(cells(options))
    missing = [cell for cell in asked if options.force or not (options.out / "cells" / cell.file).exists()]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    data: Collection | None = None
    with Progress(*columns) as bar:
        whole = bar.add_task("cells", total=len(asked), completed=len(asked) - len(missing))
        for cell in missing:
            if data is None or data.name != cell.folder.name:
                data = Collection(cell.folder)
            try:
                result = measured(cell, data, options.cache, bar)
            except evokey.EvokeyError as error:
                sys.exit(f"{cell.name}: {error}\nWhat is done is kept; run the same command again to go on.")
            written(options.out / "cells" / cell.file, json.dumps(result, indent=1) + "\n")
            bar.advance(whole)
            bar.console.print(f"{cell.name}: nDCG@10 {result['measures']['nDCG@10']:.4f}", highlight=False)
    summarised(options.out, options)


if __name__ == "__main__":
    main()
