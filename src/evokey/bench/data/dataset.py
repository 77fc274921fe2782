"""A data set as the bench sees it, whatever files it came from; and what is odd about it, in words.

Nothing odd is passed over in silence. What cannot be scored is left out of `judged`; what merely deserves
to be known stays. Either way `problems` says so, with a count and examples.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np

from evokey.errors import InvalidInput
from evokey.types import Document

Judgements = Mapping[str, Mapping[str, int]]
"""Query id → {document id: grade}."""
SHOWN = 3
SAME = 0.9
"""Share of words in common above which a query and a document under one id are one text."""
WORD = re.compile(r"\w+")
LONG = "_long"
"""How the name of a split ends that judges long documents instead of their passages."""


@dataclass(frozen=True)
class Dataset:
    name: str
    documents: Sequence[Document]
    """In the order of their file: row i of given embeddings is document i. Empty when a set has no corpus."""
    queries: Mapping[str, str]
    """Query id → text, of all splits, in the order of their file."""
    judged: Judgements
    """The chosen split. A grade above 0 is right, 0 is judged wrong. Every query has a text and a right document."""
    splits: Mapping[str, Judgements]
    """All splits found: train, dev, test …"""
    answers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Query id → gold answers, any of which is right."""
    excluded: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Query id → documents to leave out of its ranking."""
    forms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Query id → further wordings."""
    expansions: Mapping[str, Path] = field(default_factory=dict)
    """Who wrote them → file; `expansions(path)` reads it."""
    embeddings: Mapping[str, tuple[Path, Path]] = field(default_factory=dict)
    """Encoder → vectors of the documents, vectors of the queries."""
    problems: Sequence[str] = ()
    folder: Path | None = None
    split: str = "test"


def prefix(data: Dataset) -> Dataset:
    """The same set with its name in front of every document id: for several sets in one index."""

    def rename(judged: Judgements) -> Judgements:
        return {query: {f"{data.name}/{id}": grade for id, grade in grades.items()} for query, grades in judged.items()}

    return replace(
        data,
        documents=[replace(one, id=f"{data.name}/{one.id}") for one in data.documents],
        judged=rename(data.judged),
        splits={name: rename(judged) for name, judged in data.splits.items()},
        excluded={query: frozenset(f"{data.name}/{id}" for id in ids) for query, ids in data.excluded.items()},
    )


def check(raw: Dataset) -> Dataset:
    """The set with its chosen split, without what cannot be scored, and with every oddity told."""
    problems = list(raw.problems)
    if raw.split not in raw.splits:
        raise InvalidInput(f"{raw.name} has no split {raw.split!r}; it has: {', '.join(sorted(raw.splits)) or 'none'}")
    documents = _unique(raw.documents, problems)
    known = {document.id for document in documents}
    _tell_documents(documents, problems)
    splits = {
        name: _known(name, judged, raw, known, problems) for name, judged in raw.splits.items() if _concerns(name, raw)
    }
    judged = _scorable(splits[raw.split], raw, problems)
    _tell(problems, set(raw.queries) - set().union(*splits.values()), "queries are judged in no split")
    return replace(
        raw,
        documents=documents,
        judged=judged,
        splits=splits,
        answers=_of_known_queries("answers", raw.answers, raw, problems),
        excluded=_exclusions(raw, documents, problems),
        forms=_of_known_queries("further wordings", raw.forms, raw, problems),
        embeddings=_fitting(raw, documents, problems),
        problems=tuple(problems),
    )


def _concerns(split: str, raw: Dataset) -> bool:
    """Splits over long documents and over passages judge different corpora."""
    return split.endswith(LONG) == raw.split.endswith(LONG)


def _unique(documents: Sequence[Document], problems: list[str]) -> tuple[Document, ...]:
    if not documents:
        problems.append("no corpus: there is nothing to search, and judgements cannot be checked against it")
    unique: dict[str, Document] = {}
    again = []
    for document in documents:
        if unique.setdefault(document.id, document) is not document:
            again.append(document.id)
    _tell(problems, again, "documents stand under an id that an earlier one has, and are left out")
    return tuple(unique.values())


def _tell_documents(documents: Sequence[Document], problems: list[str]) -> None:
    same: dict[bytes, list[str]] = defaultdict(list)
    empty = []
    for document in documents:
        content = _plain(f"{document.title} {document.text}")
        if content:
            same[blake2b(content.encode("utf-8", "replace"), digest_size=16).digest()].append(document.id)
        else:
            empty.append(document.id)
    _tell(problems, empty, "documents are empty: no query can find them")
    copies = [f"{ids[0]} = {ids[1]}" for ids in same.values() for _ in ids[1:]]
    _tell(problems, copies, "documents repeat the text of another: a copy that is not judged counts as wrong")


def _known(
    split: str, judged: Judgements, raw: Dataset, known: set[str], problems: list[str]
) -> dict[str, dict[str, int]]:
    """The judgements of queries and documents that are there; nobody can find the others."""
    lost: list[str] = []
    negative: list[str] = []
    kept: dict[str, dict[str, int]] = {}
    for query, grades in judged.items():
        if query not in raw.queries:
            continue
        lost += [document for document in grades if known and document not in known]
        negative += [f"{query} → {document}" for document, grade in grades.items() if grade < 0]
        there = {document: max(0, grade) for document, grade in grades.items() if not known or document in known}
        if there:
            kept[query] = there
    _tell(problems, [query for query in judged if query not in raw.queries], f"judged queries of {split} have no text")
    _tell(problems, lost, f"judgements of {split} are about documents that are not in the corpus, and are left out")
    _tell(problems, negative, f"judgements of {split} are below 0 and count as 0, judged wrong")
    return kept


def _scorable(judged: Judgements, raw: Dataset, problems: list[str]) -> dict[str, Mapping[str, int]]:
    blank = {query for query in judged if not raw.queries[query].strip()}
    hopeless = {query for query in raw.splits[raw.split] if query in raw.queries} - {
        query for query, grades in judged.items() if max(grades.values()) > 0
    }
    _tell(problems, blank, f"queries of {raw.split} are empty, and are left out")
    _tell(problems, hopeless, f"queries of {raw.split} have no right document in the corpus, and are left out")
    kept = {query: grades for query, grades in judged.items() if query not in blank | hopeless}
    if not kept:
        raise InvalidInput(f"{raw.name}, {raw.split}: no query has a text and a right document. " + "; ".join(problems))
    return kept


def _of_known_queries(
    what: str, given: Mapping[str, tuple[str, ...]], raw: Dataset, problems: list[str]
) -> dict[str, tuple[str, ...]]:
    _tell(problems, set(given) - set(raw.queries), f"{what} are of queries that are not there")
    return {query: texts for query, texts in given.items() if texts and query in raw.queries}


def _exclusions(raw: Dataset, documents: Sequence[Document], problems: list[str]) -> dict[str, frozenset[str]]:
    """What the set itself leaves out, and a document that is the query itself; never a right one.

    An id in common is not enough: many sets number both from 1.
    """
    by_id = {document.id: document for document in documents if document.id in raw.queries}
    itself = {id for id, document in by_id.items() if _is_query(raw.queries[id], document)}
    _tell(problems, itself, "queries are themselves documents, and are left out of their own rankings")
    _tell(problems, set(by_id) - itself, "queries share an id with a document of another text, which stays")
    excluded, contradicted = {}, []
    for query in raw.queries:
        out = raw.excluded.get(query, frozenset()) | ({query} if query in itself else frozenset())
        right = {
            document
            for judged in raw.splits.values()
            for document, grade in judged.get(query, {}).items()
            if grade > 0 and document in out
        }
        contradicted += [f"{query} → {document}" for document in sorted(right)]
        if out - right:
            excluded[query] = frozenset(out - right)
    _tell(problems, contradicted, "documents are to be left out of a ranking where they are right; they stay")
    return excluded


def _is_query(query: str, document: Document) -> bool:
    """Whether a document under the query's id is the query: nearly all words in common."""
    asked = set(WORD.findall(query.casefold()))
    told = [set(WORD.findall(text.casefold())) for text in (document.text, f"{document.title} {document.text}")]
    return any(len(asked & words) > SAME * len(asked | words) for words in told)


def _fitting(raw: Dataset, documents: Sequence[Document], problems: list[str]) -> dict[str, tuple[Path, Path]]:
    """The embeddings that have one row for each document and each query."""
    fitting = {}
    for encoder, paths in raw.embeddings.items():
        found = tuple(_row_count(path) for path in paths)
        if found == (len(documents), len(raw.queries)):
            fitting[encoder] = paths
        else:
            problems.append(
                f"embeddings of {encoder} have {found[0]} and {found[1]} rows for {len(documents)} documents and "
                f"{len(raw.queries)} queries, and are left out"
            )
    return fitting


def _row_count(path: Path) -> int:
    try:
        vectors = np.load(path, mmap_mode="r")
    except (ValueError, OSError, EOFError) as error:
        raise InvalidInput(f"{path} is no array as numpy.save writes it: {error}") from error
    if vectors.ndim != 2:
        raise InvalidInput(f"{path} must hold one row for each text, not an array of {vectors.ndim} dimensions")
    return int(vectors.shape[0])


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _tell(problems: list[str], culprits: Iterable[str], what: str) -> None:
    found = sorted(culprits) if isinstance(culprits, set) else list(culprits)
    if found:
        named = ", ".join(repr(id) for id in found[:SHOWN])
        problems.append(f"{len(found):,} {what} (such as {named})")
