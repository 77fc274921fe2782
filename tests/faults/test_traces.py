"""After a forget no byte of it is found, whatever happened meanwhile: one memory of each kind of make forget-check."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SKIPPED ON WINDOWS: there is no fork and no SIGKILL")


def test_nothing_is_left_of_what_was_forgotten() -> None:
    search = [sys.executable, Path(__file__).with_name("forget.py"), "--number", "1"]
    done = subprocess.run(search, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("'with a trace left': 0") == 8
