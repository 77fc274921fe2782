"""The tables of docs/scaling.md that have to do with stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def overlay_growth() -> str:
    found = read("propagation.json")["growth"]
    by = {(one["exponent"], one["lessons"]): one for one in found}
    exponents, lessons = sorted({one["exponent"] for one in found}), sorted({one["lessons"] for one in found})
    rows = [
        [f"{count:,}", *(f"{by[one, count]['documents']:,} ({by[one, count]['overlay_mb']:,} MB)" for one in exponents)]
        for count in lessons
    ]
    return table(["lessons", *(f"s = {one}" for one in exponents)], rows)


def propagation() -> str:
    rows = [
        [name, *(f"{seconds:.1f} s" for seconds in one["seconds_until"].values()),
         f"{one['answered_by_an_older_epoch']:.1%}"]
        for name, one in read("propagation.json")["propagation"].items()
    ]  # fmt: skip
    return table(["", "half", "99 %", "all", "answered by an older epoch"], rows)


def million() -> str:
    """What the store does beside the bare libraries: milliseconds at a recall."""
    searched = read("million.json")["search"]
    widths = {"faiss": searched["width"], "evokey": searched["width"]}
    widths |= {name: one["width"] for name, one in searched["widths"].items()}
    rows = []
    for name, one in searched["seconds"].items():
        recall = searched["recall"].get(name)
        rows.append(
            [name, str(widths.get(name, "")), "" if recall is None else f"{recall:.3f}",
             f"{one['p50_ms']:.2f}", f"{one['p99_ms']:.2f}"]
        )  # fmt: skip
    return table(["", "width", "recall@10", "p50 ms", "p99 ms"], rows)


def million_peers() -> str:
    """Of a run on a busier machine, in which pgvector was asked in turns with the store."""
    searched = read("million-busy.json")["search"]
    widths = {
        "faiss": searched["width"],
        "evokey": searched["width"],
        "pgvector": searched["widths"]["pgvector"]["width"],
    }
    rows = [
        [name, str(width), f"{searched['recall'][name]:.3f}", f"{searched['seconds'][name]['p50_ms']:.1f}",
         f"{searched['seconds'][name]['p50_ms'] / searched['seconds']['faiss']['p50_ms']:.2f}"]
        for name, width in widths.items()
    ]  # fmt: skip
    return table(["", "width", "recall@10", "p50 ms", "times faiss"], rows)


def million_builds() -> str:
    rows = list[list[str]]()
    for found in (read("million.json"), read("million-busy.json")):
        fill = found["fill"]
        built = _built(fill, fill["until_graph_seconds"], fill["keys_mb"])
        rows.append([f"evokey, documents and ledger included, load {fill['load_before']:.0f}", *built])
        for name in [one for one in ("usearch", "pgvector") if found.get(one, {}).get("done")]:
            one = found[name]
            whole = {"rows": found["documents"], **one}
            rows.append([name, *_built(whole, one["build_seconds"] + one.get("copy_seconds", 0), one["disk_mb"])])
    return table(["", "rows", "build", "of the processor", "peak memory", "index on disk"], rows)


def _built(one: dict[str, Any], seconds: float, disk: int) -> list[str]:
    busy = one.get("processor_seconds", one.get("build_processor_seconds"))
    peak = one.get("peak_rss_mb")
    return [
        f"{one['rows']:,}", f"{seconds:,.0f} s", "" if busy is None else f"{busy:,.0f} s",
        "" if peak is None else f"{peak:,} MB", f"{disk:,} MB",
    ]  # fmt: skip


def million_costs() -> str:
    found = read("million.json")
    fill, opened, taught = found["fill"], found["open"], found["teach"]
    rows = [
        ["documents", f"{found['documents']:,}"],
        ["add all documents", f"{fill['add_seconds']:,.0f} s"],
        ["… until one graph holds them", f"{fill['until_graph_seconds']:,.0f} s"],
        ["… seconds of the processor", f"{fill['processor_seconds']:,.0f} s"],
        ["peak memory while building, mapped files included", f"{fill['peak_rss_mb']:,} MB"],
        ["keys on disk", f"{fill['keys_mb']:,} MB"],
        ["the whole memory on disk (the ledger keeps given vectors, too)", f"{fill['memory_on_disk_mb']:,} MB"],
        ["open", f"{opened['open_seconds']:.1f} s ({opened['open_processor_seconds']:.1f} s of the processor)"],
        ["memory after 200 searches, of which no file's", f"{opened['rss_mb']:,} MB, {opened['own_mb']:,} MB"],
        ["feedback a second, one by one / many at once",
         f"{taught['feedback_per_second']:,} / {taught['feedback_many_per_second']:,}"],
        ["… in a second of the processor",
         f"{taught['feedback_per_processor_second']:,} / {taught['feedback_many_per_processor_second']:,}"],
        [f"evolve with {taught['lessons']:,} lessons, pools current",
         f"{taught['evolve_seconds']:.1f} s ({taught['evolve_processor_seconds']:.1f} s of the processor)"],
        ["ledger for each lesson", f"{taught['bytes_per_lesson']:,} bytes"],
        ["searches with a filter, 1 % / 50 % pass (p50)",
         " / ".join(f"{one['p50_ms']:.2f} ms" for one in found["search"]["filters"].values())],
    ]  # fmt: skip
    return table(["", ""], rows)


def shelves() -> str:
    rows = []
    for one in read("shelves.json")["taught"]:
        ways = one["seconds"]
        rows.append(
            [f"{one['rows']:,}", *(f"{ways[way]['p50_ms']:.1f} ms" for way in ("in the process", "on a shelf")),
             f"{one['megabytes']:,} MB", f"{one['fill_seconds']:.0f} s", f"{one['same']:.1%}"]
        )  # fmt: skip
    header = ["rows", "in the process, p50", "on a shelf, p50", "vectors", "the shelf is filled in", "equal to the bit"]
    return table(header, rows)


def engines() -> str:
    rows = [
        [name, *(f"{share:.4f}" for share in one["overlap@10"].values()),
         f"{one['changed by learning']:.1%}", "yes" if one["erased"] else "no"]
        for name, one in read("engines.json").items()
    ]  # fmt: skip
    return table(["engine", "before", "after", "after forget", "changed by learning", "erased"], rows)


def shared_load() -> str:
    found = read("shared.json")
    searches, lessons, most = found["searches"], found["lessons"], found["capacity, requests/s of all"]
    rows = [
        ["seconds; processes killed and started again", f"{found['seconds']:.0f}; {found['killed']}"],
        ["capacity of all, a second", f"{most['search']} searches and {most['teach']} lessons"],
        ["searches; compared with their epoch as it is read in the end; torn",
         f"{searches['count']:,}; {searches['compared with their epoch']:,}; {searches['torn']}"],
        ["lessons acknowledged; lost; taught twice",
         f"{lessons['acknowledged']:,}; {lessons['lost']}; {lessons['twice']}"],
        ["epochs", f"{found['evolves']['epochs']:,}"],
        ["errors that a caller saw", str(len(found["errors"]))],
        ["search, p50 and p99 since the request came", f"{searches['p50 ms']:,} and {searches['p99 ms']:,} ms"],
    ]  # fmt: skip
    return table(["", ""], rows)


TABLES: dict[str, Callable[[], str]] = {
    "engines": engines,
    "shelves": shelves,
    "shared_load": shared_load,
    "ann_libraries": ann_libraries,
    "million": million,
    "million_costs": million_costs,
    "million_builds": million_builds,
    "million_peers": million_peers,
    "overlay_growth": overlay_growth,
    "propagation": propagation,
}
