"""No small text holds a reader or a key builder for long: time grows with the length of the text, whatever it says."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from evokey import ingest
from evokey.bench.data import trec
from evokey.errors import InvalidInput, UnknownPassage
from evokey.keys.abstract import Abstract
from evokey.keys.auto import Auto
from evokey.keys.chunks import Chunks
from evokey.keys.full import Full
from evokey.keys.keywords import Keywords
from evokey.keys.title import Title
from evokey.passages import parts
from evokey.types import Document

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs an alarm")
SIZE = 200_000
BUDGET = 60
"""Seconds: quadratic time takes minutes to days here, linear time less than ten seconds on a busy machine."""
HOSTILE: dict[str, Callable[[int], str]] = {
    "spaces in a heading": lambda n: "# a" + " " * n + "b",
    "marks after a heading": lambda n: "# a" + "#" * n + "b",
    "open fences": lambda n: "```a\n" * (n // 5),
    "fences": lambda n: "```\nx\n~~~\n" * (n // 10),
    "spaces after abstract": lambda n: "abstract" + " " * n + "x",
    "blank lines after abstract": lambda n: "abstract" + "\n \r" * (n // 3),
    "spaces after introduction": lambda n: "abstract\n\nwords\nintroduction" + " " * n + "x",
    "bold that never ends": lambda n: "abstract\n\nwords\n" + "**a" * (n // 3),
    "a long heading over many": lambda n: "# " + "a " * (n // 4) + "\n" + "## b\nc\n" * (n // 14),
    "many words in many lines": lambda n: "\n".join(
        "- " + " ".join(f"w{line}x{place}" for place in range(n // 20_000)) for line in range(2_000)
    ),
    "brackets before full stops": lambda n: ("(" * 57 + " . ") * (n // 60),
    "full stops": lambda n: ". " * (n // 2),
    "spaces": lambda n: " " * n + "x",
    "one word": lambda n: "a" * n,
    "accents": lambda n: "a" + "\u0301" * n,
}


class Expired(Exception):
    pass


@contextmanager
def budget(seconds: int) -> Iterator[None]:
    """A regular expression that runs away holds the interpreter: only a signal ends it."""

    def expire(*_: object) -> None:
        raise Expired(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Corpus:
    documents = 1_000

    def frequency(self, word: str) -> int:
        return 1


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_markdown_file_holds_the_reader(tmp_path: Path, text: Callable[[int], str]) -> None:
    file = tmp_path / "hostile.md"
    file.write_text(text(SIZE), "utf-8")
    with budget(BUDGET):
        assert len(list(ingest.read(file))) == 1


@pytest.mark.parametrize(
    "builder", [Abstract(), Auto(), Chunks(), Full(), Keywords(), Title()], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_text_holds_a_key_builder(
    builder: Abstract | Auto | Chunks | Full | Keywords | Title, text: Callable[[int], str]
) -> None:
    with budget(BUDGET):
        builder.rows(Document("hostile", text(SIZE)), Corpus())


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_text_holds_those_who_look_for_its_passages(text: Callable[[int], str]) -> None:
    document = Document("hostile", text(SIZE))
    with budget(BUDGET), suppress(UnknownPassage):
        parts.resolve(document, "a b c", parts.windows(document))


def test_topics_that_are_never_closed_do_not_hold_the_reader(tmp_path: Path) -> None:
    file = tmp_path / "topics.txt"
    file.write_text("<top>" * 200_000)
    with budget(BUDGET), pytest.raises(InvalidInput, match="has a <top> that no </top> closes, after topic 0"):
        trec.topics(file)
