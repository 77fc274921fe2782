"""ranx: run files of `evokey bench --runs` and the judgements of a set, as its Run and Qrels."""

from __future__ import annotations

from pathlib import Path

import ranx

from evokey.bench.data import Dataset, trec
from evokey.bench.measures import whole
from evokey.errors import InvalidInput


def runs(folder: Path) -> list[ranx.Run]:
    """All run files of a folder, each under its file's name."""
    files = sorted(folder.glob("*.trec"))
    if not files:
        raise InvalidInput(f"{folder} holds no run files; make some with: evokey bench DATA --runs {folder}")
    return [ranx.Run({query: dict(hits) for query, hits in trec.run(file).items()}, name=file.stem) for file in files]


def qrels(data: Dataset, run: ranx.Run) -> ranx.Qrels:
    """The judgements of the queries that a run tested: what taught is not among them."""
    grades = {query: whole(data.judged[query]) for query in run.keys()}  # noqa: SIM118
    return ranx.Qrels({query: {id: int(grade) for id, grade in one.items()} for query, one in grades.items()})
