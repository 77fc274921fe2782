"""Lessons on restricted documents change nothing for a caller whose filter leaves these documents out: not a bit.

Two memories hear the same lessons, but one hears nothing about documents that the caller may not read. In random worlds
he must see the same documents with the same scores in both, whatever way he asks.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evokey
from evokey import Document, Hit, settings
from evokey.errors import InvalidDocument, InvalidInput, InvalidSettings, UnknownDocument
from evokey.evolution import lens_training
from evokey.evolution.guarded import Guarded
from evokey.evolution.policy import Policy
from evokey.evolution.proposing import protected_queries
from evokey.memory import Memory
from evokey.registry import COMPONENTS, Component
from evokey.scoring import compiled
from evokey.stores import sparse as sparse_store
from evokey.types import Expansion, Unit

sys.path += [str(Path(__file__).parent / "model"), str(Path(__file__).parent / "contract")]
from chance import Chance

WORDS = "apple river stone light music garden winter bread cloud window letter horse".split()
UNHEARD = "zebra quark nebula fjord".split()
"""Words that no document has: only teaching brings them."""
GROUPS = ("hr", "board")
"""Who else may read a restricted document."""
PROBES = ["apple river", "zebra", "light quark garden", "stone stone winter", "music nebula", "bread fjord letter"]


@dataclass(frozen=True)
class World:
    """Documents, and what is said about them, in rounds: an evolve after each."""

    documents: Sequence[Document]
    rounds: Sequence[Sequence[Mapping[str, Any]]]
    searched: Sequence[str]

    def known_to(self, readers: Sequence[str]) -> World:
        """The same, had nobody said anything about documents that these readers may not read."""
        mine = {one.id for one in self.documents if _reader(one) in ("all", *readers)}
        return replace(self, rounds=[[kept for one in said if (kept := _about(one, mine))] for said in self.rounds])


def _reader(document: Document) -> str:
    return str(document.metadata["reader"])


def _about(lesson: Mapping[str, Any], ids: set[str]) -> dict[str, Any] | None:
    relevant = {id: grade for id, grade in lesson["relevant"].items() if id in ids}
    irrelevant = [id for id in lesson["irrelevant"] if id in ids]
    return {**lesson, "relevant": relevant, "irrelevant": irrelevant} if relevant or irrelevant else None


def world(chance: random.Random, lessons: int, *, units: bool) -> World:
    documents = []
    for number in range(24):
        group = chance.choice(["all", "all", *GROUPS])
        text = " ".join(chance.choices(WORDS, k=chance.randint(2, 40)))
        access = {} if group == "all" else {"access": group}
        documents.append(Document(f"d{number}", text, chance.choice(["", "garden"]), {"reader": group, **access}))
    ids = [one.id for one in documents]
    apart = [one.id for one in documents if _reader(one) != "all"]

    def lesson(among: Sequence[str]) -> dict[str, Any]:
        right, wrong = chance.sample(among, k=min(3, len(among))), chance.sample(ids, k=1)
        right = right[: chance.randint(1, 3)]
        return {
            "query": " ".join(chance.choices([*WORDS, *UNHEARD], k=chance.randint(1, 4))),
            "relevant": {id: chance.choice([0.5, 1.0, 3.0]) for id in right},
            "irrelevant": sorted(set(wrong) - set(right)) if chance.random() < 0.4 else [],
            "units": chance.choices([*WORDS, *UNHEARD], k=2) if units and chance.random() < 0.4 else [],
            "actor": chance.choice([None, "ada", "bob", "synthetic"]),
        }

    rounds = [[lesson(ids) for _ in range(lessons)], [lesson(apart) for _ in range(4)], [lesson(ids) for _ in range(5)]]
    again = [
        {**one, "relevant": {apart[0]: 1.0}, "irrelevant": []} for one in rounds[0][:3]
    ]  # questions that public lessons know too
    return World(documents, [rounds[0], [*rounds[1], *again], rounds[2]], chance.choices(WORDS, k=20))


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., Memory]]:
    """Makes memories with restricted documents, under any policy."""
    with ExitStack() as stack:

        def make(name: str, rule: Policy | None = None, **said: Any) -> Memory:
            folder = tmp_path / name
            folder.mkdir()
            chosen = settings.settings_of(**{"restricted": "access", **said})
            return stack.enter_context(Memory(folder, chosen, policy=rule, now=lambda: 0.0))  # lessons age by it

        yield make


def taught(memory: Memory, world: World) -> list[int]:
    """Teach a memory; the epoch that was in force after each round."""
    memory.add(world.documents, **_vectors(memory, [one.text for one in world.documents], "vectors"))
    epochs = []
    for said in world.rounds:
        for query in world.searched:
            memory.search(query, **_vector(memory, query))
        for one in said:
            memory.feedback(**one, **_vector(memory, one["query"]))
        memory.evolve()
        epochs.append(memory.stats().epoch)
    return epochs


def _vector(memory: Memory, text: str) -> dict[str, Any]:
    return {"vector": _vectors(memory, [text], "vectors")["vectors"][0]} if memory.index.given else {}


def _vectors(memory: Memory, texts: Sequence[str], name: str) -> dict[str, Any]:
    if not memory.index.given:
        return {}
    draws = [np.random.default_rng(sum(map(ord, text))).normal(size=8) for text in texts]
    return {name: [draw / np.linalg.norm(draw) for draw in draws]}


def bits(hits: Sequence[Hit]) -> list[tuple[str, str]]:
    return [(hit.id, hit.score.hex()) for hit in hits]


class Looking:
    """A reranker that remembers what it was shown."""

    def __init__(self) -> None:
        self.shown: list[list[str]] = []

    def scores(self, query: str, documents: Sequence[Document]) -> Any:
        self.shown.append([one.id for one in documents])
        return np.arange(len(documents), 0, -1.0)


def seen(memory: Memory, epochs: Sequence[int], readers: Sequence[str]) -> list[Any]:
    """All that a caller with a filter can see."""
    where = {"reader": ["all", *readers]}
    found: list[Any] = []
    for query in PROBES:
        asked = _vector(memory, query)
        found += [bits(memory.search(query, 8, where, **asked))]
        found += [bits(memory.search(query, 8, where, epoch=epoch, **asked)) for epoch in epochs]
        memory.searcher.chance = np.random.default_rng(1)
        found += [bits(memory.search(query, 6, where, explore=3, **asked))]
        if not memory.index.given:
            for way in ("blend", "concat", "fuse"):
                expansion = Expansion(query, (Unit("river quark"), Unit("bread"), Unit("cloud", False)), "test", way)
                found.append(bits(memory.search(query, 8, where, expansion=expansion)))
    mine = [one.id for one in memory.ledger.documents.fetch(memory.searcher.filter(where)).values()]
    for id in sorted(mine)[:6]:
        found.append(repr(memory.explain(id, PROBES[2], where=where, **_vector(memory, PROBES[2])).to_dict()))
    found += [(one.document, one.taught_after, one.moved_after) for one in _changes(memory, epochs, where)]
    stats = memory.stats(where)
    found.append((stats.documents, stats.lessons, stats.set_aside, stats.documents_touched, stats.bytes))
    looking = Looking()
    memory.searcher.reranker = looking
    for query in PROBES:
        memory.search(query, 5, where, **_vector(memory, query))
    memory.searcher.reranker = None
    return [*found, looking.shown, memory.traffic(where)]


def _changes(memory: Memory, epochs: Sequence[int], where: Mapping[str, Any]) -> Sequence[Any]:
    return memory.diff(0, epochs[-1], where).documents


HYBRID = {"encoder": ["bm25", "wordllama"]}
CHUNKS = {**HYBRID, "keys": {"name": "chunks", "tokens": 16, "overlap": 4}}
MEMORIES: dict[str, dict[str, Any]] = {
    "bm25": {"encoder": "bm25"},
    "dense": {"encoder": "wordllama"},
    "hybrid": HYBRID,
    "chunks": CHUNKS,
    "late": {"encoder": ["bm25", "by-word"]},
    "given": {"encoder": "given"},
}


@pytest.fixture(autouse=True)
def small_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lens_training, "MIN_QUERIES", 4)
    monkeypatch.setitem(COMPONENTS["encoder"], "by-word", Component("by_word:ByWord"))


@pytest.mark.parametrize("readers", [(), ("hr",)], ids=["public", "hr"])
@pytest.mark.parametrize("kind", list(MEMORIES))
@pytest.mark.parametrize("seed", range(3))
def test_a_filtered_caller_sees_equal_bits_with_and_without_lessons_on_what_he_may_not_read(
    made: Callable[..., Memory], kind: str, readers: Sequence[str], seed: int
) -> None:
    """Under choices drawn by lot: moved keys, units, rows, negatives, lenses and weights of all kinds."""
    whole = world(random.Random(f"{kind} {seed}"), 14, units=kind != "given")
    policy: Callable[[], Policy] = Guarded if kind == "late" else Chance
    a, b = made("a", policy(), **MEMORIES[kind]), made("b", policy(), **MEMORIES[kind])
    epochs, fewer = taught(a, whole), taught(b, whole.known_to(readers))
    assert seen(a, epochs, readers) == seen(b, fewer, readers)
    assert any(bits(a.search(q, **_vector(a, q))) != bits(b.search(q, **_vector(b, q))) for q in PROBES)


@pytest.mark.parametrize(("seed", "readers"), [(22, ("hr",)), (35, ("board",))])
def test_how_units_share_credit_does_not_depend_on_other_restricted_documents(
    made: Callable[..., Memory], seed: int, readers: Sequence[str]
) -> None:
    """Worlds in which a product of matrices made a difference in the last bits."""
    whole = world(random.Random(f"dense {seed}"), 14, units=True)
    a, b = (made(name, Chance(), encoder="wordllama") for name in "ab")
    epochs, fewer = taught(a, whole), taught(b, whole.known_to(readers))
    assert seen(a, epochs, readers) == seen(b, fewer, readers)


@pytest.mark.parametrize("kind", ["hybrid", "chunks"])
def test_it_holds_under_the_guarded_policy_with_its_lens(made: Callable[..., Memory], kind: str) -> None:
    for seed in range(2):
        whole = world(random.Random(f"guarded {kind} {seed}"), 30, units=True)
        a, b = (made(f"{name}{seed}", policy="guarded", **MEMORIES[kind]) for name in "ab")
        epochs, fewer = taught(a, whole), taught(b, whole.known_to(()))
        assert a.epochs()[-1].choice == b.epochs()[-1].choice
        assert seen(a, epochs, ()) == seen(b, fewer, ())


def test_without_the_setting_a_lesson_on_any_page_changes_the_scores_of_all(made: Callable[..., Memory]) -> None:
    """What the setting is for; and these worlds are not too small to show it."""
    different = 0
    for seed in range(3):
        whole = world(random.Random(seed), 14, units=True)
        a, b = (made(f"{name}{seed}", Chance(), restricted=None, **HYBRID) for name in "ab")
        different += seen(a, taught(a, whole), ()) != seen(b, taught(b, whole.known_to(())), ())
    assert different == 3


# ---- what restricted documents learn, and when


PAGES = [
    Document("salaries", "What everybody earns, by grade.", metadata={"access": "hr", "reader": "hr"}),
    Document("minutes", "What the board decided in spring.", metadata={"access": ["board"], "reader": "board"}),
    Document("menu", "What the canteen cooks this week.", metadata={"access": "", "reader": "all"}),
    Document("map", "How to find the canteen and the garden.", metadata={"access": False, "reader": "all"}),
    Document("bikes", "Where bicycles may stand.", metadata={"access": None, "reader": "all"}),
]
PUBLIC = {"reader": "all"}


@pytest.fixture
def pages(made: Callable[..., Memory]) -> Memory:
    memory = made("kb", **HYBRID)
    memory.add(PAGES)
    return memory


def test_evolve_publishes_when_only_restricted_documents_have_something_new(pages: Memory) -> None:
    pages.feedback("who gets the dough", ["salaries"])
    report = pages.evolve()
    assert (report.published, report.restricted, report.documents, dict(report.choice)) == (True, 1, 0, {})
    assert "1 restricted document learned separately" in report.reason
    assert pages.search("who gets the dough")[0].id == "salaries"
    assert not pages.evolve().published
    pages.feedback("dough of directors", ["minutes"])
    assert pages.evolve().published
    assert pages.search("dough of directors")[0].id == "minutes"


def test_a_public_lesson_that_nothing_follows_from_publishes_no_epoch_for_the_sake_of_the_restricted_ones(
    pages: Memory,
) -> None:
    pages.feedback("who gets the dough", ["salaries"])
    pages.evolve()
    pages.feedback("soup", irrelevant=["menu"])
    assert not pages.evolve().published


def test_an_untaught_public_page_keeps_its_score_and_the_trust_in_words_is_not_taught(pages: Memory) -> None:
    before = bits(pages.search("xylo dough canteen", where=PUBLIC))
    pages.feedback("xylo dough canteen", ["salaries"])
    pages.evolve()
    assert bits(pages.search("xylo dough canteen", where=PUBLIC)) == before
    assert pages.search("xylo dough canteen")[0].id == "salaries"


def test_forgetting_a_restricted_lesson_equals_never_having_heard_it(made: Callable[..., Memory]) -> None:
    a, b = made("a", Chance(), **HYBRID), made("b", Chance(), **HYBRID)
    whole = world(random.Random(3), 14, units=True)
    apart = next(one.id for one in whole.documents if _reader(one) != "all")
    for memory in (a, b):
        memory.add(whole.documents)
        memory.feedback_many(whole.rounds[0])
    a.feedback("zebra quark", [apart], units=["nebula"], actor="eve")
    for memory in (a, b):
        memory.evolve()
    assert any(bits(a.search(query)) != bits(b.search(query)) for query in PROBES)
    assert a.forget(actor="eve").lessons == 1
    assert [bits(a.search(query)) for query in PROBES] == [bits(b.search(query)) for query in PROBES]


def test_what_a_page_was_taught_is_set_apart_as_soon_as_it_is_restricted(pages: Memory) -> None:
    before = bits(pages.search("xylo dough canteen", where=PUBLIC))
    pages.feedback("xylo dough canteen", ["bikes"])
    pages.evolve()
    assert pages.search("xylo dough canteen", where=PUBLIC)[0].id == "bikes"
    pages.add([replace(PAGES[4], metadata={"access": "hr", "reader": "hr"})])
    pages.evolve()
    without = [hit for hit in before if hit[0] != "bikes"]
    assert [id for id, _ in bits(pages.search("xylo dough canteen", where=PUBLIC))] == [id for id, _ in without]
    assert pages.search("xylo dough canteen")[0].id == "bikes"


def test_an_older_epoch_and_a_rollback_know_what_restricted_documents_knew_then(pages: Memory) -> None:
    pages.feedback("who gets the dough", ["salaries"])
    pages.evolve()
    assert pages.search("who gets the dough", epoch=1)[0].id == "salaries"
    untaught = bits(pages.search("who gets the dough", epoch=0))
    assert untaught != bits(pages.search("who gets the dough"))
    pages.rollback(0)
    assert bits(pages.search("who gets the dough")) == untaught


def test_expanders_that_read_documents_are_shown_public_ones_alone(pages: Memory) -> None:
    assert {one.id for one in pages.searcher.look("what canteen board earns", 10)} <= {"menu", "map", "bikes"}


def test_a_restricted_lesson_does_not_say_whether_an_intent_was_really_known(pages: Memory) -> None:
    expansion = Expansion("soup of the day", (Unit("stew"),), "hyde", model="m")
    identity = pages.components.expanding().expander.identity
    with pages.ledger.write():
        pages.ledger.expansions.put(expansion, identity, 0.0)
        pages.ledger.expansions.put(replace(expansion, query="soup today", like="soup of the day"), identity, 0.0)
    pages.feedback("soup of the day", ["menu"])
    pages.feedback("soup today", ["salaries"])
    assert pages.stats().false_hits == 0
    assert pages.ledger.expansions.alike("soup today") == "soup of the day"


# ---- who is told what


def test_a_caller_with_a_filter_is_told_no_question_and_no_name(pages: Memory) -> None:
    pages.feedback("noon stew of xylo", ["menu", "salaries"], actor="ada")
    pages.feedback("xylo pay", ["salaries"], actor="eve")
    pages.evolve()
    told = pages.explain("menu", "noon stew", where=PUBLIC)
    assert (told.lesson_count, list(told.lessons)) == (1, [])
    assert "xylo" not in repr(told.to_dict()) and "ada" not in repr(told.to_dict())
    assert "noon stew of xylo" in repr(pages.explain("menu", "noon stew").to_dict())
    with pytest.raises(UnknownDocument, match="no document has the id 'salaries'"):
        pages.explain("salaries", where=PUBLIC)
    compared = pages.diff(0, 1, PUBLIC)
    assert ([one.document for one in compared.documents], compared.queries, compared.queries_compared) == (
        ["menu"],
        [],
        0,
    )
    assert {"menu", "salaries"} == {one.document for one in pages.diff(0, 1).documents}
    assert {one.query for one in pages.diff(0, 1).queries} <= {"noon stew of xylo", "xylo pay"}
    pages.search("a question of somebody")
    pages.save()
    assert pages.traffic(PUBLIC) == []


def test_the_explanation_of_a_restricted_document_adds_up(pages: Memory) -> None:
    pages.feedback("xylo dough", ["salaries"])
    pages.evolve()
    told = pages.explain("salaries", "xylo dough")
    scores = {one.name: one for one in pages.index.retrievers}
    for view in told.views:
        overlay = pages.index.view(1).overlays.of[view.retriever]
        assert overlay.restricted is not None
        one = scores[view.retriever]
        question = one.question("xylo dough", overlay.learned)
        (score,) = overlay.restricted.scores(question.weigh_unheard())
        assert view.after == pytest.approx(score)
        assert (view.best_key, view.nearest_taught) == ("taught question", "xylo dough")


def test_stats_count_what_concerns_the_documents_inside_the_filter(pages: Memory) -> None:
    pages.feedback("noon stew", ["menu", "salaries"])
    pages.feedback("pay", ["salaries"])
    pages.evolve()
    pages.feedback("pay day", ["salaries"])
    pages.feedback("canteen", ["map"])
    found, mine = pages.stats(), pages.stats(PUBLIC)
    assert (found.documents, found.lessons, found.pending, found.documents_touched) == (5, 4, 2, 2)
    assert (mine.documents, mine.lessons, mine.pending, mine.documents_touched, mine.bytes) == (3, 2, 1, 1, 0)


# ---- the setting


def test_the_setting_is_kept_and_an_existing_memory_says_how_to_get_it(tmp_path: Path) -> None:
    with evokey.open(tmp_path / "new", encoder="bm25", restricted="access"):
        pass
    assert settings.read(tmp_path / "new" / "evokey.toml").restricted == "access"
    with evokey.open(tmp_path / "new", restricted="access") as memory:
        memory.add(PAGES)
    evokey.open(tmp_path / "old", encoder="bm25").close()
    with pytest.raises(InvalidSettings, match='write restricted = "access" at the top of'):
        evokey.open(tmp_path / "old", restricted="access")
    file = tmp_path / "old" / "evokey.toml"
    file.write_text('restricted = "access"\n' + file.read_text())
    with evokey.open(tmp_path / "old", restricted="access") as memory:
        assert memory.stats().documents == 0


def test_what_cannot_keep_the_promise_is_refused(tmp_path: Path, pages: Memory) -> None:
    with pytest.raises(InvalidSettings, match="policy 'paper' credits all that was retrieved"):
        evokey.open(tmp_path / "paper", policy="paper", restricted="access")
    with pytest.raises(InvalidSettings, match="restricted names a field of the metadata"):
        evokey.open(tmp_path / "empty", restricted="")
    for hidden in ({"group": "hr"}, [["hr"]], [{"group": "hr"}]):
        with pytest.raises(
            InvalidDocument, match=r"'access' marks restricted documents .* an object has no value of its own"
        ):
            pages.add([Document("x", "text", metadata={"access": hidden})])
    with pytest.raises(InvalidInput, match=r"'salaries' is restricted .* Protect public documents only"):
        pages.protect("pay", ["salaries"])
    pages.protect("lunch", ["menu"])


def test_a_memory_whose_field_already_holds_objects_does_not_open_with_the_setting(tmp_path: Path) -> None:
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add([Document("x", "text", metadata={"access": {"group": "hr"}})])
    file = tmp_path / "kb" / "evokey.toml"
    file.write_text('restricted = "access"\n' + file.read_text())
    with pytest.raises(InvalidDocument, match="document 'x': metadata 'access' marks restricted documents"):
        evokey.open(tmp_path / "kb")


def test_the_field_that_restricts_may_lie_inside_of_an_object(tmp_path: Path) -> None:
    with evokey.open(tmp_path / "kb", encoder="bm25", restricted="access.group") as memory:
        memory.add([Document("x", "text", metadata={"access": {"group": "hr"}}), Document("y", "text")])
        assert memory.index.restricted.tolist() == [1]
        with pytest.raises(InvalidDocument, match=r"document 'z': metadata 'access\.group' marks restricted documents"):
            memory.add([Document("z", "text", metadata={"access": {"group": {"name": "hr"}}})])


def test_the_protection_of_a_page_that_was_restricted_later_does_not_count(pages: Memory) -> None:
    pages.protect("stew", ["menu", "map"])
    pages.add([replace(PAGES[2], metadata={"access": "hr", "reader": "hr"})])
    assert {id for said in protected_queries(pages.index, pages.ledger).values() for id in said} == {4}


def test_exploring_where_nothing_is_found_finds_nothing(made: Callable[..., Memory]) -> None:
    memory = made("kb", encoder="bm25")
    memory.add(PAGES)
    assert memory.search("zebra", where=PUBLIC, explore=2) == []
    assert memory.search("zebra", explore=2) == []


def test_the_compiled_scan_finds_the_same_beside_restricted_documents(
    made: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba", reason="SKIPPED FOR WANT OF A PACKAGE: evokey[fast]")
    memory = made("kb", Chance(), encoder="bm25")
    taught(memory, world(random.Random(5), 14, units=True))

    def everywhere() -> list[Any]:
        return [bits(memory.search(query, where=where)) for query in PROBES for where in (None, {"reader": "all"})]

    plain = everywhere()
    assert compiled.load()
    monkeypatch.setattr(sparse_store, "LARGE", 1)
    retriever: Any = memory.index.retrievers[0]
    assert isinstance(retriever.base.scan(retriever.question(PROBES[0], {})), sparse_store.CompiledScan)
    assert everywhere() == plain


def test_a_proposal_of_another_process_is_not_adopted_if_other_documents_are_restricted_since(pages: Memory) -> None:
    pages.feedback("noon stew", ["menu"])
    proposed = pages.propose()
    pages.add([replace(PAGES[2], metadata={"access": "hr", "reader": "hr"})])
    assert pages.adopt(proposed) is None
    again = pages.adopt(pages.propose())
    assert again is not None and (again.published, again.restricted, dict(again.choice)) == (True, 1, {})
