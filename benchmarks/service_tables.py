"""The tables of docs/service.md."""

from __future__ import annotations

from collections.abc import Callable

from results import read, table

NAMES = {
    "cranfield": "Cranfield", "scifact": "SciFact", "nfcorpus": "NFCorpus", "locomo10": "LoCoMo",
    "climate_fever_evidence": "Climate-FEVER evidence",
}  # fmt: skip
AT = ("begin", "middle", "end")


def ratings() -> str:
    rows = []
    for name, one in read("ratings.json")["sets"].items():
        row = [NAMES[name], f"{one['upvotes']:.0f} / {one['downvotes']:.0f}"]
        for part in ("held out", "taught"):
            figures = (one[f"{way}, {part}"] for way in ("untaught", "ratings", "labels"))
            row += [" / ".join(f"{figure:.3f}" for figure in figures), f"{one[f'share, {part}']:.0%}"]
        rows.append(row)
    heads = [
        "held-out queries: untaught / ratings / labels",
        "share",
        "taught queries: untaught / ratings / labels",
        "share",
    ]
    return table(["set", "votes up / down", *heads], rows)


def comparing() -> str:
    told = read("comparing.json")
    rows = []
    for name, one in told["sets"].items():
        null, blind, held = one["null"], one["blind"], one["held-out queries"]
        few = [f"{one[f'all queries, {gain}']['power']:.0%}" for gain in ("5%", "20%")]
        wins = [f"{kind['wins']} of {kind['comparisons']}" for kind in (null, blind)]
        rows.append([NAMES[name], *wins, f"{held['gain']:+.1%}", f"{held['power']:.0%}", *few])
    both = [f"{one['wins']} of {one['comparisons']} ({one['share']:.1%})" for one in (told["null"], told["blind"])]
    rows.append(["together", *both, "", "", "", ""])
    wins = ["wins without a difference", "wins by blind clicks"]
    heads = [*wins, "gain on held-out queries", "power there", "few queries: +5 %", "+20 %"]
    return table(["set", *heads], rows)


def load() -> str:
    told = read("load.json")
    loop, size, lessons = told["open_loop"], told["memory_mb"], told["lessons"]
    first, again = told["overhead"]["first"], told["overhead"]["again"]
    by_http = " / ".join(f"{one['http_ms']:.1f} (+{one['more_ms']:.1f})" for one in (first, again))
    rows = [
        ["a search with passages, first time / again", f"{first['memory_ms']:.1f} / {again['memory_ms']:.1f} ms"],
        ["the same over HTTP", f"{by_http} ms"],
        ["capacity, closed loop", f"{told['capacity_per_second']:.0f} requests/s"],
        [f"open loop, {loop['seconds']:.0f} s at {loop['rate']:.0f}/s: errors", f"{loop['errors']}"],
        ["search p50 / p95 / p99", latency(loop["search"])],
        ["feedback p50 / p95 / p99", latency(loop["feedback"])],
        ["lessons acknowledged / missing afterwards", f"{lessons['acknowledged']:,} / {lessons['missing']}"],
        ["memory of the process, begin / middle / end", " / ".join(f"{size[at]:.0f} MB" for at in AT)],
    ]  # fmt: skip
    return table([f"{told['set']}, {told['documents']:,} documents, {told['processors']} processors", ""], rows)


def latency(one: dict[str, float]) -> str:
    return f"{one['p50_ms']:.0f} / {one['p95_ms']:.0f} / {one['p99_ms']:.0f} ms (p99 = {one['p99_by_p50']:.1f} × p50)"


TABLES: dict[str, Callable[[], str]] = {"ratings": ratings, "comparing": comparing, "load": load}
