"""Untaught retrieval, retriever × keys: nDCG, recall and MRR of every pair on every data set.

    python benchmarks/grid.py DATA_DIR… --encoder bm25 wordllama all-MiniLM-L6-v2 --keys full title --out FILE

`bm25+wordllama` is a hybrid. Pairs that are in FILE already are not measured again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import evokey
from evokey.bench import protocols
from evokey.bench.data import Dataset, load
from evokey.bench.measures import MAIN, MEASURED_DEPTH, evaluate, mean
from evokey.bench.runs import write_json
from evokey.bench.systems import Plain

KEYS = ["full", "title", "abstract", "keywords", "chunks"]


def measure(data: Dataset, encoder: str, keys: str) -> dict[str, Any]:
    questions = protocols.questions(data)
    with tempfile.TemporaryDirectory() as folder, evokey.open(folder, encoder=encoder.split("+"), keys=keys) as memory:
        memory.add(data.documents)
        plain = Plain(memory)
        values = evaluate(questions, {one.id: plain.rank(one, MEASURED_DEPTH) for one in questions})
    return {"documents": len(data.documents), "queries": len(questions), "measures": mean(values, values)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="DATA_DIR")
    parser.add_argument("--encoder", nargs="+", default=["bm25", "wordllama"], help="names; a hybrid as bm25+wordllama")
    parser.add_argument("--keys", nargs="+", default=KEYS, choices=KEYS)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = json.loads(options.out.read_text("utf-8")) if options.out.exists() else []
    for folder, encoder, keys in product(options.folders, options.encoder, options.keys):
        row = {"dataset": folder.name, "encoder": encoder, "keys": keys}
        if any(row.items() <= one.items() for one in rows):
            continue
        rows.append(row | measure(load(folder), encoder, keys))
        write_json(options.out, rows, indent=1)
        print(*row.values(), f"{rows[-1]['measures'][MAIN]:.4f}", flush=True)


if __name__ == "__main__":
    main()
