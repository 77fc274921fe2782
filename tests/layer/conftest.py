"""Layers over the demo's documents: a real search engine, real questions, half of the wordings taught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from layer.library import Library

import evokey
from evokey.demo import run
from evokey.demo.run import Question

Attach = Callable[..., evokey.Layer]


@pytest.fixture(scope="session")
def pages() -> list[evokey.Document]:
    return run.documents()


@pytest.fixture(scope="session")
def questions() -> list[Question]:
    return run.questions()


@pytest.fixture
def library(pages: list[evokey.Document]) -> Library:
    return Library(pages)


@pytest.fixture
def attach(tmp_path: Path) -> Iterator[Attach]:
    """Opens layers under the test's own folder and closes them at its end."""
    with ExitStack() as stack:

        def open_layer(search: Any, name: str = "kb", **settings: Any) -> evokey.Layer:
            return stack.enter_context(evokey.beside(search, tmp_path / name, **settings))

        yield open_layer


def teach(layer: evokey.Layer, questions: list[Question], most: int = 60) -> list[Question]:
    """Some wordings of some intents."""
    taught = [one for one in questions if one.group == run.GROUPS[0]][:most]
    layer.feedback_many([{"query": one.text, "relevant": one.relevant, "actor": "demo"} for one in taught])
    return taught
