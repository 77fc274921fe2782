"""The demo's work: index the standard library's documentation, teach half of the wordings, evolve, measure.

Each intent has four differently worded questions; two of them teach. Measured before and after are the taught
wordings, the other wordings of the same intents, and questions on other entries that no teaching touches.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from evokey.demo.stdlib import entries
from evokey.evolution.ndcg import ideal_dcg, ndcg
from evokey.memory import Memory
from evokey.types import Document, EpochReport, Explanation

GROUPS = ("taught wordings", "other wordings", "untouched questions")
TEACHER = "demo"
Tracker = Callable[[Iterable[Any], str, int], Iterable[Any]]
"""Shows progress through (items, what, how many)."""


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    relevant: tuple[str, ...]
    group: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    group: str
    questions: int
    before: float
    after: float
    first_before: float
    first_after: float
    """Share of the questions whose first hit is right."""


@dataclass(frozen=True, slots=True)
class Story:
    """A question whose answer changed, and why."""

    question: str
    before: Sequence[str]
    after: Sequence[str]
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class Outcome:
    documents: int
    lessons: int
    rows: Sequence[Row]
    stories: Sequence[Story]
    report: EpochReport

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"report": self.report.to_dict(), "python": platform.python_version()}


def questions() -> list[Question]:
    """Of every intent two wordings teach: the first and third, or the second and fourth, in turn."""
    lines = (resources.files("evokey.demo") / "questions.jsonl").read_text("utf-8").splitlines()
    found = []
    for turn, line in enumerate(lines):
        intent = json.loads(line)
        for index, text in enumerate(intent["questions"]):
            group = GROUPS[2] if intent["group"] == "untouched" else GROUPS[(index + turn) % 2]
            found.append(Question(text, tuple(intent["relevant"]), group))
    return found


def documents() -> list[Document]:
    return [Document(e.id, e.text, e.title, {"kind": e.kind, "module": e.module}) for e in entries()]


def run(memory: Memory, corpus: Sequence[Document], track: Tracker) -> Outcome:
    asked = questions()
    for start in track(range(0, len(corpus), 256), "indexing", -(-len(corpus) // 256)):
        memory.add(corpus[start : start + 256])
    before = [_answers(memory, one) for one in track(asked, "asking the untaught index", len(asked))]
    lessons = [one for one in asked if one.group == GROUPS[0]]
    for one in track(lessons, "teaching", len(lessons)):
        memory.feedback(one.text, relevant=one.relevant, actor=TEACHER)
    report = memory.evolve()
    after = [_answers(memory, one) for one in track(asked, "asking again", len(asked))]
    rows = [_row(group, asked, before, after) for group in GROUPS]
    return Outcome(len(memory), len(lessons), rows, _stories(memory, asked, before, after), report)


def _answers(memory: Memory, question: Question) -> list[str]:
    return [hit.id for hit in memory.search(question.text)]


def quality(answers: Sequence[str], relevant: Sequence[str]) -> float:
    """nDCG@10 of the ids found."""
    right = {id: place for place, id in enumerate(relevant)}
    numbers = [right.get(id, len(right)) for id in answers]
    grades = dict.fromkeys(range(len(right)), 1.0)
    return ndcg(numbers, grades) if ideal_dcg(grades) else 0.0


def _row(group: str, asked: Sequence[Question], before: Sequence[list[str]], after: Sequence[list[str]]) -> Row:
    inside = [place for place, one in enumerate(asked) if one.group == group]
    means = []
    for found in (before, after):
        means.append(np.mean([quality(found[place], asked[place].relevant) for place in inside]))
    for found in (before, after):
        means.append(np.mean([bool(set(found[place][:1]) & set(asked[place].relevant)) for place in inside]))
    return Row(group, len(inside), *map(float, means))


def _stories(
    memory: Memory, asked: Sequence[Question], before: Sequence[list[str]], after: Sequence[list[str]], count: int = 3
) -> list[Story]:
    """Untaught wordings that rose from nowhere to a right first answer; the shortest, of different answers."""
    stories: dict[str, Story] = {}
    for place in sorted(range(len(asked)), key=lambda place: len(asked[place].text)):
        one, answer = asked[place], (after[place] or [""])[0]
        lost = not set(before[place][:5]) & set(one.relevant)
        if one.group == GROUPS[1] and lost and answer in one.relevant and answer not in stories and len(one.text) > 30:
            explanation = memory.explain(answer, one.text)
            stories[answer] = Story(one.text, before[place][:3], after[place][:3], explanation)
        if len(stories) == count:
            break
    return list(stories.values())


def plot(outcome: Outcome, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.2), layout="constrained")
    places = np.arange(len(outcome.rows))
    for shift, values, colour, name in (
        (-0.19, [row.before for row in outcome.rows], "#b8c4d0", "untaught index"),
        (0.19, [row.after for row in outcome.rows], "#1f6f54", "after one evolve"),
    ):
        bars = axes.bar(places + shift, values, 0.36, color=colour, label=name, zorder=2)
        axes.bar_label(bars, fmt="%.2f", padding=3, fontsize=10)
    axes.set_xticks(places, [f"{row.group}\n{row.questions} questions" for row in outcome.rows], fontsize=10)
    axes.set_ylabel("nDCG@10")
    axes.set_ylim(0, 1.12)
    axes.grid(axis="y", color="#e6e9ec", zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper right")
    axes.set_title(
        f"{outcome.lessons} lessons over {outcome.documents:,} entries of the Python documentation",
        loc="left",
        fontsize=11,
    )
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
