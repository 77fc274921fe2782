"""Judgement lists, in and out: tables with query, document and grade (as Quepid has them), and TREC qrels with
topics."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from evokey.bench.data import trec
from evokey.errors import InvalidInput
from evokey.feedback.judged import Judged, Judgement
from evokey.feedback.reading import number_of, read_records, read_table, read_text
from evokey.types import Lesson

QUERY = ("query", "query_text", "question", "search_query")
DOCUMENT = ("docid", "doc_id", "document", "document_id", "id")
GRADE = ("rating", "grade", "relevance", "judgment", "score")
NO_GRADE = "a row without a grade"
NO_TEXT = "a judgement whose query has no text"
IN_JSON = (".json", ".jsonl", ".ndjson")


def read(paths: Sequence[Path]) -> Judged:
    """A table; OpenSearch's judgement lists as JSON; or qrels, with a file that has the texts of their queries."""
    if all(path.suffix in IN_JSON for path in paths):
        return _read_lists(paths)
    tables = [path for path in paths if path.suffix in (".csv", ".tsv") and _is_table(path)]
    if len(tables) == len(paths):
        found = Judged()
        for path in tables:
            _read_table(path, found)
        return found
    return _read_qrels(paths)


def _is_table(path: Path) -> bool:
    head = read_text(path).partition("\n")[0].lower().replace("\t", ",").replace('"', "").strip().split(",")
    return any(name in head for name in QUERY) and any(name in head for name in DOCUMENT)


def _read_table(path: Path, found: Judged) -> None:
    for row in read_table(path):
        query, document, said = (_first(row, names) for names in (QUERY, DOCUMENT, GRADE))
        grade = number_of(said)
        if grade is None:
            found.left_out[NO_GRADE] += 1
        elif not query.strip() or not document:
            found.left_out[NO_TEXT] += 1
        else:
            found.found.append(
                Judgement(query.strip(), document, grade if grade > 0 else -1.0, row.get("actor") or None)
            )


def _first(row: Mapping[str, str], names: Sequence[str]) -> str:
    return next((row[name] for name in names if row.get(name)), "")


def _read_lists(paths: Sequence[Path]) -> Judged:
    """{"query": …, "ratings": [{"docId": …, "rating": …}]}, as OpenSearch's search relevance workbench has it."""
    found = Judged()
    for one in read_records(paths):
        for rating in one.get("ratings") or one.get("judgments") or ():
            document = rating.get("docId", rating.get("doc_id")) if isinstance(rating, Mapping) else None
            grade = number_of(rating.get("rating")) if isinstance(rating, Mapping) else None
            query = str(one.get("query") or one.get("queryText") or "").strip()
            if grade is None or document is None:
                found.left_out[NO_GRADE] += 1
            elif not query:
                found.left_out[NO_TEXT] += 1
            else:
                found.found.append(Judgement(query, str(document), grade if grade > 0 else -1.0))
    return found


def _read_qrels(paths: Sequence[Path]) -> Judged:
    texts: dict[str, str] = {}
    judged: list[tuple[str, str, float]] = []
    for path in paths:
        if path.suffix in IN_JSON:
            texts |= {str(one.get("_id", one.get("id"))): str(one.get("text", "")) for one in read_records([path])}
        elif (named := _read_texts(path)) is not None:
            texts |= named
        else:
            said = _read_beir(path) or trec.qrels(path)
            judged += [(query, id, grade) for query, grades in said.items() for id, grade in grades.items()]
    if not texts:
        raise InvalidInput(
            "qrels name their queries by id: give a file with the texts too (id, tab, text; or JSONL with _id and text)"
        )
    found = Judged()
    for query, document, grade in judged:
        text = texts.get(query, "").strip()
        if text:
            found.found.append(Judgement(text, document, float(grade) if grade > 0 else -1.0))
        else:
            found.left_out[NO_TEXT] += 1
    return found


def _read_texts(path: Path) -> dict[str, str] | None:
    """Texts of queries, where a file has an id and a text on each line; None: it is something else."""
    lines = [line.split("\t") for line in read_text(path).splitlines() if line.strip()]
    if lines and all(len(line) == 2 for line in lines):
        return {id.strip(): text for id, text in lines}
    return None


def _read_beir(path: Path) -> dict[str, dict[str, int]]:
    """BEIR's qrels have a head and three columns; empty: it is something else."""
    lines = [line.split("\t") for line in read_text(path).splitlines() if line.strip()]
    found: dict[str, dict[str, int]] = {}
    if lines and [cell.strip() for cell in lines[0]] == ["query-id", "corpus-id", "score"]:
        for query, document, grade in (line for line in lines[1:] if len(line) == 3):
            found.setdefault(query, {})[document] = round(number_of(grade) or 0)
    return found


# ---- out


def write(path: Path, taught: Iterable[Lesson], form: str) -> int:
    """Lessons as judgements: csv (query, docid, rating), or qrels with the texts of the queries in PATH.queries.tsv.
    Of several lessons on one document the latest counts. Returns how many judgements there are."""
    grades: dict[str, dict[str, float]] = {}
    for lesson in taught:
        for one in lesson.verdicts:
            grades.setdefault(lesson.query, {})[one.document] = max(one.grade, 0.0)
    if form == "csv":
        rows = [(query, id, f"{grade:g}") for query, said in grades.items() for id, grade in said.items()]
        _write(path, [("query", "docid", "rating"), *rows], ",")
    else:
        ids = {query: str(number) for number, query in enumerate(grades, 1)}
        trec.write_qrels(
            path, {ids[query]: {id: _whole(grade) for id, grade in said.items()} for query, said in grades.items()}
        )
        texts = [(id, " ".join(query.split())) for query, id in ids.items()]
        _write(path.with_name(f"{path.name}.queries.tsv"), texts, "\t")
    return sum(map(len, grades.values()))


def _whole(grade: float) -> int:
    """qrels have whole grades: what is right stays so."""
    return max(1, round(grade)) if grade > 0 else 0


def _write(path: Path, rows: Iterable[Sequence[str]], separator: str) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows(rows)
    try:
        path.write_text(text.getvalue(), "utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written ({error}); name another file") from error
