"""Does the judge's grade say what gold answers say? Its grades, in five bins, beside how many answers match gold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

from evokey.bench.grid import Grid, Row

MATCH = 0.5
"""Token F1 with the best gold answer from which on an answer counts as a match."""
PASS = 50.0
"""The judge's grade from which on it calls an answer right."""
WIDTH = 20
Answers = list[Mapping[str, Any]]


def calibration(grid: Grid) -> list[Row]:
    """Answers by the judge's grade, and how many of them match gold (token F1 of .5 or more). agreement: share of the
    graded answers that judge (50 or more) and gold both call right, or both wrong; kappa: the same, less what chance
    gives."""
    rows: list[Row] = []
    for (dataset, judge), found in _answers(grid).items():
        head = {"set": dataset, "judge": judge}
        graded = [one for one in found if one["judge"] is not None]
        for low in range(0, 100, WIDTH):
            high = low + WIDTH
            here = [one for one in graded if low <= one["judge"] < high or (high == 100 == one["judge"])]
            rows.append({**head, "grade": f"{low}–{high}", **_match(here)})
        rows.append({**head, "grade": "none given", **_match([one for one in found if one["judge"] is None])})
        rows.append({**head, "grade": "all", **_match(found), **_agree(graded)})
    return rows


def _answers(grid: Grid) -> dict[tuple[str, str], Answers]:
    """By set and judge, each answer to a question once, whichever system's passages led to it."""
    found: dict[tuple[str, str], dict[tuple[str, str], Mapping[str, Any]]] = defaultdict(dict)
    for setting in grid.settings:
        for made in (one["answers"] for ones in grid.of(setting).values() for one in ones if one.get("answers")):
            for row in made["rows"] if made.get("judge") else ():
                found[setting.dataset, made["judge"]][row["id"], row["said"]] = row
    return {key: list(rows.values()) for key, rows in found.items()}


def _match(answers: Answers) -> Row:
    if not answers:
        return {"answers": 0, "match": None, "exact": None, "F1": None}
    return {
        "answers": len(answers),
        "match": _share(one["token-f1"] >= MATCH for one in answers),
        "exact": fmean(one["exact-match"] for one in answers),
        "F1": fmean(one["token-f1"] for one in answers),
    }


def _agree(graded: Answers) -> Row:
    """Agreement, and Cohen's kappa; None where one of them always says the same, so that chance explains everything."""
    if not graded:
        return {}
    said = [(one["judge"] >= PASS, one["token-f1"] >= MATCH) for one in graded]
    agreement = _share(judge == gold for judge, gold in said)
    passed, right = (_share(pair[side] for pair in said) for side in (0, 1))
    chance = passed * right + (1 - passed) * (1 - right)
    return {"agreement": agreement, "kappa": (agreement - chance) / (1 - chance) if chance < 1 else None}


def _share(found: Iterable[bool]) -> float:
    return fmean(map(float, found))
