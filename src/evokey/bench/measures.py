"""How good rankings are, by ir-measures: nDCG, recall and the reciprocal rank, of each query and on the mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from evokey.bench.protocols import Question
from evokey.errors import UnknownComponent

try:
    import ir_measures
except ModuleNotFoundError as error:
    raise UnknownComponent(f"the benchmark needs {error.name}; install it with: pip install 'evokey[bench]'") from error

MEASURES = {
    "nDCG@1": ir_measures.nDCG @ 1,
    "nDCG@5": ir_measures.nDCG @ 5,
    "nDCG@10": ir_measures.nDCG @ 10,
    "Recall@5": ir_measures.R @ 5,
    "Recall@10": ir_measures.R @ 10,
    "Recall@100": ir_measures.R @ 100,
    "MRR": ir_measures.RR,
}
MAIN, FIRST = "nDCG@10", 10
MEASURED_DEPTH = 100
"""How deep a ranking is judged."""
Values = Mapping[str, Mapping[str, float]]
"""Question id → measure → value."""
Rank = Callable[[Question, int], Sequence[str]]
"""Question, depth → ids of the best documents."""


def evaluate(questions: Iterable[Question], rankings: Mapping[str, Sequence[str]]) -> dict[str, dict[str, float]]:
    """Every measure of every question. A question for which nothing was found scores 0."""
    asked = list(questions)
    qrels = {one.id: {id: int(grade) for id, grade in whole(one.grades).items()} for one in asked}
    run = {
        one.id: {id: float(-place) for place, id in enumerate(_cut(rankings[one.id], one.excluded))} for one in asked
    }
    found = {one.id: dict.fromkeys(MEASURES, 0.0) for one in asked}
    names = {measure: name for name, measure in MEASURES.items()}
    for one in ir_measures.iter_calc(list(names), qrels, {id: scores for id, scores in run.items() if scores}):
        found[one.query_id][names[one.measure]] = float(one.value)
    return found


def _cut(ranking: Sequence[str], excluded: frozenset[str]) -> list[str]:
    """A ranking without the documents to leave out, as deep as is judged."""
    return [id for id in ranking if id not in excluded][:MEASURED_DEPTH]


def whole(grades: Mapping[str, float]) -> Mapping[str, float]:
    """Grades as whole numbers, as judgement files have them: where some are not, all are counted in hundredths."""
    if all(grade == int(grade) for grade in grades.values()):
        return grades
    return {id: round(100 * grade) for id, grade in grades.items()}


def quality(rank: Rank, questions: Iterable[Question]) -> dict[str, float]:
    """nDCG@10 of each question."""
    asked = list(questions)
    values = evaluate(asked, {one.id: rank(one, FIRST + len(one.excluded)) for one in asked})
    return {id: value[MAIN] for id, value in values.items()}


def mean(values: Values, ids: Iterable[str]) -> dict[str, float] | None:
    """The mean of every measure over some questions; None for no question."""
    rows = [values[id] for id in ids]
    return {name: sum(row[name] for row in rows) / len(rows) for name in MEASURES} if rows else None
