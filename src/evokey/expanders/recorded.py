"""Expansions that were made before, from a JSONL file of {"_id", "text"}: by query id, or by the query's own text.

`queries` says which id is which query: a queries.jsonl, or a mapping of ids to texts. When it is left out, the
queries.jsonl of the data set is taken where the file lies in its folder `expansions`; else the ids are the queries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from evokey.errors import ExpansionFailed, InvalidSettings
from evokey.expanders import parse
from evokey.expanders.base import check, one_of
from evokey.expanders.units import LONGEST, MOST, handfuls, normal, passage, tidy
from evokey.protocols import Look
from evokey.types import Expansion, Unit, digest

SPLITS = ("auto", "sentences", "lines", "terms", "whole")


class Recorded:
    name: ClassVar[str] = "recorded"
    search: ClassVar[str] = "blend"
    needs: ClassVar[str] = ""

    def __init__(
        self,
        file: str | Path,
        queries: str | Path | Mapping[str, str] | None = None,
        split: str = "auto",
        *,
        units: int = MOST,
        longest: int = LONGEST,
    ) -> None:
        one_of(self.name, "split", split, SPLITS)
        check(self.name, units=units, longest=longest)
        self._file, self._split, self._most, self._longest = Path(file), split, units, longest
        texts = dict(_records(self._file))
        named = _query_ids(queries, self._file)
        self._known = {normal(id): text for id, text in reversed(texts.items())}
        self._known |= {normal(query): texts[id] for id, query in reversed(named.items()) if id in texts}
        made = digest(*(part for pair in sorted(texts.items()) for part in pair))
        self.identity = f"{self.name}/{self._file.stem}/{split}/{made[:12]}"

    def expand(self, query: str, look: Look) -> Expansion:
        text = self._known.get(normal(query))
        if text is None:
            raise ExpansionFailed(f"{self._file} holds no expansion of {query[:60]!r}")
        kept = tidy(pieces(text, query, self._split, self._longest), query, most=self._most, longest=self._longest)
        if not kept:
            raise ExpansionFailed(f"the expansion of {query[:60]!r} in {self._file} only repeats the query")
        return Expansion(query, kept, self.name, self.search, self._file.stem)


def pieces(text: str, query: str, split: str = "auto", longest: int = LONGEST) -> list[Unit]:
    """A recorded text, taken apart."""
    text = _without(query.strip(), parse.answer(text))
    if split == "whole":
        return [Unit(text)]
    if split == "terms":
        return handfuls(parse.terms(text), query=query)
    if split == "lines" or (split == "auto" and parse.loose_json(text) is not None):
        return [Unit(entry) for entry in parse.items(text)]
    found: list[Unit] = []
    for unit in passage(parse.passage(text), longest):
        found += handfuls(parse.terms(unit.text), query=query) if split == "auto" and _enumerates(unit.text) else [unit]
    return found


def _without(query: str, text: str) -> str:
    """Many recorders put the query in front, several times, or between what was said at several times."""
    while query and text[: len(query)].casefold() == query.casefold():
        text = text[len(query) :].lstrip(" .\n")
    if query.count(" ") < 4:
        return text
    return re.sub(re.escape(query), lambda _: "\n\n", text, flags=re.IGNORECASE)


def _enumerates(text: str) -> bool:
    """A sentence that is a list of terms: many commas, few words between them."""
    parts = text.split(",")
    return len(parts) > 6 and len(text.split()) <= 4 * len(parts)


def _query_ids(queries: str | Path | Mapping[str, str] | None, file: Path) -> dict[str, str]:
    if isinstance(queries, Mapping):
        return dict(queries)
    beside = file.parent.parent / "queries.jsonl"
    if queries is None and not (file.parent.name == "expansions" and beside.exists()):
        return {}
    return dict(_records(Path(queries) if queries is not None else beside))


def _records(file: Path) -> Iterator[tuple[str, str]]:
    try:
        lines = file.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings(f"{file} cannot be read as a JSONL file: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            yield str(record["_id"]), str(record["text"])
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidSettings(f'{file}, line {number}: expected {{"_id": …, "text": …}} ({error!r})') from error
