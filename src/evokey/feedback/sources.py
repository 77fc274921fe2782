"""Where feedback comes from, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evokey.feedback import judgments, langfuse, langsmith, phoenix, ubi
from evokey.feedback.judged import Judged
from evokey.feedback.reading import read_records


@dataclass(frozen=True, slots=True)
class Scores:
    """Which scores of a tracing tool count, and how."""

    name: str | None = None
    threshold: float = 0.5
    field: str | None = None
    """Of the metadata, where a document's id is."""


TRACES = {"phoenix": phoenix.read, "langfuse": langfuse.read, "langsmith": langsmith.read}


def read(source: str, paths: Sequence[Path], scores: Scores) -> Judged:
    if source in TRACES:
        return TRACES[source](read_records(paths), scores.name, scores.threshold, scores.field)
    return ubi.read(read_records(paths)) if source == "ubi" else judgments.read(paths)
