"""Synonyms from WordNet: the query's words and multi-word terms, in their most usual sense, said otherwise.

The part of speech is guessed from the word before and from how often the word is used as what; senses come in WordNet's
order, the most frequent first. The files are NLTK's (corpora/wordnet) or Debian's (package wordnet-base).
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import nltk.data
from nltk.corpus.reader.wordnet import WordNetCorpusReader

from evokey.encoders.bm25 import STOP_WORDS
from evokey.encoders.words import split
from evokey.errors import ExpansionFailed, InvalidSettings
from evokey.expanders.base import check
from evokey.expanders.units import MOST, normal, tidy
from evokey.protocols import Look
from evokey.types import Expansion, Unit

DEBIAN = Path("/usr/share/wordnet")
LONGEST_TERM = 4
"""Words of a multi-word term."""
_BEFORE_VERB = frozenset("to i you we they he she can could will would should must may might do does did not".split())
_BEFORE_NOUN = frozenset("a an the my your our their his her its this these those of in on for with by from".split())
_LOCK = threading.Lock()


class Synonyms:
    name: ClassVar[str] = "synonyms"
    search: ClassVar[str] = "blend"
    needs: ClassVar[str] = ""

    def __init__(
        self,
        *,
        folder: str | Path | None = None,
        senses: int = 1,
        synonyms: int = 5,
        related: bool = False,
        units: int = MOST,
    ) -> None:
        check(self.name, senses=senses, synonyms=synonyms, units=units)
        self._senses, self._synonyms, self._related, self._most = senses, synonyms, related, units
        self._wordnet = _reader(str(folder or _found()))
        kinds = "+related" if related else ""
        self.identity = f"{self.name}/wordnet-{self._wordnet.get_version()}/{senses}/{synonyms}{kinds}"

    def expand(self, query: str, look: Look) -> Expansion:
        with _LOCK:  # nltk's reader seeks in files that all share
            pieces = [Unit(", ".join(words)) for words in self._otherwise(query)]
        kept = tidy(pieces, query, most=self._most)
        if not kept:
            raise ExpansionFailed(f"synonyms: WordNet has no other words for {query[:60]!r}")
        return Expansion(query, kept, self.name, self.search)

    def _otherwise(self, query: str) -> Iterator[list[str]]:
        said = set(normal(query).split())
        said |= {base for word in said for kind in "nva" if (base := self._wordnet.morphy(word, kind))}
        for term, before in self._terms(split(query)):
            words: dict[str, None] = {}
            for sense in self._meanings(term, before):
                words |= dict.fromkeys(lemma.replace("_", " ") for lemma in self._lemmas(sense))
            new = [word for word in words if not set(normal(word).split()) <= said]
            if new:
                yield new[: self._synonyms]

    def _terms(self, words: list[str]) -> Iterator[tuple[str, str]]:
        """The longest terms that WordNet has, each with the word before it."""
        at = 0
        while at < len(words):
            for length in range(min(LONGEST_TERM, len(words) - at), 0, -1):
                term = "_".join(words[at : at + length])
                if (length > 1 and self._wordnet.synsets(term)) or length == 1:
                    break
            if length > 1 or (term not in STOP_WORDS and len(term) > 1 and not term.isdigit()):
                yield term, words[at - 1] if at else ""
            at += length

    def _meanings(self, term: str, before: str) -> list[Any]:
        """The first senses of the part of speech that is likely here."""
        senses = self._wordnet.synsets(term)
        uses: dict[str, int] = {}
        for sense in senses:
            kind = "a" if sense.pos() == "s" else sense.pos()
            base = self._wordnet.morphy(term, sense.pos()) or term
            count = sum(lemma.count() for lemma in sense.lemmas() if lemma.name().lower() == base)
            uses[kind] = uses.get(kind, 0) + count
        if not uses:
            return []
        likely = max(uses, key=lambda kind: (uses[kind], kind == "n"))
        if before in _BEFORE_VERB and "v" in uses:
            likely = "v"
        if before in _BEFORE_NOUN and "n" in uses and likely == "v":
            likely = "n"
        return [sense for sense in senses if sense.pos().replace("s", "a") == likely][: self._senses]

    def _lemmas(self, sense: Any) -> list[str]:
        near = [*sense.hypernyms(), *sense.similar_tos()] if self._related else []
        return [name for one in [sense, *near] for name in one.lemma_names()]


class _Reader(WordNetCorpusReader):  # type: ignore[misc]
    """NLTK's reader, content with Debian's files: they lack the list of the lexicographers' file names, and there is no
    other WordNet beside them to translate other languages by."""

    def map_wn(self, version: str = "wordnet") -> None:
        return None

    def open(self, file: str) -> Any:
        if file == "lexnames" and not Path(str(self._root), file).exists():
            return io.StringIO("".join(f"{number:02d}\tfile{number:02d}\t0\n" for number in range(45)))
        return super().open(file)


@cache
def _reader(folder: str) -> Any:
    if folder not in nltk.data.path:
        nltk.data.path.append(folder)  # nltk reads only below the folders named there
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "multilingual functions are not available": they are not used
            return _Reader(nltk.data.FileSystemPathPointer(folder), None)
    except (OSError, LookupError, ValueError) as error:
        raise InvalidSettings(
            f"{folder} holds no WordNet files (index.noun, data.noun, …): {error}. {_WAY_OUT}"
        ) from error


_WAY_OUT = "Install Debian's package wordnet-base, or run: python -m nltk.downloader wordnet, or give the option folder"


def _found() -> Path:
    if (DEBIAN / "index.noun").exists():
        return DEBIAN
    for place in map(Path, nltk.data.path):
        if (place / "corpora" / "wordnet" / "index.noun").exists():
            return place / "corpora" / "wordnet"
    raise InvalidSettings(f"expander 'synonyms' finds no WordNet. {_WAY_OUT}")
