"""Folders in BEIR layout: corpus.jsonl, queries.jsonl, qrels/<split>.tsv; and what else lies beside them.

| file                                      | holds                                                    |
|-------------------------------------------|----------------------------------------------------------|
| answers.jsonl                             | gold answers: _id, answer (a text or a list)             |
| excluded.jsonl                            | documents to leave out of a ranking: _id, excluded_ids   |
| query_forms.jsonl                         | further wordings: _id, text                              |
| expansions/<who>.jsonl                    | recorded expansions: _id, text                           |
| embeddings/<encoder>.{corpus,queries}.npy | one vector for each row of the two files                 |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evokey.bench.data import hub
from evokey.bench.data.dataset import Dataset, Judgements, check
from evokey.bench.data.rows import ENDINGS, grade_of, id_of, lines, rows, text_of, texts_of
from evokey.errors import InvalidInput
from evokey.types import Document

SPELLINGS = {"validation": "dev", "valid": "dev", "val": "dev", "development": "dev"}
SHARD = re.compile(r"-\d+-of-\d+$")
FIELDS = ("_id", "id", "title", "text", "metadata")


def is_beir(folder: Path) -> bool:
    return bool(_files(folder, "queries"))


def read(folder: Path, split: str = "test") -> Dataset:
    queries = _files(folder, "queries")
    if not queries:
        raise InvalidInput(f"{folder} has no queries.jsonl; a folder in BEIR layout needs it")
    splits = {_split_name(path): judgements(path) for path in _judgement_files(folder / "qrels")}
    if not splits:
        raise InvalidInput(f"{folder / 'qrels'} holds no judgements; it needs one .tsv file for each split")
    return check(
        Dataset(
            name=folder.resolve().name,
            documents=_documents(_files(folder, "corpus")),
            queries=_queries(queries),
            judged={},
            splits=splits,
            answers=_lists(folder / "answers.jsonl", "answer"),
            excluded={id: frozenset(ids) for id, ids in _lists(folder / "excluded.jsonl", "excluded_ids").items()},
            forms=_lists(folder / "query_forms.jsonl", "text"),
            expansions={path.stem: path for path in sorted((folder / "expansions").glob("*.jsonl"))},
            embeddings=dict(_embeddings(folder / "embeddings")),
            folder=folder,
            split=SPELLINGS.get(split, split),
        )
    )


def from_hub(name: str, split: str = "test", cache: Path | None = None) -> Dataset:
    """A set of the hub's BeIR, which keeps the judgements in a repository of their own."""
    texts = hub.fetch(f"BeIR/{name}", ("corpus*", "queries*"), cache)
    judged = hub.fetch(f"BeIR/{name}-qrels", ("*.tsv", "*.parquet"), cache)
    corpus, queries, files = _files(texts, "corpus"), _files(texts, "queries"), _judgement_files(judged)
    for what, found, where in (("corpus", corpus, texts), ("queries", queries, texts), ("judgements", files, judged)):
        if not found:
            raise hub.lacking(what, where)
    splits: dict[str, dict[str, Mapping[str, int]]] = {}
    for path in files:
        splits.setdefault(_split_name(path), {}).update(judgements(path))
    return check(
        Dataset(
            name=name,
            documents=_documents(corpus),
            queries=_queries(queries),
            judged={},
            splits=splits,
            folder=texts,
            split=SPELLINGS.get(split, split),
        )
    )


def judgements(path: Path) -> Judgements:
    """Query id → {document id: grade}: three columns with a header line, as BEIR writes them, or Parquet."""
    found: dict[str, dict[str, int]] = {}
    for where, query, document, spelled in _triples(path):
        grade = grade_of(where, spelled)
        grades = found.setdefault(query, {})
        if grades.setdefault(document, grade) != grade:
            raise InvalidInput(
                f"{where} grades document {document!r} of query {query!r} with {grade}; "
                f"an earlier line says {grades[document]}. Keep one of them."
            )
    return found


def expansions(path: Path) -> dict[str, str]:
    """Query id → recorded expansion."""
    return {id_of(where, row, "_id", "id"): text_of(where, row, "text") for where, row in rows(path)}


def _triples(path: Path) -> Iterator[tuple[str, str, str, object]]:
    if path.suffix == ".parquet":
        for where, row in rows(path):
            yield where, id_of(where, row, "query-id"), id_of(where, row, "corpus-id"), row.get("score")
        return
    for number, (where, line) in enumerate(lines(path)):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 3 or not cells[0] or not cells[1]:
            raise InvalidInput(f"{where} needs query-id, corpus-id and score, separated by tabs, not {line[:80]!r}")
        if number or cells[0] != "query-id":
            yield where, cells[0], cells[1], cells[2]


def _documents(paths: Iterable[Path]) -> Sequence[Document]:
    return [_document(where, row) for path in paths for where, row in rows(path)]


def _document(where: str, row: Mapping[str, Any]) -> Document:
    title, metadata = row.get("title") or "", row.get("metadata") or {}
    if not isinstance(title, str) or not isinstance(metadata, Mapping):
        raise InvalidInput(f"{where}: title must be a string and metadata an object")
    own = {name: value for name, value in row.items() if name not in FIELDS and value is not None}
    return Document(id_of(where, row, "_id", "id"), text_of(where, row, "text"), title, own | dict(metadata))


def _queries(paths: Iterable[Path]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in paths:
        for where, row in rows(path):
            id, text = id_of(where, row, "_id", "id"), text_of(where, row, "text")
            if found.setdefault(id, text) != text:
                raise InvalidInput(f"{where}: query {id!r} occurs in an earlier line with another text")
    return found


def _lists(path: Path, name: str) -> dict[str, tuple[str, ...]]:
    """Query id → the texts under this name, over all lines of the query, each once; no file, nothing."""
    found: dict[str, tuple[str, ...]] = {}
    for where, row in rows(path) if path.exists() else ():
        id = id_of(where, row, "_id", "id")
        found[id] = tuple(dict.fromkeys((*found.get(id, ()), *texts_of(where, row, name))))
    return found


def _embeddings(folder: Path) -> Iterator[tuple[str, tuple[Path, Path]]]:
    for corpus in sorted(folder.glob("*.corpus.npy")):
        encoder = corpus.name.removesuffix(".corpus.npy")
        queries = folder / f"{encoder}.queries.npy"
        if not queries.exists():
            raise InvalidInput(f"{corpus} has no {queries.name} beside it; embeddings come in pairs")
        yield encoder, (corpus, queries)


def _files(folder: Path, what: str) -> list[Path]:
    """corpus.jsonl, corpus.jsonl.gz, or the Parquet files of a folder of that name, wherever the hub puts them."""
    for ending in ENDINGS:
        if (folder / f"{what}{ending}").is_file():
            return [folder / f"{what}{ending}"]
    return sorted((folder / what).rglob("*.parquet"))


def _judgement_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.tsv")) or sorted(folder.rglob("*.parquet"))


def _split_name(path: Path) -> str:
    """test.tsv, test-00000-of-00001.parquet and test/0000.parquet are all test."""
    name = path.parent.name if path.stem.isdigit() else SHARD.sub("", path.stem)
    return SPELLINGS.get(name, name)
