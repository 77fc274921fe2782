"""The tables of docs/scaling.md that have to do with stores."""

from __future__ import annotations

from collections.abc import Callable

from results import read, table


def ann_libraries() -> str:
    found = read("ann.json")["indexes"]
    widths = list(next(iter(found.values()))["widths"])
    rows = [
        [name, f"{one['build_seconds']:.0f} s", str(one["bytes_per_document"]),
         *(f"{at['recall']:.3f} at {at['per_second']:,}" for at in one["widths"].values()),
         f"{one['filtered']['recall']:.3f} at {one['filtered']['per_second']:,}" if "filtered" in one else "–"]
        for name, one in found.items()
    ]  # fmt: skip
    return table(["index", "build", "bytes/document", *(f"width {width}" for width in widths), "a tenth allowed"], rows)


TABLES: dict[str, Callable[[], str]] = {"ann_libraries": ann_libraries}
