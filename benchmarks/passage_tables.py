"""Tables of passages.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from results import better, read, table

FILE = "passages.json"
RECALLS = ("recall@1", "recall@3", "recall@5", "recall@10")


def _part(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read(FILE).get(name, [])
    return found


def _groups(found: Iterable[dict[str, Any]], *names: str) -> list[list[dict[str, Any]]]:
    """The rows that agree in these, in their order."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in found:
        groups.setdefault(tuple(one[name] for name in names), []).append(one)
    return list(groups.values())


def recall() -> str:
    rows = []
    for group in _groups(_part("recall"), "set", "encoder"):
        columns = [better(*(one[name] for one in group)) for name in (*RECALLS, "ndcg@10")]
        for one, *shown in zip(group, *columns, strict=True):
            of = f"{one['set']} ({one['documents']} of {one['mean characters']:,.0f} characters)"
            rows.append([of, one["encoder"], one["system"], *shown, f"{one['characters']:,.0f}"])
    head = ["set", "retriever", "system", *RECALLS, "nDCG@10 of documents", "characters of a passage"]
    asked = {one["set"]: one["questions"] for one in _part("recall")}
    return f"{table(head, rows)}\n\nQuestions: {', '.join(f'{name} {count}' for name, count in asked.items())}."


def short() -> str:
    rows = []
    for group in _groups(_part("short"), "set", "encoder"):
        full, *others = group
        shown = [f"{one['ndcg@10']:.4f}{' (same)' if one['same'] else ''}" for one in others]
        rows.append([full["set"], full["encoder"], f"{full['ndcg@10']:.4f}", *shown])
    names = [one["system"] for one in _groups(_part("short"), "set", "encoder")[0][1:]]
    return table(["set", "retriever", "full", *names], rows)


def row_sizes() -> str:
    rows = [
        [one["encoder"], one["keys"], f"{one['rows']:,}", f"{one['disk']:,.0f}", f"{one['memory']:,.0f}"]
        for one in _part("rows")
    ]
    return table(["retriever", "keys", "rows", "bytes of a row on disk", "in memory beside the mapped file"], rows)


def speed() -> str:
    rows = [
        [
            "taught" if one["taught"] else "untaught",
            *(f"{one['median us'][name]:.0f} µs" for name in ("one row", "three rows")),
            f"{one['ratio']:.2f}",
        ]
        for one in _part("speed")
    ]
    return table(["BM25, 100,002 rows, compiled", "one row each", "three rows each", "ratio"], rows)


def taught() -> str:
    rows = []
    for one in _part("taught"):
        before, after, own = one["before"], one["after"], one["taught"]
        rows.append(
            [one["set"], one["keys"], *better(before["ndcg@10"], after["ndcg@10"]), f"{own['ndcg@10']:.3f}",
             *better(before["recall@1"], after["recall@1"]), f"{own['recall@1']:.3f}"]
        )  # fmt: skip
    head = ["set", "keys", "nDCG@10 untaught", "taught, other questions", "taught questions",
            "passage first, untaught", "taught, other questions", "taught questions"]  # fmt: skip
    return table(head, rows)


def answers() -> str:
    rows = []
    for group in _groups(_part("answers"), "set"):
        columns = [better(*(one[name] for one in group)) for name in ("held", "token-f1")]
        rows += [
            [one["set"], one["system"], f"{held} of {one['questions']}", f"{words} of {one['answered']}"]
            for one, held, words in zip(group, *columns, strict=True)
        ]
    return table(["set", "the model reads", "share with the gold passage", "token F1 of the answers"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "passages_recall": recall,
    "passages_short": short,
    "passages_rows": row_sizes,
    "passages_speed": speed,
    "passages_taught": taught,
    "passages_answers": answers,
}
