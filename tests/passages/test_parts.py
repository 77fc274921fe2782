"""Passages of a document: slices of its text, each with a name of its own that finds it again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evokey.errors import UnknownPassage
from evokey.passages import parts
from evokey.passages.outline import Outline, slug
from evokey.types import Document, Section

LONG = "Some words about nothing at all, said again and again. " * 25
GUIDE = Document(
    "guide.md",
    f"# Guide\n\nHello.\n\n## Install\n\n{LONG}\n\n### Linux\n\nUse apt.\n\n### Windows\n\n{LONG}\n\n"
    f"## Advanced\n\n### Install\n\n{LONG}\n\n## Use\n\nRun it.\n",
    "Guide",
)
PAGES = Document("report.pdf", LONG * 3, "", {}, (Section(0, 1400, "p. 1"), Section(1402, 4000, "p. 2")))


def test_a_passage_is_named_by_its_headings_and_each_name_is_there_once() -> None:
    found = parts.windows(GUIDE)
    names = [one.where for one in found]
    assert names[:2] == ["part 1", "Install"] and "Install (2)" in names and "Install > Windows" in names
    assert "Advanced > Install" in names and len(set(names)) == len(names)
    anchors = {one.where: one.anchor for one in found}
    assert anchors["Install"] == "install" and anchors["Advanced > Install"] == "advanced-install"
    assert len(set(anchors.values())) == len(anchors)


def test_a_passage_is_cited_by_document_and_heading_or_page() -> None:
    assert parts.windows(GUIDE)[1].name("guide.md") == "guide.md#install"
    assert parts.windows(PAGES)[0].name("report.pdf") == "report.pdf p. 1"
    (whole,) = parts.windows(Document("note", "Short."))
    assert (whole.text, whole.where, whole.name("note")) == ("Short.", "", "note")


@pytest.mark.parametrize(
    ("name", "begins", "holds"),
    [
        ("install", "## Install", "### Windows"),
        ("Install", "## Install", "### Windows"),
        ("linux", "### Linux", "Use apt."),
        ("Install > Linux", "### Linux", "Use apt."),
        ("install-linux", "### Linux", "Use apt."),
        ("advanced-install", "### Install", "said again"),
        ("install-2", "Some words", "said again"),
        ("Install (2)", "Some words", "said again"),
    ],
)
def test_a_name_means_a_heading_with_all_below_it_or_one_passage(name: str, begins: str, holds: str) -> None:
    found = parts.resolve(GUIDE, name, parts.windows(GUIDE))
    assert found.text.startswith(begins) and holds in found.text
    assert found.text == GUIDE.text[found.start : found.end]
    assert "Run it" not in found.text


def test_a_page_is_found_by_its_number() -> None:
    found = parts.resolve(PAGES, "p. 2", parts.windows(PAGES))
    assert (found.start, found.end, found.name("r")) == (1402, 4000, "r p. 2")
    assert parts.resolve(PAGES, "p-2", []) == found


def test_an_unknown_name_is_told_the_nearest_ones_and_the_way_out() -> None:
    with pytest.raises(UnknownPassage, match=r"has no passage 'instal'; .* 'guide.md#install'.* alone: 'guide.md'"):
        parts.resolve(GUIDE, "instal", parts.windows(GUIDE))
    with pytest.raises(UnknownPassage, match="without headings or pages; name the document alone: 'note'"):
        parts.resolve(Document("note", "Short."), "install", parts.windows(Document("note", "Short.")))


@given(st.text(alphabet=st.sampled_from("ab.# \n-=>()2é漢\u0301😀\ud7ff"), max_size=300), st.integers(1, 4))
def test_every_passage_is_its_slice_and_has_a_name_of_its_own(text: str, times: int) -> None:
    document = Document("1", "\n\n".join([text] * times), "a")
    places = [(at, min(at + 7, len(document.text))) for at in range(0, len(document.text), 5)] or [(0, 0)]
    for found in (parts.windows(document), parts.passages(document, places)):
        assert all(one.text == document.text[one.start : one.end] for one in found)
        assert len({one.where for one in found}) == len({one.anchor for one in found}) == len(found)
        assert all(parts.resolve(document, one.where, found).text in document.text for one in found if one.where)


def test_the_part_under_a_heading_ends_at_the_next_of_its_level() -> None:
    entries = {one.path: GUIDE.text[one.start : one.end] for one in Outline.of(GUIDE).entries}
    assert entries["Install"].rstrip().endswith("again.") and "## Advanced" not in entries["Install"]
    assert slug("How to install?") == "how-to-install" and slug("¿Qué?") == "qué"
