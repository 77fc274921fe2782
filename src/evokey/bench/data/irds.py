"""Data sets of ir_datasets: `irds:beir/scifact/test` is its beir/scifact/test. That library fetches and keeps it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from evokey.bench.data.dataset import Dataset, check
from evokey.errors import InvalidInput, UnknownComponent
from evokey.types import Document

PREFIX = "irds:"
TITLE, TEXTS = "title", ("text", "body", "abstract", "contents")


def read(name: str, split: str = "test") -> Dataset:
    """Its judgements are those of the split, whatever it is called there."""
    try:
        import ir_datasets
    except ModuleNotFoundError as error:
        raise UnknownComponent(f"{name} needs {error.name}; install it with: pip install 'evokey[bridges]'") from error
    try:
        found = ir_datasets.load(name.removeprefix(PREFIX))
    except KeyError as error:
        raise InvalidInput(
            f"ir_datasets has no set {name.removeprefix(PREFIX)!r}; see https://ir-datasets.com"
        ) from error
    missing = [what for what in ("docs", "queries", "qrels") if not getattr(found, f"has_{what}")()]
    if missing:
        raise InvalidInput(f"{name} has no {', '.join(missing)}; name a subset that has all three")
    judged: dict[str, dict[str, int]] = defaultdict(dict)
    for one in found.qrels_iter():
        judged[one.query_id][one.doc_id] = int(one.relevance)
    return check(
        Dataset(
            name=name.removeprefix(PREFIX).replace("/", "-"),
            documents=[_document(one) for one in found.docs_iter()],
            queries={one.query_id: one.default_text() for one in found.queries_iter()},
            judged={},
            splits={split: judged},
            split=split,
        )
    )


def _document(one: Any) -> Document:
    text = next((value for name in TEXTS if (value := getattr(one, name, None))), None)
    return Document(one.doc_id, one.default_text() if text is None else text, getattr(one, TITLE, "") or "")
