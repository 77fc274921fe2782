"""How much each word of a question counts, by what lessons say of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import Opener
from scipy import sparse

import evokey
from evokey.bench.data import Dataset
from evokey.evolution.attribution import attribute
from evokey.evolution.judgements import Judgements
from evokey.evolution.lens_training import LensTrainer
from evokey.evolution.pools import make
from evokey.evolution.trial import Trial
from evokey.evolution.trial_pools import CollectionSample
from evokey.scoring.sparse import SparseQuestion
from evokey.search.rewording import reword
from evokey.search.word_lens import DOUBT, WordLens, Words

TERMS = ("claim", "protein", "river")
ASKED = sparse.csr_array(np.array([[1, 1, 0], [1, 0, 1], [1, 1, 0], [1, 0, 1]], float))
RIGHT = sparse.csr_array(np.array([[0, 1, 0], [0, 0.5, 0.5], [0, 1, 1], [0, 0, 0.5]], float))
FOLDS = np.array([0, 0, 1, 1])


def lens(strength: float, without: int | None = None) -> WordLens:
    one = (strength, 0.0, 0.0)
    return Words(["a", "b", "c", "d"], TERMS, ASKED, RIGHT, FOLDS).lenses([one], without)[one]


def question(*terms: str, absent: str = "") -> SparseQuestion:
    ones = tuple([1.0] * len(terms))
    return SparseQuestion(terms, ones, None, 1.0, ones, ones, 2.0, frozenset(absent.split()))  # type: ignore[arg-type]


def test_a_word_counts_by_the_share_of_right_documents_that_has_it() -> None:
    usual = 3 / 4  # of protein (2 of 2) and river (1 of 2); claim, which none has, is not counted
    factors = lens(1.0).factors
    assert factors["claim"] == pytest.approx(DOUBT / (4 + DOUBT))
    assert factors["protein"] == pytest.approx((2 + DOUBT * usual) / (2 + DOUBT) / usual)
    assert factors["river"] == pytest.approx((1 + DOUBT * usual) / (2 + DOUBT) / usual)
    assert lens(0.5).factors["claim"] == pytest.approx(factors["claim"] ** 0.5)


def test_the_queries_of_a_fold_can_be_left_out() -> None:
    factors = lens(1.0, without=1).factors
    assert factors["claim"] == pytest.approx(DOUBT / (2 + DOUBT))
    assert lens(1.0, without=1).because(question("claim", "river"), 9) == [("b", 2.0), ("a", 1.0)]


def test_what_nobody_taught_and_what_no_document_has_stays_as_it_is() -> None:
    made, plain = lens(1.0), question("stone", "wood")
    assert made.turn(plain) is plain
    taught_only = question("claim", absent="claim")
    assert made.turn(taught_only) is taught_only
    turned = made.turn(question("claim", "stone"))
    assert turned.weights == (made.factors["claim"], 1.0) and turned.idf == turned.weights
    assert question("claim", "stone").distance(turned) > 0


def test_a_word_that_only_questions_have_misleads_a_question_that_nobody_taught_less(opened: Opener) -> None:
    """By it pages about something else are found."""
    topics = [f"{kind}{number}" for kind in ("moss", "fern") for number in range(60)]
    documents = [evokey.Document(topic, f"{topic} grows slowly in the shade") for topic in topics]
    documents += [evokey.Document(f"noise{number}", f"verify verify page{number}") for number in range(30)]
    memory = opened(encoder="bm25")
    memory.add(documents)
    asked = {f"verify whether shade {topic}": topic for topic in topics}
    for query, topic in list(asked.items())[::2]:
        memory.feedback(query, relevant=[topic])
    assert memory.evolve().choice["bm25"].lens_parameter
    untaught_query, topic = list(asked.items())[1]
    right, misleading = (memory.explain(id, untaught_query).views[0] for id in (topic, "noise0"))
    assert misleading.after < 0.8 * misleading.before
    assert right.after > misleading.after and right.query_moved > 0 and right.query_moved_by


def test_unrelated_questions_of_a_dialogue_find_more(opened: Opener, dataset: Any) -> None:
    data: Dataset = dataset("locomo10")
    memory = opened(encoder="bm25")
    memory.add(data.documents)
    queries = sorted(data.judged)
    taught, held_out = queries[:800:2], queries[1:800:2]
    for query in taught:
        memory.feedback(query, relevant=data.judged[query])
    touched = {id for query in taught for id in data.judged[query]}
    unrelated = [query for query in held_out if not touched & set(data.judged[query])]
    memory.evolve()

    def found(epoch: int | None = None) -> float:
        first = [{hit.id for hit in memory.search(query, epoch=epoch)} for query in unrelated]
        return sum(bool(some & set(data.judged[query])) for some, query in zip(first, unrelated, strict=True))

    assert memory.epochs()[-1].choice["bm25"].lens_parameter
    assert found() >= found(0)


@pytest.mark.parametrize("keys", ["full", "chunks"])
def test_a_right_document_counts_once_and_has_a_word_in_any_of_its_parts(opened: Opener, keys: str) -> None:
    parts = "\n\n".join(f"# Part {number}\n\n" + f"stone{number} " * 300 for number in range(4))
    documents = [
        evokey.Document(f"d{number}", f"{parts}\n\n# Fruit\n\nmango topic{number} grows", f"page{number}")
        for number in range(12)
    ]
    memory = opened(encoder="bm25", keys=keys)
    memory.add(documents)
    for number in range(12):
        memory.feedback(f"mango stone1 topic{number}", relevant=[f"d{number}"])
    retriever: Any = memory.index.retrievers[0]
    attribution = attribute(retriever, memory.composer.log(memory.ledger.lessons.last).taught)
    trainer: Any = LensTrainer.of(retriever, attribution)
    ((_, made),) = trainer.train(trainer.settings(traffic_related=False)).items()
    assert made.factors["mango"] == pytest.approx(made.factors["stone1"]) == pytest.approx(1.0)


@pytest.mark.parametrize("deep", [False, True])
def test_a_question_that_no_lens_moves_has_the_pool_it_has_without_a_lens(
    opened: Opener, dataset: Any, deep: bool
) -> None:
    data: Dataset = dataset("cranfield")
    memory = opened(encoder="wordllama")
    memory.add(data.documents)
    queries = sorted(data.judged)[:60]
    for query in queries:
        memory.feedback(query, relevant=data.judged[query])
    retriever: Any = memory.index.retrievers[0]
    taught = memory.composer.log(memory.ledger.lessons.last).taught
    attribution = attribute(retriever, taught)
    trainer: Any = LensTrainer.of(retriever, attribution)
    one = (0.5, 0.37, 1.0)
    found = reword(queries, 60)
    reworded = {f"{each.query}\n{at}": each for at, each in enumerate(found)}
    grades = Judgements({name: taught.grades[each.query] for name, each in reworded.items()}, {})
    pools = {query: make(retriever, query, memory.index.position).ranking for query in queries}
    sample = CollectionSample.of(retriever)
    options: dict[str, Any] = {"sample": sample, "deep": deep, "reworded": reworded}
    trial = Trial(retriever, attribution, grades, pools, trainer.train([one]), **options)
    turned = trial._pools.turn(one)
    still = [query for query in grades.queries if turned[query] is trial.question(query)]
    assert still
    for query in still:
        plain, through = (trial._pools.get(query, lens) for lens in (None, one))
        assert through.numbers.tolist() == plain.numbers.tolist()
