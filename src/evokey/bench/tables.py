"""Results → tables: what each system reaches, for whom, whether it is luck, what a larger budget gives, and its price.

Every table is a list of rows, written as Markdown (all in one page), as CSV (one file each) and as JSON (all in one).
"""

from __future__ import annotations

import csv
import inspect
import io
import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evokey.bench import significance
from evokey.bench.calibration import calibration
from evokey.bench.grid import Grid, Row, Setting
from evokey.bench.measures import MAIN, MEASURES
from evokey.bench.protocols import GROUPS
from evokey.bench.runs import DISTANCES, Result, results, summarise
from evokey.bench.systems import REFERENCE, UNTAUGHT
from evokey.evolution.saturation import Saturation


def quality(grid: Grid) -> list[Row]:
    """nDCG@10 of the tested queries, mean over seeds."""
    rows = []
    for setting in grid.settings:
        known = {policy: grid.mean(setting, policy) for policy in grid.policies}
        before, after = known.get(UNTAUGHT), known.get(REFERENCE)
        change = after / before - 1 if before and after is not None else None
        rows.append({**_columns(setting), **known, "change": change})
    return rows


def groups(grid: Grid) -> list[Row]:
    """nDCG@10 of taught, untaught, related and unrelated queries, apart."""
    return [
        {
            **_columns(setting),
            "policy": policy,
            **{group: grid.mean(setting, policy, group) for group in GROUPS},
            "queries": " / ".join(str(found[0]["counts"][group]) for group in GROUPS),
        }
        for setting in grid.settings
        for policy, found in grid.of(setting).items()
    ]


def differences(grid: Grid) -> list[Row]:
    """The guarded policy against every other. Each query's score is averaged over the seeds first; then the interval of
    95 % by drawing queries again, and p by paired randomisation, corrected by Holm over the whole table."""
    pairs = {
        (setting, other): grid.compare(setting, REFERENCE, other)
        for setting in grid.settings
        for other in grid.of(setting)
        if other != REFERENCE and REFERENCE in grid.of(setting)
    }
    corrected = significance.holm({key: one.p for key, one in pairs.items()})
    rows = []
    for (setting, other), one in pairs.items():
        found = {name: value for name, value in asdict(one).items() if name != "p"}
        rows.append({**_columns(setting), "against": other, **found, "p": one.p, "p_holm": corrected[setting, other]})
    return rows


def budget(grid: Grid) -> list[Row]:
    """Mean gain in nDCG@10 over the untaught index, by the share that teaches: over the sets that have every share."""
    rows = []
    shared: dict[tuple[str, str], dict[str, dict[float, float]]] = defaultdict(lambda: defaultdict(dict))
    for setting in grid.settings:
        before = grid.mean(setting, UNTAUGHT)
        if setting.protocol != "holdout" or setting.rate is None or before is None:
            continue
        for policy in grid.of(setting):
            after = grid.mean(setting, policy)
            if policy != UNTAUGHT and after is not None:
                shared[setting.encoder, policy][setting.dataset][setting.rate] = after - before
    for (encoder, policy), sets in shared.items():
        rates = sorted({rate for gains in sets.values() for rate in gains})
        whole = [gains for gains in sets.values() if len(gains) == len(rates)]
        if len(rates) > 1 and whole:
            found = {f"{rate:g}": statistics.fmean(gains[rate] for gains in whole) for rate in rates}
            rows.append({"encoder": encoder, "policy": policy, "sets": len(whole), **found})
    return rows


def prices(grid: Grid) -> list[Row]:
    """Seconds to teach and to evolve (cpu: of processors), and milliseconds of a search (median), mean over seeds."""
    return [
        {
            **_columns(setting),
            "policy": policy,
            "lessons": found[0]["counts"]["taught"],
            "teach_s": _seconds(found, "seconds", "teach"),
            "teach_cpu_s": _seconds(found, "cpu_seconds", "teach"),
            "evolve_s": _seconds(found, "seconds", "evolve"),
            "evolve_cpu_s": _seconds(found, "cpu_seconds", "evolve"),
            "search_ms": _average(one.get("search_ms") for one in found),
        }
        for setting in grid.settings
        for policy, found in grid.of(setting).items()
    ]


def _seconds(found: Iterable[Result], clock: str, what: str) -> float | None:
    return _average(one.get(clock, {}).get(what) for one in found)


def _average(found: Iterable[float | None]) -> float | None:
    values = [one for one in found if one is not None]
    return statistics.fmean(values) if values else None


def streams(grid: Grid) -> list[Row]:
    """nDCG@10 after every batch of a stream or curve (again: questions that taught; next: the next batch)."""
    rows = []
    for setting in grid.settings:
        for policy, found in grid.of(setting).items():
            for points in zip(*(one["stream"] for one in found if one.get("stream")), strict=False):
                means = {part: _mean(point.get(part) for point in points) for part in STEPS}
                rows.append({**_columns(setting), "policy": policy, "taught": points[0]["taught"], **means})
    return rows


STEPS = ("metrics", "related", "unrelated", "again", "next")
"""Questions that are reported apart after every batch."""


def _mean(found: Iterable[Mapping[str, float] | None]) -> float | None:
    return _average(one[MAIN] for one in found if one)


def keys(grid: Grid) -> list[Row]:
    """How far the keys of touched documents have moved after every batch of a stream: 1 − cosine, or added weight."""
    rows = []
    for setting in grid.settings:
        for policy, found in grid.of(setting).items():
            for points in zip(*(one["stream"] for one in found if one.get("stream")), strict=False):
                for retriever in points[0].get("keys", ()):
                    states = [point["keys"][retriever] for point in points]
                    means = {part: _average(one[part] for one in states) for part in ("moved", *DISTANCES)}
                    head = {**_columns(setting), "policy": policy, "taught": points[0]["taught"]}
                    rows.append({**head, "retriever": retriever, "kind": states[0]["kind"], **means})
    return rows


def saturation(grid: Grid) -> list[Row]:
    """The paper's stopping rule along a stream (first seed): the largest gain of a batch, the bar of 95 % of the best
    so far, and whether three batches in a row stayed below, so that keys evolve."""
    rows = []
    for setting in grid.settings:
        for policy, found in grid.of(setting).items():
            for retriever, gains in found[0].get("gains", {}).items():
                state = Saturation()
                for batch, gain in enumerate(gains, 1):
                    bar, state = (1 - state.margin) * state.best, state.after(gain)
                    head = {**_columns(setting), "policy": policy, "retriever": retriever, "batch": batch}
                    rows.append({**head, "gain": gain, "bar": bar, "saturated": state.saturated})
                    state = state.restart() if state.saturated else state
    return rows


def answers(grid: Grid) -> list[Row]:
    """Answers from what each system found first, against gold answers, and the judge's grade from 0 to 100 (graded: the
    share that got one); mean over seeds. p: token F1 against the untaught index, each question averaged over seeds."""
    rows = []
    for setting in grid.settings:
        all_seeds = {policy: [one.get("answers") for one in ones] for policy, ones in grid.of(setting).items()}
        made = {policy: known for policy, ones in all_seeds.items() if (known := [one for one in ones if one])}
        scores = {policy: significance.average(map(_f1, ones)) for policy, ones in made.items()}
        for policy, ones in made.items():
            head = {**_columns(setting), "policy": policy, "model": ones[0]["model"], "questions": len(scores[policy])}
            means = {name: _average(one["means"].get(name) for one in ones) for name in ones[0]["means"]}
            graded = _average(float(row["judge"] is not None) for one in ones for row in one["rows"] if "judge" in row)
            p = significance.compare(scores[policy], scores[UNTAUGHT]).p if UNTAUGHT in scores else None
            rows.append({**head, **means, "graded": graded, "p": None if policy == UNTAUGHT else p})
    return rows


def _f1(made: Mapping[str, Any]) -> dict[str, float]:
    return {row["id"]: row["token-f1"] for row in made["rows"]}


def everything(grid: Grid) -> list[Row]:
    """Every measure of every group, mean over seeds."""
    rows = []
    for setting in grid.settings:
        for policy, found in grid.of(setting).items():
            for group in ("metrics", *GROUPS):
                values = {measure: grid.mean(setting, policy, group, measure) for measure in MEASURES}
                if any(value is not None for value in values.values()):
                    name = "tested" if group == "metrics" else group
                    rows.append({**_columns(setting), "policy": policy, "seeds": len(found), "group": name, **values})
    return rows


def _columns(setting: Setting) -> dict[str, Any]:
    return {"set": setting.dataset, "encoder": setting.encoder, "protocol": setting.how}


LONG = ("everything", "keys", "saturation")
"""Tables for machines: not on the page."""
TABLES: dict[str, Callable[[Grid], list[Row]]] = {
    "quality": quality,
    "groups": groups,
    "differences": differences,
    "budget": budget,
    "prices": prices,
    "streams": streams,
    "keys": keys,
    "saturation": saturation,
    "answers": answers,
    "calibration": calibration,
    "everything": everything,
}


# ---- writing


def write(folder: Path) -> list[Path]:
    """All tables of a folder of results, beside them."""
    found = results(folder)
    grid = Grid(found)
    made = {name: table(grid) for name, table in TABLES.items()}
    made = {name: rows for name, rows in made.items() if rows}
    page = [
        f"## {name}\n\n{inspect.getdoc(TABLES[name])}\n\n{markdown(rows, best=name == 'quality')}"
        for name, rows in made.items()
        if name not in LONG
    ]
    paths = {
        folder / "tables.md": "\n\n".join(["# Results", *page]) + "\n",
        folder / "tables.json": _json(made),
        folder / "results.json": json.dumps([summarise(one) for one in found], ensure_ascii=False, indent=1) + "\n",
        **{folder / f"{name}.csv": _csv(rows) for name, rows in made.items()},
    }
    for path, text in paths.items():
        path.write_text(text, "utf-8")
    return list(paths)


def markdown(rows: Sequence[Row], *, best: bool = False) -> str:
    """best: the best number of a row stands out."""
    head = _head(rows)
    lines = [head, ["---" if isinstance(rows[0].get(name), str) else "---:" for name in head]]
    for row in rows:
        top = max((row[name] for name in head if _is_score(name, row)), default=None) if best else None
        lines.append([_format(name, row.get(name), bold=_is_score(name, row) and row[name] == top) for name in head])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _is_score(name: str, row: Row) -> bool:
    return name not in ("change", "sets") and isinstance(row.get(name), float)


def _format(name: str, value: Any, *, bold: bool) -> str:
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value).replace("|", "\\|")
    if name == "change":
        return f"{value:+.1%}"
    shown = (
        f"{value:+.4f}"
        if name in ("difference", "low", "high", "worst")
        else f"{value:.4f}"
        if name in ("p", "p_holm")
        else f"{value:.3f}"
    )
    return f"**{shown}**" if bold else shown


def _short(row: Row) -> Row:
    return {name: round(one, 6) if isinstance(one, float) else one for name, one in row.items()}


def _json(tables: Mapping[str, Sequence[Row]]) -> str:
    """One row per line."""
    parts = []
    for name, rows in tables.items():
        lines = ",\n".join(json.dumps(_short(row), ensure_ascii=False) for row in rows)
        parts.append(f"{json.dumps(name)}: [\n{lines}\n]")
    return "{" + ",\n".join(parts) + "}\n"


def _csv(rows: Sequence[Row]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, _head(rows), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(_short, rows))
    return file.getvalue()


def _head(rows: Sequence[Row]) -> list[str]:
    """The columns that any row has, without those that are empty everywhere."""
    return [
        name
        for name in dict.fromkeys(name for row in rows for name in row)
        if any(row.get(name) is not None for row in rows)
    ]
