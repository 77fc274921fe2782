"""A memory in PostgreSQL keeps what a memory in a directory promises: the same tests, on the other ledger."""

from __future__ import annotations

import pytest
from conftest import Opener
from test_memory import *  # noqa: F403 - the same promises


@pytest.fixture
def opened(shared: Opener) -> Opener:
    return shared
