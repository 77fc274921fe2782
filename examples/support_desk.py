"""A support desk's FAQ that learns from closed tickets.

Customers do not use the words of the FAQ. But every closed ticket has the customer's words and the article that solved
it: a table that any help desk exports. Each row is a lesson. Tickets that no article solved are listed: they are what
the FAQ lacks.

    pip install evokey
    python examples/support_desk.py
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from typing import Any

import evokey

DATA = Path(__file__).parent / "data"


def read(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def share_solved(memory: evokey.Memory, tickets: list[dict[str, str]]) -> float:
    """How often the first article that is suggested is the one that solves the ticket."""
    firsts = [[hit.id for hit in memory.search(one["question"], k=1)] for one in tickets]
    return sum(first == [one["article"]] for first, one in zip(firsts, tickets, strict=True)) / len(tickets)


def main(at: Path) -> dict[str, Any]:
    closed, new = read("tickets.csv"), read("new_tickets.csv")
    with evokey.open(at) as memory:
        memory.add(read("faq.csv"))
        before = share_solved(memory, new)
        solved = [one for one in closed if one["article"]]
        memory.feedback_many(
            {"query": one["question"], "relevant": [one["article"]], "actor": one["agent"]} for one in solved
        )
        report = memory.evolve()
        after = share_solved(memory, new)
    gaps = [one["question"] for one in closed if not one["article"]]
    return {"lessons": len(solved), "published": report.published, "before": before, "after": after, "gaps": gaps}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        told = main(Path(folder) / "faq")
    print(
        f"right article first: {told['before']:.0%} before, {told['after']:.0%} after {told['lessons']} closed tickets"
    )
    print("the FAQ has no article for:", *told["gaps"], sep="\n  ")
