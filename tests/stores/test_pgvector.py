"""Keys in pgvector keep what every store promises."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from postgres_server import Server

sys.path.append(str(Path(__file__).parents[1] / "contract"))
from test_store_contract import *  # noqa: F403 - the same promises
from test_store_contract import Make

from evokey import registry
from evokey.protocols import Space


@pytest.fixture(params=["dense"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(space: Space, server: Server) -> Make:
    options = {"name": "pgvector", "uri": server.url, "keys": server.fresh_name()}
    return lambda: registry.build("store", options, space=space)
