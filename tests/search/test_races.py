"""What looks at a whole memory holds while other threads add, delete, evolve and sweep old keys away."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from conftest import Opener

import evokey
from evokey.errors import UnknownDocument
from evokey.inspect import accounting
from evokey.stores.embedded import EmbeddedStore

TURNS = 25
WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()


@pytest.fixture
def changing(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> Iterator[evokey.Memory]:
    """A memory whose taught documents come and go, and whose keys are written and swept away all the time."""
    monkeypatch.setattr(EmbeddedStore, "persist_at", 1)
    memory = opened(encoder="bm25")
    documents = [{"id": f"{word}{n}", "text": f"{word} number{n}"} for word in WORDS for n in range(4)]
    memory.add(documents)
    for word in WORDS:
        memory.feedback(f"question about {word}", relevant=[f"{word}0", f"{word}1"], irrelevant=[f"{word}2"])
    memory.evolve()
    stop, failed = threading.Event(), list[BaseException]()

    def change() -> None:
        try:
            while not stop.is_set():
                for word in WORDS:
                    memory.delete([f"{word}0", f"{word}1"])
                    memory.add([one for one in documents if str(one["id"]).startswith(word)])
        except BaseException as error:  # noqa: BLE001 - seen below
            failed.append(error)

    thread = threading.Thread(target=change)
    thread.start()
    yield memory
    stop.set()
    thread.join()
    assert failed == []


LOOKS: dict[str, Callable[[evokey.Memory], object]] = {
    "stats": lambda memory: memory.stats().documents,
    "diff": lambda memory: memory.diff(0, 1).queries_compared,
    "search": lambda memory: memory.search("question about beta"),
    "account": lambda memory: accounting.report(memory).epoch,
    "traffic": lambda memory: memory.traffic(),
    "dry run": lambda memory: memory.evolve(dry_run=True).lessons,
}


@pytest.mark.parametrize("look", LOOKS)
def test_looking_holds_while_documents_come_and_go(changing: evokey.Memory, look: str) -> None:
    for _ in range(TURNS):
        LOOKS[look](changing)


def test_an_explanation_is_of_one_document_or_says_that_it_is_gone(changing: evokey.Memory) -> None:
    for turn in range(TURNS):
        word = WORDS[turn % len(WORDS)]
        with suppress(UnknownDocument):
            assert changing.explain(f"{word}0", f"question about {word}").document == f"{word}0"
