"""TREC files: topics (<top> blocks, or id and text parted by a tab), judgements of 4 columns, runs of 6.

A folder of them is a data set: topics*, qrels*, and the documents under corpus*, documents* or docs*
(a file or a folder of any kind that `evokey add` reads).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from evokey import ingest
from evokey.bench.data.dataset import Dataset, Judgements, check
from evokey.bench.data.rows import grade_of, lines
from evokey.errors import InvalidInput
from evokey.ingest.files import decode

Scored = Sequence[tuple[str, float]]
"""(document id, score), best first."""
Run = Mapping[str, Scored]
"""By query id."""
TOP = re.compile(r"<(/?)top>", re.IGNORECASE)
FIELD = re.compile(r"<(num|title|desc|narr)>(.*?)(?=<num>|<title>|<desc>|<narr>|$)", re.DOTALL | re.IGNORECASE)
LABEL = re.compile(r"^\s*(Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)
TAG = re.compile(r"</?\w+>")
CORPORA = ("corpus*", "documents*", "docs*")
TOPICS = ("topics*", "*.topics", "queries.tsv")
QRELS = ("qrels*", "*.qrels", "qrels/*")


@dataclass(frozen=True, slots=True)
class Topic:
    id: str
    title: str
    description: str = ""
    narrative: str = ""


def is_trec(folder: Path) -> bool:
    return bool(_files(folder, TOPICS) and _files(folder, QRELS))


def read(folder: Path, split: str = "test") -> Dataset:
    """Titles are the queries, descriptions their further wordings; qrels.train.txt is train, qrels.txt is test."""
    found = [topic for path in _files(folder, TOPICS) for topic in topics(path)]
    splits: dict[str, Judgements] = {}
    for path in _files(folder, QRELS):
        name = _split_name(path)
        if name in splits:
            raise InvalidInput(f"{path} is a second file of judgements for the split {name!r}; keep one")
        splits[name] = qrels(path)
    corpora = sorted({path for pattern in CORPORA for path in folder.glob(pattern)})
    return check(
        Dataset(
            name=folder.resolve().name,
            documents=[document for path in corpora for document in ingest.read(path, path if path.is_dir() else None)],
            queries=_texts(folder, found),
            judged={},
            splits=splits,
            forms={topic.id: (topic.description,) for topic in found if topic.title and topic.description},
            folder=folder,
            split=split,
        )
    )


def topics(path: Path) -> list[Topic]:
    text = decode(str(path), path.read_bytes())
    if "<top>" in text.lower():
        return list(_blocks(path, text))
    found = []
    for where, line in lines(path):
        id, tab, title = line.partition("\t")
        if not (tab and id.strip() and title.strip()):
            raise InvalidInput(f"{where} needs an id, a tab and a text, not {line[:80]!r}; or write <top> blocks")
        found.append(Topic(id.strip(), title.strip()))
    return found


def qrels(path: Path, *, escaped: bool = False) -> Judgements:
    """Query id → {document id: grade}: query, iteration, document, grade."""
    found: dict[str, dict[str, int]] = {}
    for where, line in lines(path):
        cells = line.split()
        if len(cells) != 4:
            raise InvalidInput(
                f"{where} needs 4 columns (query, iteration, document, grade), not {len(cells)}: {line[:80]!r}"
            )
        query, document = (unquote(cell) if escaped else cell for cell in (cells[0], cells[2]))
        grade = grade_of(where, cells[3])
        if found.setdefault(query, {}).setdefault(document, grade) != grade:
            raise InvalidInput(f"{where} grades document {document!r} of query {query!r} again, with another grade")
    return found


def write_qrels(path: Path, judged: Judgements, *, escaped: bool = False) -> None:
    _write(
        path,
        (
            f"{_word(query, escaped)} 0 {_word(document, escaped)} {grade}"
            for query, grades in judged.items()
            for document, grade in grades.items()
        ),
    )


def run(path: Path, *, escaped: bool = False) -> dict[str, list[tuple[str, float]]]:
    """The rankings of a run file: by score, as TREC's own tools read it; equal scores by rank."""
    found: dict[str, dict[str, tuple[float, int]]] = {}
    for where, line in lines(path):
        cells = line.split()
        if len(cells) != 6:
            raise InvalidInput(
                f"{where} needs 6 columns (query, Q0, document, rank, score, tag), not {len(cells)}: {line[:80]!r}"
            )
        query, document = (unquote(cell) if escaped else cell for cell in (cells[0], cells[2]))
        hits = found.setdefault(query, {})
        if document in hits:
            raise InvalidInput(f"{where} ranks document {document!r} of query {query!r} a second time")
        hits[document] = _number(where, cells[4]), int(_number(where, cells[3]))
    return {
        query: [
            (document, score)
            for document, (score, _) in sorted(hits.items(), key=lambda hit: (-hit[1][0], hit[1][1]))
        ]
        for query, hits in found.items()
    }  # fmt: skip


def write_run(path: Path, rankings: Run, tag: str = "evokey", *, escaped: bool = False) -> None:
    """Six columns, ranks from 1, scores exact. A query without hits has no line.

    With `escaped`, white space and % in ids are written as %20 and the like; read such a file with `escaped` too.
    """
    _write(path, _run_lines(rankings, _word(tag, escaped=False), escaped))


def separate(hits: Scored) -> list[tuple[str, float]]:
    """The same ranking with scores that fall strictly: tools that sort by score order equal ones by their ids."""
    found: list[tuple[str, float]] = []
    for document, score in hits:
        last = found[-1][1] if found else math.inf
        found.append((document, float(score) if score < last else math.nextafter(last, -math.inf)))
    return found


def needs_escape(rankings: Run) -> bool:
    """Whether an id holds white space, which separates the columns."""
    ids = (id for query, hits in rankings.items() for id in (query, *(document for document, _ in hits)))
    return any(_parts(sign) for id in ids for sign in id)


def _run_lines(rankings: Run, tag: str, escaped: bool) -> Iterator[str]:
    for query, hits in rankings.items():
        last = math.inf
        for rank, (document, score) in enumerate(hits, start=1):
            if not math.isfinite(score) or score > last:
                raise InvalidInput(
                    f"query {query!r}, rank {rank}: the score must be finite and not above the one before, {last}; "
                    f"it is {score}"
                )
            last = score
            yield f"{_word(query, escaped)} Q0 {_word(document, escaped)} {rank} {float(score)!r} {tag}"


def _write(path: Path, written: Iterable[str]) -> None:
    """All of it or nothing: a refused line or an interruption leaves no half-written file."""
    text = "".join(f"{line}\n" for line in list(written))
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_bytes(text.encode())
    part.replace(path)


def _word(id: str, escaped: bool) -> str:
    """An id as one column. A byte order mark would be lost where a line begins, so it counts as white space."""
    word = "".join(_escape(sign) if _parts(sign) or sign == "%" else sign for sign in id) if escaped else id
    if not word or any(map(_parts, word)):
        raise InvalidInput(
            f"{id!r} cannot stand in a TREC file: columns are separated by spaces. Write with escaped=True"
        )
    return word


def _parts(sign: str) -> bool:
    return sign.isspace() or sign == "\ufeff"


def _escape(sign: str) -> str:
    return "".join(f"%{byte:02X}" for byte in sign.encode())


def _number(where: str, cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput(f"{where}: rank and score must be finite numbers, not {cell!r}")
    return number


def _blocks(path: Path, text: str) -> Iterator[Topic]:
    for start, end in _spans(path, text):
        fields = {name.lower(): _content(content) for name, content in FIELD.findall(text[start:end])}
        if not fields.get("num") or not (fields.get("title") or fields.get("desc")):
            line = text.count("\n", 0, start) + 1
            raise InvalidInput(f"{path}, line {line}: a topic needs <num>, and <title> or <desc>")
        yield Topic(fields["num"], fields.get("title", ""), fields.get("desc", ""), fields.get("narr", ""))


def _spans(path: Path, text: str) -> list[tuple[int, int]]:
    """From where to where each topic goes, found in one pass."""
    found: list[tuple[int, int]] = []
    start: int | None = None
    for mark in TOP.finditer(text):
        if start is not None and mark[1]:
            found.append((start, mark.start()))
            start = None
        elif start is None and not mark[1]:
            start = mark.end()
        elif start is not None:
            break
    if start is not None:
        raise InvalidInput(f"{path} has a <top> that no </top> closes, after topic {len(found)}")
    return found


def _content(field: str) -> str:
    return " ".join(LABEL.sub("", TAG.sub(" ", field)).split())


def _texts(folder: Path, found: Sequence[Topic]) -> dict[str, str]:
    queries: dict[str, str] = {}
    for topic in found:
        if topic.id in queries:
            raise InvalidInput(f"{folder}: topic {topic.id!r} occurs twice; ids must differ")
        queries[topic.id] = topic.title or topic.description
    return queries


def _files(folder: Path, patterns: Sequence[str]) -> list[Path]:
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})


def _split_name(path: Path) -> str:
    words = set(re.split(r"[^a-z]+", path.name.lower()))
    return next((split for split in ("train", "dev", "test") if split in words), "test")
