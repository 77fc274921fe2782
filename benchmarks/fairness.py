"""Tables of the paper's rule beside ours, from the result of paper.py; tables.py puts them into the docs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from results import better, read, table

Row = Mapping[str, Any]
Cell = tuple[str, str]
"""Set and retriever."""
Systems = dict[tuple[str, bool], Row]
"""By system, and whether it was taught with expansions."""
UNGATED = "paper:gate=0"
FAIR = {
    "no gate": (UNGATED, False),
    "gate .5": ("paper", False),
    "gate .5, right documents alone": ("paper-right", False),
    "gate .5, expansions": ("paper", True),
    "guarded": ("guarded", False),
    "guarded, expansions": ("guarded", True),
    "NUDGE-N": ("nudge-n", False),
}


def rows(part: str) -> list[Row]:
    found: list[Row] = read("paper-fair.json")
    return [one for one in found if one["part"] == part]


def cells(found: Iterable[Row]) -> dict[Cell, Systems]:
    """By set and retriever, in the order of the file: what each system reaches."""
    kept: dict[Cell, Systems] = {}
    for one in found:
        kept.setdefault((one["set"], one["encoder"]), {})[one["system"], one["expanded"]] = one
    return kept


def show(one: Row | None, best: float) -> str:
    """A value, the best of its line in bold, and the interval of its difference to the untaught index."""
    if one is None:
        return ""
    value = f"{one['ndcg']:.3f}"
    value = f"**{value}**" if value == f"{best:.3f}" else value
    if one["difference"] is None:
        return value
    _, low, high = one["difference"]
    return f"{value} ({low:+.3f} … {high:+.3f})"


def line(systems: Mapping[tuple[str, bool], Row], shown: Iterable[tuple[str, bool]]) -> list[str]:
    some = [systems.get(one) for one in shown]
    best = max(one["ndcg"] for one in some if one is not None)
    return [show(one, best) for one in some]


def passed(one: Row | None) -> str:
    return "" if one is None or one["passed"] is None else f"{one['passed']:.0f}"


def measured(part: str, *systems: str) -> dict[Cell, Systems]:
    """The cells that have all of these systems."""
    found = cells(rows(part)).items()
    return {cell: known for cell, known in found if all((one, False) in known for one in systems)}


def fair() -> str:
    found = []
    for cell, systems in measured("fair", "none", UNGATED, "paper", "paper-right", "guarded").items():
        counts = [passed(systems.get(one)) for one in (("paper", False), ("paper", True))]
        through = " / ".join(one for one in counts if one)
        taught = f"{systems['paper', False]['taught']:.0f}"
        found.append([*cell, *line(systems, [("none", False), *FAIR.values()]), f"{through} of {taught}"])
    head = ["set", "retriever", "untaught", *FAIR, "lessons that passed (expanded)"]
    return table(head, found)


def fair_groups() -> str:
    """Related and unrelated questions under every system."""
    systems = {"untaught": ("none", False), **FAIR}
    found = []
    for cell, known in measured("fair", "none", UNGATED, "paper", "paper-right", "guarded").items():
        for group in ("related", "unrelated"):
            values = [known[one].get(group) if one in known else None for one in systems.values()]
            best = max((value for value in values if value is not None), default=None)
            if best is not None:
                found.append([*cell, group, *(_bold(value, best) for value in values)])
    return table(["set", "retriever", "questions", *systems], found)


def _bold(value: float | None, best: float) -> str:
    if value is None:
        return ""
    return f"**{value:.3f}**" if f"{value:.3f}" == f"{best:.3f}" else f"{value:.3f}"


def tally() -> str:
    """How often each system is above and below the untaught index by a whole interval, and the mean change: over all
    lines, and over those that have expansions."""
    known = list(measured("fair", "none", UNGATED, "paper", "paper-right", "guarded").values())
    expanded = [systems for systems in known if ("paper", True) in systems]
    found = []
    for name, system in FAIR.items():
        parts = ([systems[system] for systems in some if system in systems] for some in (known, expanded))
        found.append([name, *(one for part in parts for one in count(part))])
    return table(["", "lines", "above", "below", "mean", "with expansions", "above", "below", "mean"], found)


def count(some: Sequence[Row]) -> list[str]:
    changes = [one["difference"] for one in some]
    above, below = sum(low > 0 for _, low, _ in changes), sum(high < 0 for _, _, high in changes)
    mean = f"{fmean(change for change, _, _ in changes):+.3f}" if changes else ""
    return [str(len(some)), str(above), str(below), mean]


def gates() -> str:
    names = {UNGATED: "0", "paper:gate=0.1": ".1", "paper": ".5", "paper:gate=1": "1"}
    found = []
    for cell, systems in measured("gates", "none", *names).items():
        shown = line(systems, [("none", False), *((name, False) for name in names)])
        counts = " / ".join(passed(systems[name, False]) for name in names)
        found.append([*cell, *shown, counts])
    return table(["set", "retriever", "untaught", *(f"gate {one}" for one in names.values()), "passed"], found)


Block = tuple[str, str, str]
"""Set, retriever and verifier."""


def blocks() -> dict[Block, dict[float, list[Row]]]:
    """By rate: the untaught index, the paper's rule, the guarded policy."""
    known, found = rows("pipeline"), dict[Block, dict[float, list[Row]]]()
    by = {(one["set"], one["encoder"], one["rate"], one["system"], one["verifier"]): one for one in known}
    for name, encoder, rate, system, verifier in by:
        if system == "paper":
            kinds = (("none", None), ("paper", verifier), ("guarded", verifier))
            found.setdefault((name, encoder, verifier), {})[rate] = [by[name, encoder, rate, *kind] for kind in kinds]
    return found


def pipeline() -> str:
    """Rates in the lines, and their mean; verifiers that accepted nothing are left out."""
    found = []
    for block, rates in blocks().items():
        if not any(paper["lessons"] for _, paper, _ in rates.values()):
            continue
        for rate, some in rates.items():
            best, paper = max(one["ndcg"] for one in some), some[1]
            lessons = f"{paper['lessons']:.0f} of {paper['taught']:.0f}"
            found.append([*block, f"{rate:g}", *(show(one, best) for one in some), lessons, str(paper["methods"])])
        means = [fmean(one["ndcg"] for one in column) for column in zip(*rates.values(), strict=True)]
        found.append([*block, "*mean*", *better(*means), "", ""])
    head = ["set", "retriever", "verifier", "rate", "untaught", "paper's rule", "guarded", "verified", "methods"]
    return table(head, found)


def ablated() -> str:
    """Each change to the rule, as the change of nDCG@10 against the untaught index."""
    known = cells(rows("ablations"))
    systems = list(dict.fromkeys(system for some in known.values() for system, _ in some if system != "none"))
    found = []
    for system in systems:
        some = [one.get((system, False)) for one in known.values()]
        shown = ["" if one is None else f"{one['difference'][0]:+.3f}" for one in some]
        mean = fmean(one["difference"][0] for one in some if one is not None)
        found.append([_name(system), *shown, f"{mean:+.3f}"])
    return table(["rule", *(" ".join(cell) for cell in known), "mean"], found)


def _name(system: str) -> str:
    return "as it is" if system == "paper" else system.removeprefix("paper:").replace(",", ", ")


TABLES = {
    "fair": fair,
    "fair_groups": fair_groups,
    "tally": tally,
    "gates": gates,
    "pipeline": pipeline,
    "ablated": ablated,
}
