"""What the readers make of each kind of file: Markdown, a title, metadata and sections; of broken ones, an error."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docx
import pytest
from ingest.small_pdf import pdf

import evokey
from evokey.errors import InvalidDocument
from evokey.ingest import ChildReader, File, child, documents
from evokey.ingest.kinds import KINDS
from evokey.ingest.language import language_of

LANGUAGES = Path(__file__).parents[2] / "benchmarks" / "data" / "languages.tsv"


@pytest.fixture(scope="module")
def reader() -> Iterator[ChildReader]:
    with ChildReader() as one:
        yield one


def read(reader: ChildReader, folder: Path, name: str, content: str | bytes) -> evokey.Document:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    [document] = documents(File(path, name), reader)
    return document


def word(document: Any) -> bytes:
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


# ---- Markdown


def test_front_matter_is_metadata_and_no_text(reader: ChildReader, tmp_path: Path) -> None:
    front = "---\ntitle: The guide\ndate: 2024-05-01\ntags: [a, b]\nauthor:\n  name: Ada\npath: elsewhere\n---\n"
    found = read(reader, tmp_path, "g.md", front + "\n# Another heading\n\nWords.\n")
    assert (found.text, found.title) == ("# Another heading\n\nWords.\n", "The guide")
    expected = {"date": "2024-05-01", "tags": ["a", "b"], "author": {"name": "Ada"}, "path": "g.md", "kind": "markdown"}
    assert {name: found.metadata[name] for name in expected} == expected


def test_front_matter_in_toml_is_read_too(reader: ChildReader, tmp_path: Path) -> None:
    found = read(reader, tmp_path, "g.md", "+++\nweight = 3\nday = 2024-05-01\n+++\nWords.")
    assert (found.text, found.metadata["weight"], found.metadata["day"]) == ("Words.", 3, "2024-05-01")


@pytest.mark.parametrize(
    "text",
    [
        "---\nno end\n",
        "---\n- a list\n---\nwords",
        "---\na: &x [1]\nb: *x\n---\nwords",
        "---\n{{ template\n---\nwords",
        "---\n" + "[" * 5_000 + "\n---\nwords",
        "***\ntitle: no\n***\n",
    ],
)
def test_what_cannot_be_read_as_front_matter_stays_text(reader: ChildReader, tmp_path: Path, text: str) -> None:
    assert read(reader, tmp_path, "g.md", text).text == text


def test_values_that_metadata_cannot_hold_become_texts(reader: ChildReader, tmp_path: Path) -> None:
    front = f"---\na: .nan\nb: !!binary aGk=\nc: {10**30}\nd: {{1: x}}\n---\nwords"
    found = read(reader, tmp_path, "g.md", front).metadata
    assert (found["a"], found["c"], found["d"]) == ("nan", str(10**30), {"1": "x"})


# ---- HTML

PAGE = """<!doctype html><html lang="en-GB"><head><title>Heating | The House</title>
<meta name="description" content="How it gets warm"><style>p {}</style><script>alert(1)</script></head><body>
<header><a href="/">Home</a></header><nav><ul><li>Contents</li></ul></nav><div class="sidebar">Related pages</div>
<main><h1>Heating<a class="headerlink" href="#h">¶</a></h1><p>The <b>boiler</b> heats
the house.</p><ul><li>red lamp</li><li>green lamp</li></ul><h2>Numbers</h2>
<table><tr><th>who</th><th>number</th></tr><tr><td>Smith | Sons</td><td>12</td></tr></table>
<pre><code>if red:
    press()</code></pre><p># not a heading</p></main><footer>© House</footer></body></html>"""


def test_a_page_is_its_main_part_as_markdown(reader: ChildReader, tmp_path: Path) -> None:
    found = read(reader, tmp_path, "p.html", PAGE)
    assert found.text == (
        "# Heating\n\nThe boiler heats the house.\n\n- red lamp\n- green lamp\n\n## Numbers\n\n"
        "| who | number |\n| --- | --- |\n| Smith \\| Sons | 12 |\n\n"
        "```\nif red:\n    press()\n```\n\n\\# not a heading"
    )
    assert (found.title, found.metadata["language"]) == ("Heating", "en")
    assert found.metadata["description"] == "How it gets warm"


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "utf-16"])
def test_the_encoding_that_a_page_names_is_believed(reader: ChildReader, tmp_path: Path, encoding: str) -> None:
    page = f'<html><head><meta charset="{encoding}"></head><body><p>café crème</p></body></html>'
    assert read(reader, tmp_path, "p.html", page.encode(encoding)).text == "café crème"


# ---- PDF


def test_a_pdf_has_a_section_for_each_page_and_no_running_heads(reader: ChildReader, tmp_path: Path) -> None:
    made = pdf(*(f"The Yearly Report {n}\nOn page {n} stands word{n}.\n{n}" for n in range(1, 7)), title="Report")
    found = read(reader, tmp_path, "r.pdf", made)
    assert [found.text[one.start : one.end] for one in found.sections] == [
        f"On page {n} stands word{n}." for n in range(1, 7)
    ]
    assert [one.where for one in found.sections] == [f"p. {n}" for n in range(1, 7)]
    assert (found.title, found.metadata["pages"], found.metadata["author"]) == ("Report", 6, "Ada")


def test_a_pdf_without_text_says_that_there_is_no_ocr(reader: ChildReader, tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match=r"scan\.pdf cannot be read as pdf: .*no text.*no OCR"):
        read(reader, tmp_path, "scan.pdf", pdf(" "))


# ---- Word


def test_a_word_file_gives_headings_lists_and_tables_in_their_order(reader: ChildReader, tmp_path: Path) -> None:
    made = docx.Document()
    made.core_properties.author = "Ada"
    made.add_heading("The House", 0)
    made.add_paragraph("It is old.")
    made.add_heading("Rooms", 1)
    made.add_paragraph("kitchen", style="List Bullet")
    made.add_paragraph("cellar", style="List Bullet")
    table = made.add_table(rows=2, cols=2)
    for cell, said in zip(
        (cell for row in table.rows for cell in row.cells), ("room", "size", "hall", "9"), strict=True
    ):
        cell.text = said
    found = read(reader, tmp_path, "h.docx", word(made))
    assert found.text == (
        "# The House\n\nIt is old.\n\n# Rooms\n\n- kitchen\n- cellar\n\n| room | size |\n| --- | --- |\n| hall | 9 |"
    )
    assert (found.title, found.metadata["author"]) == ("The House", "Ada")


# ---- reStructuredText

RST = """=========
The Guide
=========

.. toctree::

   other

Install
=======

Use :func:`~pkg.install` or `the site <http://x>`_, see :ref:`more <label>`.

.. code-block:: sh

   pip install it

.. note:: Mind the **gap**.

.. py:function:: run(fast)

   Runs all.

- one
- two

.. include:: /etc/passwd
"""


def test_sphinx_pages_are_read_without_sphinx(reader: ChildReader, tmp_path: Path) -> None:
    found = read(reader, tmp_path, "g.rst", RST)
    assert found.title == "The Guide"
    assert found.text == (
        "# The Guide\n\n## Install\n\nUse pkg.install or the site, see more.\n\n```\npip install it\n```\n\n"
        "Mind the gap.\n\nrun(fast)\n\nRuns all.\n\n- one\n- two"
    )


# ---- notebooks and source code


def test_a_notebook_gives_its_cells_and_what_they_printed(reader: ChildReader, tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Sums\n", "and more"]},
        {"cell_type": "code", "source": "1 + 1", "outputs": [{"data": {"text/plain": ["2"], "image/png": "AAAA"}}]},
        {"cell_type": "code", "source": "print('hi')", "outputs": [{"name": "stdout", "text": "hi\n"}]},
    ]
    made = {"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4}
    found = read(reader, tmp_path, "s.ipynb", json.dumps(made))
    assert found.text == (
        "# Sums\nand more\n\n```python\n1 + 1\n```\n\n```\n2\n```\n\n```python\nprint('hi')\n```\n\n```\nhi\n```"
    )
    assert (found.title, found.metadata["code"]) == ("Sums", "python")


def test_the_sections_of_a_python_file_are_its_definitions(reader: ChildReader, tmp_path: Path) -> None:
    text = '"""Doc."""\nX = 1\n\n@once\ndef f():\n    def g(): ...\n\n'
    text += "class A:\n    def f(self): ...\n    def f(self): ...\n"
    found = read(reader, tmp_path, "m.py", text)
    assert [one.where for one in found.sections] == ["top", "f", "A", "A > f", "A > f (2)"]
    assert "".join(text[one.start : one.end] for one in found.sections) == found.text == text
    assert text[found.sections[1].start :].startswith("@once")


@pytest.mark.parametrize(("name", "lines"), [("m.go", 130), ("broken.py", 61)])
def test_other_source_code_has_sections_of_lines(reader: ChildReader, tmp_path: Path, name: str, lines: int) -> None:
    text = "\n".join(f"line {number} (" for number in range(lines))
    found = read(reader, tmp_path, name, text)
    assert "".join(text[one.start : one.end] for one in found.sections) == text
    assert found.sections[1].where == f"lines 61–{min(lines, 120)}"


# ---- languages


def test_the_language_of_a_text_is_told() -> None:
    pairs = [line.split("\t") for line in LANGUAGES.read_text("utf-8").splitlines()]
    texts: dict[str, str] = {}
    for language, question, answer in pairs:
        texts[language] = f"{texts.get(language, '')} {question} {answer}"
    assert {language: language_of(text) for language, text in texts.items()} == {name: name for name in texts}
    assert language_of("x = 5") is language_of("") is None


# ---- broken and hostile files


@pytest.mark.parametrize("kind", sorted(set(KINDS.values()) - {"text", "markdown", "code", "html", "rst"}))
def test_a_broken_file_is_an_error_that_names_it(reader: ChildReader, tmp_path: Path, kind: str) -> None:
    ending = next(ending for ending, one in KINDS.items() if one == kind)
    with pytest.raises(InvalidDocument, match=rf"bad{ending} cannot be read as {kind}: \w+"):
        read(reader, tmp_path, f"bad{ending}", b"no such thing \x00\xff")


def test_a_reader_that_takes_too_long_or_too_much_ends_with_its_process(tmp_path: Path) -> None:
    """A Word file whose text unpacks to gigabytes."""
    bomb = word(docx.Document())
    with (
        zipfile.ZipFile(io.BytesIO(bomb)) as old,
        zipfile.ZipFile(tmp_path / "b.docx", "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            body = old.read(name)
            if name == "word/document.xml":
                body = body.replace(b"<w:body>", b"<w:body>" + b"<w:p><w:r><w:t>a</w:t></w:r></w:p>" * 3_000_000)
            new.writestr(name, body)
    (tmp_path / "good.py").write_text("x = 1\n")
    with ChildReader(seconds=20, memory=300_000_000) as reader:
        with pytest.raises(InvalidDocument, match=r"b\.docx cannot be read as docx: "):
            reader.read(tmp_path / "b.docx", "docx")
        assert reader.read(tmp_path / "good.py", "code").text == "x = 1\n"


def test_a_process_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("x = 1\n")
    with ChildReader(seconds=0.001) as reader, pytest.raises(InvalidDocument, match=r"at most 0\.001 seconds"):
        reader.read(tmp_path / "good.py", "code")
    assert child.SECONDS >= 10
