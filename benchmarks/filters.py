"""How long filters take among 260,000 documents: asked first, and asked again. Makes benchmarks/results/filters.json.

Times are of the processor, so that other work on the machine does not count.

python benchmarks/filters.py
"""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evokey import checks
from evokey.ledger.ledger import Ledger
from evokey.types import Document

RESULT = Path(__file__).parent / "results" / "filters.json"
COUNT, REPEATS = 260_000, 5


def document(number: int, chance: random.Random) -> Document:
    metadata = {
        "lang": chance.choice(["en", "de", "fr"]),
        "year": chance.randrange(1990, 2025),
        "owner": f"user {chance.randrange(COUNT)}",
        "author": {"name": f"name {chance.randrange(5_000)}"},
        "path": f"docs/part{number % 1_000}/page{number}.md",
    }
    return Document(str(number), "a text", metadata=metadata)


FILTERS: dict[str, Any] = {
    "equal, 1 of 3": {"lang": "en"},
    "equal, few": {"owner": "user 5"},
    "equal, inside of an object": {"author.name": "name 7"},
    "range": {"year": {"gte": 2020}},
    "not": {"operator": "NOT", "conditions": [{"lang": "en"}]},
    "or of ands": {
        "operator": "OR",
        "conditions": [{"lang": "en", "year": {"lt": 1995}}, {"lang": "de", "year": {"gte": 2020}}],
    },
    "contains": {"path": {"contains": "part77/"}},
    "exists": {"owner": {"exists": True}},
    "in, 260,000 values": {"path": [f"docs/part{number % 1_000}/page{number}.md" for number in range(COUNT)]},
}


def milliseconds(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return (time.process_time() - start) * 1e3


def measure(ledger: Ledger, where: Any) -> dict[str, float]:
    filter, documents = checks.filter(where), ledger.documents
    first = []
    for _ in range(REPEATS):
        documents._resolved.clear()
        first.append(milliseconds(lambda: documents.where(filter)))
    again = [milliseconds(lambda: documents.where(filter)) for _ in range(REPEATS)]
    figures = {"first_ms": statistics.median(first), "again_ms": statistics.median(again)}
    return {"documents": len(documents.where(filter)), **{name: round(one, 3) for name, one in figures.items()}}


def main() -> None:
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder)) as ledger:
        ledger.documents.put([document(number, chance) for number in range(COUNT)], None)
        found = {name: measure(ledger, where) for name, where in FILTERS.items()}
    RESULT.write_text(json.dumps({"documents": COUNT, "filters": found}, indent=1) + "\n")
    for name, figures in found.items():
        print(f"{name:30} {figures}")


if __name__ == "__main__":
    main()
