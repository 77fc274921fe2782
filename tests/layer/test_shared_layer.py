"""A layer in PostgreSQL keeps what a layer in a directory promises: the same tests on the other ledger; and several
processes teach and search one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from conftest import Attach
from layer import test_layer
from layer.library import Library, ids, pairs, teach
from layer.test_layer import *  # noqa: F403 - the same promises
from postgres_server import Server
from typer.testing import CliRunner

import evokey
from evokey.cli.app import app
from evokey.demo.run import Question
from evokey.errors import InvalidInput, InvalidSettings, NotAMemory

for name in [
    name for name, test in vars(test_layer).items() if name.startswith("test") and "tmp_path" in test.__annotations__
]:
    del globals()[name]  # those are about directories
del globals()["test_another_process_reads_a_new_epoch_with_its_next_search"]  # here it hears of one a moment later


@pytest.fixture
def prefix(server: Server) -> str:
    return server.fresh_name()


@pytest.fixture
def attach(server: Server, prefix: str) -> Iterator[Attach]:
    with ExitStack() as stack:

        def open_layer(search: Any, name: str = "kb", **settings: Any) -> evokey.Layer:
            return stack.enter_context(evokey.beside(search, server.url, name=f"{prefix}-{name}", **settings))

        yield open_layer


def test_another_process_reads_a_new_epoch_as_soon_as_it_hears_of_it(
    attach: Attach, library: Library, questions: list[Question]
) -> None:
    writer, reader = attach(library.search), attach(library.search)
    query = questions[0].text
    before = pairs(reader.search(query, 5))
    teach(writer, questions)
    writer.evolve()
    after = pairs(writer.search(query, 5))
    assert after != before and search_until(reader, query, after)
    writer.rollback(0)
    assert search_until(reader, query, before)


def search_until(layer: evokey.Layer, query: str, expected: list[tuple[str, float]]) -> bool:
    return wait_until(lambda: pairs(layer.search(query, 5)) == expected)


def wait_until(holds: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether it holds before the seconds are over: a notification takes its time."""
    until = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < until:
        time.sleep(0.01)
    return held


def test_what_one_process_teaches_another_finds_and_a_third_makes_it_forgotten(
    attach: Attach, library: Library, questions: list[Question], server: Server, prefix: str
) -> None:
    first, second = attach(library.search), attach(library.search)
    taught = teach(first, questions)
    first.feedback("how long is a marmalade sandwich", relevant=["len"], actor="mallory")
    assert second.evolve().published
    asked = taught[0].text
    found = pairs(second.search(asked, 5))
    assert found != library.search(asked, 5) and search_until(first, asked, found)
    assert ids(first.search("how long is a marmalade sandwich", 1)) == ["len"]
    place = ["--at", server.url, "--name", f"{prefix}-kb"]
    said = CliRunner().invoke(app, ["forget", "--actor", "mallory", *place])
    assert said.exit_code == 0, said.output
    assert not second.lessons(actor="mallory") and len(second.lessons()) == len(taught)
    assert wait_until(lambda: ids(second.search("how long is a marmalade sandwich", 1)) != ["len"])


def test_it_is_told_apart_from_a_memory_and_from_a_directory(
    attach: Attach, library: Library, server: Server, prefix: str
) -> None:
    layer = attach(library.search)
    with pytest.raises(NotAMemory, match="layer beside a search function"):
        evokey.open(server.url, name=f"{prefix}-kb")
    with pytest.raises(InvalidSettings, match="without its name"):
        evokey.beside(library.search, server.url)
    with pytest.raises(InvalidInput, match="pg_dump"):
        layer.backup("copy")
