"""After an import, evolve looks up again only what it looks at."""

from __future__ import annotations

from pathlib import Path

import pytest

import evokey
from evokey.evolution import crossfit


def test_only_pools_that_are_looked_at_are_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in ("FOLD_SAMPLE", "TAUGHT_SAMPLE", "REWORDED_SAMPLE"):
        monkeypatch.setattr(crossfit, bound, 5)
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add({"id": str(number), "text": f"page number{number} of the book"} for number in range(120))
        said = [{"query": f"leaf{number} number{number}", "relevant": [str(number)]} for number in range(120)]
        memory.feedback_many(said)
        assert memory.evolve(dry_run=True).pools_renewed == 0
        memory.add([{"id": "new", "text": "number7 again"}])
        report = memory.evolve()
        assert 0 < report.pools_renewed < 60
        assert report.pools_seconds > 0
        assert memory.evolve().pools_renewed == 0
        assert memory.search("leaf7 number7")[0].id == "7"
