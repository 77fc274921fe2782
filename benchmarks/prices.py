"""Tables of speed and cost (results/speed.json); tables.py puts them into the docs."""

from __future__ import annotations

from results import read, table

UNMEASURED = "Not measured yet."


def found() -> dict:
    return read("speed.json")


def cost() -> str:
    rows = [
        [one["encoder"], f"{one['documents']:,}", f"{one['evolve_cpu_seconds']:.2f} s", f"{one['ratio']:.2f}",
         f"{one['add_per_second']:,.0f}", f"{one['feedback_per_second']:,.0f}"]
        for one in found()["growth"]
    ]  # fmt: skip
    return table(["retriever", "documents", "evolve", "ratio", "add / s", "feedback / s"], rows)


def speed() -> str:
    measured, rows = found(), []
    for kind in ("dense", "bm25"):
        one = measured[kind]
        for name, milliseconds in one["median_ms"].items():
            turns = one["in_turn"]["median_ms"]
            cold = f"{turns['evokey'] / turns[name]:.2f}" if name in turns else ""
            ratio = f"{one['median_ms']['evokey'] / milliseconds:.2f}"
            rows.append([f"{kind}: {name}", f"{milliseconds:.2f}", f"{one['p95_ms'][name]:.2f}", ratio, cold])
    head = [
        f"{measured['documents']:,} documents",
        "median ms",
        "p95 ms",
        "evokey takes × as long",
        "in turn, × as long",
    ]
    return table(head, rows)


def rivals() -> str:
    measured = found().get("rivals")
    if measured is None:
        return UNMEASURED
    rows = []
    for place in ("alone", "among_many"):
        one = measured[place]
        for name in ("guarded", "nudge-n"):
            ratio = f"{one['ratio']:.2f}" if name == "guarded" else ""
            seconds, quality = f"{one[name]['cpu_seconds']:.2f} s", f"{one[name]['nDCG@10']:.3f}"
            rows.append([f"{one['documents']:,}", name, seconds, quality, ratio])
    return table(["documents", "system", "evolve, or fit", "nDCG@10", "takes × as long as NUDGE-N"], rows)


def waiting() -> str:
    one = found().get("expansion")
    if one is None:
        return UNMEASURED
    rows = [[name, f"{milliseconds:,.2f}"] for name, milliseconds in one["median_ms"].items()]
    said = (
        f"{one['queries']} queries among {one['documents']:,} documents, {one['model']}, at most {one['max_tokens']} "
        f"tokens: plain search is {one['ratio']:,.0f} × as fast."
    )
    return f"{table(['search', 'median ms'], rows)}\n\n{said}"


TABLES = {"cost": cost, "speed": speed, "rivals": rivals, "waiting": waiting}
