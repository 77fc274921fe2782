"""Teaching one topic leaves another alone, and what was taught is found again."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, cast

import numpy as np
import pytest
from conftest import Dataset, Opener

import evokey
from evokey.evolution.evaluation import Evaluation
from evokey.evolution.ndcg import ndcg
from evokey.evolution.nearness import EVERY_QUESTION
from evokey.evolution.plans import Plan, PlanOutcomes, PlanScorer
from evokey.types import Choice

Grades = dict[str, dict[str, Any]]


def quality(memory: evokey.Memory, asked: Grades, **options: Any) -> float:
    scores = []
    for query, grades in asked.items():
        ids = [hit.id for hit in memory.search(query, **options)]
        place = {id: number for number, id in enumerate({*ids, *grades})}
        scores.append(ndcg([place[id] for id in ids], {place[id]: float(grade) for id, grade in grades.items()}))
    return float(np.mean(scores))


def some(asked: Grades, step: int, start: int = 0) -> Grades:
    return {query: asked[query] for query in sorted(asked)[start::step]}


@pytest.fixture
def intents(opened: Opener, dataset: Any) -> tuple[evokey.Memory, Grades, Grades]:
    """Intents and scientific claims in one index; the intents are taught."""
    taught: Dataset = dataset("clinc150")
    other: Dataset = dataset("scifact")
    memory = opened(traffic=0)
    memory.add([*taught.documents, *other.documents])
    for query, grades in some(taught.judged, 6).items():
        memory.feedback(query, relevant=grades)
    return memory, some(taught.judged, 30, 1), some(other.judged, 2)


def test_teaching_one_topic_leaves_another_as_it_was(intents: tuple[evokey.Memory, Grades, Grades]) -> None:
    memory, related, unrelated = intents
    report = memory.evolve()
    assert report.reach is not None and report.reach.retriever == "wordllama"
    assert report.unrelated is not None and report.unrelated.queries
    assert quality(memory, related) > 1.4 * quality(memory, related, epoch=0)
    assert quality(memory, unrelated) >= 0.955 * quality(memory, unrelated, epoch=0)
    far = [query for query in unrelated if "protein" in query][:10]
    assert far and all(
        [(hit.id, hit.score) for hit in memory.search(query)]
        == [(hit.id, hit.score) for hit in memory.search(query, epoch=0)]
        for query in far
    )


def test_an_explanation_of_a_question_beyond_reach_is_that_of_the_untaught_index(
    intents: tuple[evokey.Memory, Grades, Grades],
) -> None:
    memory, _, unrelated = intents
    memory.evolve()
    query = next(query for query in unrelated if "protein" in query)
    told = memory.explain(memory.search(query)[0].id, query)
    assert told.rank_before == told.rank_after == 1 and not told.in_reach
    assert all(view.before == view.after for view in told.views)


@pytest.mark.parametrize("name", ["clinc150", "locomo10"])
def test_what_was_taught_once_is_found_again(opened: Opener, dataset: Any, name: str) -> None:
    data: Dataset = dataset(name)
    asked = defaultdict(list)
    for query, grades in sorted(data.judged.items()):
        if len(grades) == 1:
            asked[next(iter(grades))].append(query)
    several = sorted(id for id, queries in asked.items() if len(queries) > 1)
    typical = [asked[id][len(asked[id]) // 2] for id in several[::2]]  # the first and last begin with odd signs
    lessons = {query: data.judged[query] for query in typical}
    unrelated = some({query: data.judged[query] for id in several[1::2] for query in asked[id]}, 5)
    memory = opened(traffic=0)
    memory.add(data.documents)
    for query, grades in lessons.items():
        memory.feedback(query, relevant=grades)
    assert memory.evolve().published
    assert quality(memory, lessons) >= 0.98
    assert quality(memory, unrelated) >= 0.955 * quality(memory, unrelated, epoch=0)


def test_a_protected_query_may_say_that_nothing_is_recalled(opened: Opener) -> None:
    memory = opened(encoder="wordllama", traffic=0)
    memory.add([{"id": f"{number}", "text": f"page {number} about item {number}"} for number in range(40)])
    memory.protect("page about item 3", relevant=["3"])
    for number in range(25):
        memory.feedback("page about item 3" + " !" * number, relevant=["17"])
    memory.evolve()
    assert memory.search("page about item 3")[0].id == memory.search("page about item 3", epoch=0)[0].id


def test_a_plan_acts_near_taught_queries_alone_and_its_weights_nearer_still() -> None:
    untaught = Plan((Choice(), Choice()), (0.75, 0.25))
    moved = untaught._replace(choices=(Choice(step=1.0), Choice(step=1.0)))
    weighed = moved._replace(weights=(0.0, 1.0))
    outcomes = {untaught: np.full(4, 0.1), moved: np.full(4, 0.2), weighed: np.full(4, 0.3)}
    scored = PlanOutcomes(outcomes, np.array([0.1, 0.3, 0.5, 0.9], np.float32), weights_threshold=0.5)
    plan = weighed._replace(threshold=0.3)
    assert scored.of([plan], untaught)[plan].tolist() == pytest.approx([0.1, 0.2, 0.3, 0.3])
    assert scored.of([moved], untaught)[moved].tolist() == pytest.approx([0.2] * 4)


class Scorer:
    """Says what one plan brings to held-out queries, given how near these are to a taught one."""

    untaught = Plan((Choice(),), (1.0,))
    plan = Plan((Choice(step=1.0),), (1.0,))
    nearness, thresholds, low_thresholds = object(), (EVERY_QUESTION, 0.2, 0.3, 0.6, 0.95), (0.2, 0.3)
    newer = None

    def __init__(self, related: list[tuple[float, float]], unrelated: list[tuple[float, float]]) -> None:
        """Pairs of a nearness and what the plan brings."""
        self.untouched = 1.0
        self.related = np.arange(len(related) + len(unrelated)) < len(related)
        near, gain = (np.array(one) for one in zip(*related, *unrelated, strict=True))
        self._near, self._gain = near.astype(np.float32), gain

    def held_out(self, plans: object, *, as_unrelated: bool = False) -> PlanOutcomes:
        base = np.full(len(self._gain), 0.5)
        gain = 0.0 if as_unrelated else self._gain
        return PlanOutcomes({self.untaught: base, self.plan: base + gain}, self._near)

    def taught(self, plans: object) -> PlanOutcomes:
        return PlanOutcomes({self.untaught: np.full(9, 0.5), self.plan: np.ones(9)})

    rewordings = protected = taught

    def traffic(self, plans: object) -> None:
        """Nothing else was searched."""

    def narrow(self) -> float:
        evaluation = Evaluation(cast("PlanScorer", self), [self.untaught, self.plan])
        return evaluation.narrow(self.plan).threshold


def test_a_reach_is_as_small_as_keeps_what_held_out_queries_gain() -> None:
    assert Scorer([(0.8, 0.2)] * 20, [(0.4, 0.0)] * 20).narrow() == 0.6
    assert Scorer([(0.8, 0.2)] * 10 + [(0.4, 0.2)] * 10, [(0.4, 0.0)] * 20).narrow() == 0.3


def test_a_reach_does_not_take_from_unrelated_queries_what_they_gain() -> None:
    related = [(0.8, 0.2)] * 15 + [(0.4, -0.2)] * 5
    assert Scorer(related, [(0.4, 0.1)] * 10 + [(0.8, -0.05)] * 10).narrow() == 0.3
    assert Scorer(related, [(0.4, -0.05)] * 10 + [(0.8, 0.1)] * 10).narrow() == 0.6


def test_where_most_documents_learned_nothing_no_plan_acts_on_questions_farther_than_taught_ones_are() -> None:
    everywhere = Scorer([(0.1, 0.2)] * 20, [(0.1, 0.2)] * 20)
    assert everywhere.narrow() == 0.2
    everywhere.untouched = 0.1
    assert everywhere.narrow() == EVERY_QUESTION
