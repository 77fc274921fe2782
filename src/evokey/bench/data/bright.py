"""BRIGHT: examples, documents and long_documents, from the hub, a copy of it, or one folder for one set.

| place                                             | given as                                          |
|---------------------------------------------------|---------------------------------------------------|
| the hub (xlangai/BRIGHT)                          | the set's name: biology                           |
| a copy: examples/biology-00000-of-00001.parquet … | its folder and the set's name: BRIGHT/biology     |
| one folder: examples.jsonl, documents.jsonl …     | that folder (.jsonl, .jsonl.gz or .parquet)       |

The split test judges the passages of `documents`, the split test_long the whole pages of `long_documents`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from evokey.bench.data import hub
from evokey.bench.data.dataset import Dataset, check
from evokey.bench.data.rows import ENDINGS, id_of, rows, text_of, texts_of
from evokey.errors import InvalidInput
from evokey.types import Document

REPOSITORY = "xlangai/BRIGHT"
GOLD = {"test": "gold_ids", "test_long": "gold_ids_long"}
CORPUS = {"test": "documents", "test_long": "long_documents"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where the files of one set lie."""

    name: str
    folder: Path
    files: Mapping[str, Sequence[Path]]
    """examples, documents, long_documents"""


def place(path: Path) -> Place | None:
    """The BRIGHT set at this path, if there is one."""
    own = {part: _own_files(path, part) for part in ("examples", *CORPUS.values())}
    if own["examples"]:
        return Place(path.resolve().name, path, own)
    copied = _place_of(path.resolve().parent, path.resolve().name)
    return copied if copied.files["examples"] else None


def names(folder: Path) -> list[str]:
    """The sets that a copy of the hub's repository holds."""
    found = [*(folder / "examples").glob("*.parquet"), *(folder / "examples").glob("*/*.parquet")]
    return sorted({path.parent.name if path.stem.isdigit() else path.stem.split("-")[0] for path in found})


def from_hub(name: str, split: str = "test", cache: Path | None = None) -> Dataset:
    wanted = ("examples", CORPUS.get(split, "documents"))
    patterns = [f"{part}/{name}{ending}" for part in wanted for ending in ("-*", "/*")]
    found = _place_of(hub.fetch(REPOSITORY, patterns, cache), name)
    if not found.files["examples"]:
        raise hub.lacking(f"examples of {name}", found.folder)
    return read(found, split)


def read(place: Place, split: str = "test") -> Dataset:
    examples = [(where, row) for path in place.files["examples"] for where, row in rows(path)]
    queries: dict[str, str] = {}
    for where, row in examples:
        id = id_of(where, row, "id", "_id")
        if id in queries:
            raise InvalidInput(f"{where}: query {id!r} occurs twice; ids must differ")
        queries[id] = text_of(where, row, "query")
    listed = {
        name: {id_of(where, row, "id", "_id"): texts_of(where, row, name) for where, row in examples}
        for name in (*GOLD.values(), "excluded_ids", "gold_answer")
    }
    splits = {
        split: {query: dict.fromkeys(ids, 1) for query, ids in listed[gold].items() if ids}
        for split, gold in GOLD.items()
    }
    return check(
        Dataset(
            name=place.name,
            documents=_documents(place.files[CORPUS.get(split, "documents")]),
            queries=queries,
            judged={},
            splits={split: judged for split, judged in splits.items() if judged},
            answers=listed["gold_answer"],
            excluded={query: frozenset(ids) for query, ids in listed["excluded_ids"].items() if ids},
            folder=place.folder,
            split=split,
        )
    )


def _documents(paths: Iterable[Path]) -> list[Document]:
    return [
        Document(id_of(where, row, "id", "_id"), text_of(where, row, "content"))
        for path in paths
        for where, row in rows(path)
    ]


def _own_files(folder: Path, part: str) -> list[Path]:
    return [path for ending in ENDINGS if (path := folder / f"{part}{ending}").is_file()][:1]


def _place_of(folder: Path, name: str) -> Place:
    parts = {
        part: sorted([*(folder / part).glob(f"{escape(name)}-*.parquet"), *(folder / part / name).glob("*.parquet")])
        for part in ("examples", *CORPUS.values())
    }
    return Place(name, folder, parts)
