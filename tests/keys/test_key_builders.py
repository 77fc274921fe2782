"""What every key builder owes its callers, over the whole registry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evokey import registry
from evokey.encoders.words import split
from evokey.errors import InvalidSettings
from evokey.protocols import KeyBuilder
from evokey.types import Document

BUILDERS = sorted(registry.COMPONENTS["keys"])
PROSE = "The engine of Dr. Smith turns heat into work, e.g. in ships. It was built in 1.5 years, ca. 1850! Who paid? "
LISTS = "- copper\n- iron\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
MARKDOWN = f"# Engines\n\n{PROSE}\n\n## Boilers\n\n{LISTS}"
DOCUMENTS = {
    "prose": Document("1", PROSE, "Engines"),
    "untitled": Document("2", PROSE),
    "title alone": Document("3", "", "Engines"),
    "with an abstract": Document("4", PROSE, "Engines", {"abstract": "Heat becomes work."}),
    "one word": Document("5", "engine"),
    "stop words": Document("6", "to be or not to be"),
    "numbers": Document("7", "3.14 2.71\n1 2 3"),
    "marks": Document("8", "?! ... --- ***"),
    "emoji": Document("9", "😀😀 👩‍👩‍👧 🎉"),
    "right to left": Document("10", "مرحبا بالعالم. كيف حالك؟ شكرا جزيلا.", "שלום עולם"),
    "Chinese": Document("11", "今天天气很好。我们去公园吧！好不好？", "天气"),
    "Hindi": Document("12", "हिन्दी एक भाषा है। यह भारत में बोली जाती है।"),
    "Thai": Document("13", "ภาษาไทยเป็นภาษาที่ไม่มีช่องว่างระหว่างคำ"),
    "combining accents": Document("14", "cafe\u0301 Ame\u0301lie a\u0300 la carte"),
    "no-break spaces": Document("15", "\u00a0a\u2003b\u3000c\u200bd\ufeff"),
    "Markdown": Document("16", MARKDOWN * 5, "Engines"),
    "open fence": Document("17", "intro\n\n```\n" + "x = 1\n" * 300),
    "dialogue": Document("18", "Ann: Hi!\nBob: Hey Ann, the kiln is broken.\n" * 20, "8 May"),
    "one endless run": Document("19", "statin breast cancer survival cohort " * 200),
    "one endless word": Document("20", "ab1" * 5_000),
    "carriage returns": Document("21", "# One\r\n\r\nText of one.\r\n\r\nTwo\r\n===\r\n\r\nText of two.\r\n" * 30),
    "a megabyte of prose": Document("22", PROSE * 9_000, "Long"),
    "a megabyte of dots": Document("23", "." * 1_000_000 + "x"),
    "a megabyte of white space": Document("24", "a" + " \n\t" * 350_000 + "b"),
    "a megabyte of headings": Document("25", "# a\nb c\n" * 130_000),
    "a megabyte of quotes": Document("26", "\"'" * 500_000),
}
BLANK = ["", " ", "\n\t\r\n", "\u00a0\u2003\u3000"]
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=300) | st.text("aB1 .!?\n#|`-:e_'", max_size=300)


class Counted:
    """A corpus of these documents."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = len(documents)
        self._counts = Counter(word for one in documents for word in set(split(f"{one.title} {one.text}")))

    def frequency(self, word: str) -> int:
        return self._counts[word]


SMALL = Counted([document for document in DOCUMENTS.values() if len(document.text) < 100_000])


@pytest.fixture(params=BUILDERS)
def builder(request: pytest.FixtureRequest) -> KeyBuilder:
    found: KeyBuilder = registry.load("keys", request.param)()
    return found


def test_all_five_are_registered() -> None:
    assert {"full", "title", "abstract", "keywords", "chunks"} <= set(BUILDERS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_that_says_something_has_texts_and_none_is_blank(builder: KeyBuilder, name: str) -> None:
    texts = [row.text for row in builder.rows(DOCUMENTS[name], SMALL)]
    assert texts
    assert all(isinstance(text, str) and text.strip() for text in texts)


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if "megabyte" not in name])
def test_a_second_builder_makes_the_same_texts(name: str) -> None:
    for kind in BUILDERS:
        one, other = registry.load("keys", kind)(), registry.load("keys", kind)()
        first = one.rows(DOCUMENTS[name], SMALL)
        one.rows(DOCUMENTS["prose"], SMALL)
        assert list(first) == list(one.rows(DOCUMENTS[name], SMALL)) == list(other.rows(DOCUMENTS[name], SMALL))


@pytest.mark.parametrize("blank", BLANK)
def test_an_empty_document_has_no_text(builder: KeyBuilder, blank: str) -> None:
    assert list(builder.rows(Document("engines", blank, blank, {"abstract": blank}), SMALL)) == []


@pytest.mark.parametrize("kind", BUILDERS)
@given(any_text, any_text, st.text(max_size=30), st.text(max_size=30))
def test_the_id_never_shows_in_a_key(kind: str, text: str, title: str, one: str, other: str) -> None:
    builder = registry.load("keys", kind)()
    assert builder.rows(Document(one, text, title), SMALL) == builder.rows(Document(other, text, title), SMALL)


@pytest.mark.parametrize("kind", BUILDERS)
@given(any_text, any_text)
def test_any_text_at_all_gives_texts_unless_it_is_blank(kind: str, text: str, title: str) -> None:
    texts = [row.text for row in registry.load("keys", kind)().rows(Document("1", text, title), SMALL)]
    assert bool(texts) == bool(text.strip() or title.strip())
    assert all(found.strip() for found in texts)


def test_without_a_corpus_to_speak_of_words_still_have_weight() -> None:
    document = DOCUMENTS["prose"]
    for corpus in (Counted([]), Counted([document])):
        assert "heat" in registry.load("keys", "keywords")().rows(document, corpus)[0].text


@pytest.mark.parametrize(
    ("kind", "options", "rule"),
    [
        ("title", {"tokens": 0}, r"title keys: tokens.* from 1 on, not 0"),
        ("title", {"tokens": "many"}, r"title keys: tokens.* not 'many'"),
        ("abstract", {"tokens": 7}, r"abstract keys: tokens.* from 8 on, not 7"),
        ("abstract", {"tokens": True}, r"abstract keys: tokens.* not True"),
        ("keywords", {"count": 0}, r"keywords keys: count.* from 1 on, not 0"),
        ("keywords", {"count": 2.5}, r"keywords keys: count.* not 2.5"),
        ("chunks", {"tokens": 15}, r"chunks keys: tokens is a whole number from 16 on, not 15"),
        ("chunks", {"tokens": 100, "overlap": 51}, r"chunks keys: overlap .* half of tokens \(50\), not 51"),
        ("chunks", {"overlap": -1}, r"chunks keys: overlap .* not -1"),
    ],
)
def test_an_option_out_of_range_names_the_rule(kind: str, options: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidSettings, match=rule):
        registry.load("keys", kind)(**options)


@pytest.mark.parametrize("kind", BUILDERS)
@given(any_text, any_text)
def test_a_row_says_which_passage_it_stands_for(kind: str, text: str, title: str) -> None:
    for row in registry.load("keys", kind)().rows(Document("1", text, title), SMALL):
        assert (row.start is None) == (row.end is None)
        if row.start is not None and row.end is not None:
            assert 0 <= row.start < row.end <= len(text)
            passage = text[row.start : row.end].split()
            own = row.text.removeprefix(row.where).split() if kind in ("abstract", "chunks") else row.text.split()
            assert not set(own) - {*passage, *title.split()} or kind in ("title", "abstract")  # these may cut a word


def test_passages_lie_where_the_text_has_them() -> None:
    text = "# Owls\n\n" + "Owls hunt mice at night. " * 40 + "\n\n## Food\n\n" + "Mice eat grain and seeds. " * 40
    rows = registry.build("keys", {"name": "chunks", "tokens": 60}).rows(Document("1", text, "Birds"), SMALL)
    assert len(rows) > 4
    for row in rows:
        assert row.text == f"{row.where}\n{text[row.start : row.end]}"
    assert (rows[1].where, rows[-1].where) == ("Birds > Owls", "Birds > Owls > Food")
    paper = "A title\n\nAbstract\nIt is about owls.\n\n1 Introduction\nLong ago."
    (row,) = registry.build("keys", "abstract").rows(Document("1", paper, "A title"), SMALL)
    assert paper[row.start : row.end] == "It is about owls."
    prose = "Birds\n\n" + "Owls hunt mice in dark forests. " * 99
    (row,) = registry.build("keys", "abstract").rows(Document("1", prose, "Birds"), SMALL)
    assert row.start == 7 and row.text == f"Birds {prose[row.start : row.end]}"
    assert [row.start for row in registry.build("keys", "keywords").rows(Document("1", text), SMALL)] == [None]
