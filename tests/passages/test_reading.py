"""What is read of a long document: its passage and what stands around it, within the room there is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evokey.passages.reading import excerpt, heading, widen
from evokey.types import Document, Hit, Passage

TEXT = " ".join(f"Sentence {n} is here." for n in range(50))


def passage(start: int, end: int, where: str = "") -> Passage:
    return Passage(TEXT[start:end], start, end, where)


def test_neighbours_join_on_both_sides_until_the_room_is_full() -> None:
    start = TEXT.index("Sentence 20")
    found = TEXT[slice(*widen(Document("1", TEXT), passage(start, start + 20), 90))]
    assert found == "Sentence 19 is here. Sentence 20 is here. Sentence 21 is here. Sentence 22 is here."
    assert TEXT[slice(*widen(Document("1", TEXT), passage(0, 19), 65))] == TEXT[:59]
    assert widen(Document("1", TEXT), passage(start, start + 20), 10) == (start, start + 20)


@given(st.text(alphabet="ab. \n漢é", max_size=200), st.integers(0, 200), st.integers(0, 60), st.integers(0, 150))
def test_what_is_read_holds_the_passage_and_fits(text: str, start: int, size: int, room: int) -> None:
    start, document = min(start, len(text)), Document("1", text)
    own = Passage(text[start : start + size], start, min(start + size, len(text)), "")
    first, last = widen(document, own, room)
    assert 0 <= first <= own.start <= own.end <= last <= len(text)
    assert last - first <= max(room, len(own.text))


def test_a_short_document_is_read_whole_and_a_long_one_from_its_passage() -> None:
    start = TEXT.index("Sentence 40")
    hit = Hit("1", 1.0, Document("1", TEXT, "Title"), lambda: passage(start, start + 20, "Some > Where"))
    assert excerpt(hit, 10_000) is hit.document
    short = excerpt(hit, 120)
    assert short.title == "Title > Some > Where" and "Sentence 40 is here." in short.text
    assert len(short.title) + len(short.text) < 120 and short.text in TEXT
    assert heading(Document("1", "", ""), passage(0, 5, "part 3")) == ""
