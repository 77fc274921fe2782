"""Every store of the registry as it can run here, for the tests that all of them pass (test_store_contract.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import pytest
from postgres_server import Server

from evokey.protocols import Space, Store
from evokey.scoring.block import Keys
from evokey.stores import nearest
from evokey.stores.ann import AnnStore
from evokey.stores.flat import FlatStore
from evokey.stores.late import LateStore
from evokey.stores.milvus import MilvusStore
from evokey.stores.pgvector import PgVector
from evokey.stores.sparse import SparseStore

Make = Callable[[], Store]
Serve = Callable[[Space, pytest.FixtureRequest], AbstractContextManager[Make]]
"""Starts what a store needs, and makes stores of one space while that runs."""


@dataclass(frozen=True)
class Setup:
    kind: str
    serve: Serve


class Graphed(AnnStore):
    """Every write ends in one graph of all keys."""

    def write(self, keys: Keys) -> None:
        super().write(keys)
        self.finish()


def _own(store: Callable[[Space], Store]) -> Serve:
    @contextmanager
    def serve(space: Space, request: pytest.FixtureRequest) -> Iterator[Make]:
        yield lambda: store(space)

    return serve


@contextmanager
def _with_graphs(space: Space, request: pytest.FixtureRequest) -> Iterator[Make]:
    request.getfixturevalue("monkeypatch").setattr(nearest, "GATHERED", 0)  # else so few rows are scored one and all
    yield lambda: Graphed(space, recall=1.0)


@contextmanager
def _milvus_lite(space: Space, request: pytest.FixtureRequest) -> Iterator[Make]:
    """A file: stores of one process share it."""
    assert space.folder is not None
    uri = str(space.folder.parent / "milvus.db")
    yield lambda: MilvusStore(space, uri, consistency="Strong")


def _pgvector(**options: int) -> Serve:
    """In the database that all tests of a process share, under a name of its own."""

    @contextmanager
    def serve(space: Space, request: pytest.FixtureRequest) -> Iterator[Make]:
        server: Server = request.getfixturevalue("server")
        keys = server.fresh_name()
        yield lambda: PgVector(space, server.url, keys, **options)

    return serve


SETUPS = {
    "flat": Setup("dense", _own(FlatStore)),
    "sparse": Setup("sparse", _own(SparseStore)),
    "late": Setup("multi", _own(LateStore)),
    "ann": Setup("dense", _own(AnnStore)),
    "ann, with graphs": Setup("dense", _with_graphs),
    "milvus-lite": Setup("dense", _milvus_lite),
    "pgvector": Setup("dense", _pgvector()),
    "pgvector, with its index": Setup("dense", _pgvector(exact_below=0)),
}
