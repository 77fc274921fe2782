"""Keys of the kind auto: short documents whole, long ones by their structure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_key_builders import SMALL

from evokey.errors import InvalidSettings
from evokey.keys.auto import Auto
from evokey.keys.full import Full
from evokey.keys.sentences import size
from evokey.types import Document, KeyText, Section

PROSE = "One sentence of eight words stands here alone. "


def rows(text: str, title: str = "", sections: tuple[Section, ...] = (), tokens: int = 40) -> list[KeyText]:
    return list(Auto(tokens, tokens, 0).rows(Document("1", text, title, {}, sections), SMALL))


def test_a_document_up_to_a_length_is_one_row_the_same_as_full() -> None:
    document = Document("1", PROSE * 100, "Title")
    assert 512 < size(document.text) <= 2_560
    assert Auto().rows(document, SMALL) == Full().rows(document, SMALL)
    assert len(Auto(whole=512).rows(document, SMALL)) > 1


def test_code_blocks_and_tables_are_not_cut() -> None:
    code = "```\n" + "".join(f"call(number_{n})\n" for n in range(12)) + "```"
    table = "".join(f"| cell {n} | other cell {n} |\n" for n in range(12)).strip()
    text = f"{PROSE * 3}\n\n{code}\n\n{PROSE * 3}\n\n{table}\n\n{PROSE * 3}"
    assert size(code) > 40 and size(table) > 40
    found = [text[row.start : row.end] for row in rows(text)]
    assert [one for one in found if code in one] and [one for one in found if table in one]
    assert not [one for one in found if 0 < one.count("call(") < 12 or 0 < one.count("| cell") < 12]


def test_a_code_block_that_is_much_longer_than_a_part_is_cut_between_lines() -> None:
    text = "```\n" + "".join(f"call(number_{n})\n" for n in range(400)) + "```"
    found = [text[row.start : row.end] for row in rows(text)]
    assert len(found) > 5 and max(map(size, found)) <= 40
    assert all(line in text.split("\n") for one in found for line in one.split("\n"))


def test_a_definition_begins_a_row_that_says_its_name() -> None:
    first, second = "def one():\n    return alpha\n", "def two():\n    return beta\n"
    text = f"import gamma\n{first}{second}" + "x = 1\n" * 30
    cut = text.index("def two")
    sections = (Section(13, cut, "Things > one"), Section(cut, cut + len(second), "Things > two"))
    found = rows(text, "things.py", sections)
    assert [row.where for row in found[:4]] == [
        "things.py",
        "things.py > Things > one",
        "things.py > Things > two",
        "things.py",
    ]
    assert "Things > two" in found[2].text and "beta" in found[2].text and "alpha" not in found[2].text


def test_comments_of_source_code_are_no_headings() -> None:
    text = "# not a heading\nx = 1\n" * 20
    assert {row.where for row in rows(text, sections=(Section(0, 10, "first"),))} <= {"first", ""}


def test_a_page_begins_no_row() -> None:
    """A sentence, and so a row, may run over two pages."""
    text = PROSE * 20
    halves = (Section(0, 400, "p. 1"), Section(400, len(text), "p. 2"))
    assert [(row.start, row.end) for row in rows(text, sections=halves)] == [(row.start, row.end) for row in rows(text)]


@given(st.text(alphabet=st.sampled_from("ab. \n#`|é漢\u0301😀"), max_size=400), st.text(max_size=20))
def test_rows_are_slices_that_leave_nothing_out(text: str, title: str) -> None:
    found = list(Auto(16, 16, 4).rows(Document("1", text, title), SMALL))
    assert all(row.start is not None and row.end is not None for row in found) or not text.strip()
    covered = {at for row in found if row.start is not None for at in range(row.start, row.end or 0)}
    assert [sign for at, sign in enumerate(text) if at not in covered and sign.isalnum()] == []


@pytest.mark.parametrize("said", [{"whole": 10}, {"whole": True}, {"tokens": 8}, {"whole": "many"}])
def test_settings_that_make_no_rows_are_refused(said: dict[str, int]) -> None:
    with pytest.raises(InvalidSettings, match="keys: "):
        Auto(**said)
