"""A small run of fuzz_files.py: damaged files of every kind are read or refused by name."""

from __future__ import annotations

from pathlib import Path

from faults.fuzz_files import SECONDS, fuzz


def test_damaged_files_of_every_kind_are_read_or_refused_by_name(tmp_path: Path) -> None:
    found = fuzz(tmp_path, each=12, seed=7, real=False)
    assert found["files"] == 12 * 10
    assert found["unnamed_errors"] == 0
    assert all(one["slowest_s"] <= SECONDS + 10 for one in found["kinds"].values())
