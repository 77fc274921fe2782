"""What files and folders become: documents with an id, a title and metadata, or an error that says where to look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import evokey
from evokey import ingest
from evokey.errors import InvalidDocument


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def only(path: Path) -> evokey.Document:
    [document] = ingest.read(path)
    return document


def told(document: evokey.Document) -> tuple[str, str, str, dict[str, object]]:
    """A document without the time of its file."""
    metadata = {name: value for name, value in document.metadata.items() if name != "modified"}
    return document.id, document.text, document.title, metadata


def ids(path: Path) -> list[str]:
    return [document.id for document in ingest.read(path)]


@pytest.mark.parametrize("name", ["note.txt", "note.text", "NOTE.TXT"])
def test_a_text_file_is_one_document_named_after_itself(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / name, "# not a heading\nplain words\n")
    stem = name.partition(".")[0]
    assert told(only(file)) == (name, "# not a heading\nplain words\n", stem, {"path": name, "kind": "text"})


@pytest.mark.parametrize("name", ["guide.md", "guide.markdown", "guide.MD"])
@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("# The guide\n\nwords", "The guide"),
        ("intro\n\n# The guide #\n# Another\n", "The guide"),
        ("# The guide\r\nwords\r\n", "The guide"),
        ("## only a section\nwords", "guide"),
        ("#hashtag\nwords", "guide"),
        ("words", "guide"),
        ("", "guide"),
    ],
)
def test_markdown_is_titled_by_its_first_heading_else_by_its_name(
    tmp_path: Path, name: str, content: str, title: str
) -> None:
    document = only(write(tmp_path / name, content))
    assert told(document) == (name, content, title, {"path": name, "kind": "markdown"})


@pytest.mark.parametrize(
    ("content", "title"),
    [("```sh\n# a comment\n```\n\n# The guide\n", "The guide"), ("#\n\nwords of the body\n", "guide")],
)
def test_only_a_heading_titles_a_markdown_file(tmp_path: Path, content: str, title: str) -> None:
    assert only(write(tmp_path / "guide.md", content)).title == title


@pytest.mark.parametrize("name", ["kb.jsonl", "kb.ndjson"])
@pytest.mark.parametrize(
    ("record", "document"),
    [
        ({"id": "a", "text": "words"}, evokey.Document("a", "words")),
        ({"_id": "a", "text": "words", "title": "T"}, evokey.Document("a", "words", "T")),
        ({"id": "a", "_id": "b", "text": "words"}, evokey.Document("a", "words")),
        ({"id": 7, "text": "words", "title": None}, evokey.Document("7", "words")),
        ({"id": "a", "text": ""}, evokey.Document("a", "")),
        (
            {"id": "a", "text": "w", "lang": "en", "year": 2020, "tags": ["x", "y"]},
            evokey.Document("a", "w", "", {"lang": "en", "year": 2020, "tags": ["x", "y"]}),
        ),
        (
            {"id": "a", "text": "w", "lang": "en", "metadata": {"lang": "de", "year": 2020}},
            evokey.Document("a", "w", "", {"lang": "de", "year": 2020}),
        ),
        ({"id": "a", "text": "w", "metadata": None}, evokey.Document("a", "w")),
    ],
)
def test_a_json_line_is_a_document_and_fields_of_the_users_own_become_metadata(
    tmp_path: Path, name: str, record: dict[str, object], document: evokey.Document
) -> None:
    assert only(write(tmp_path / name, json.dumps(record))) == document


def test_blank_lines_are_skipped_and_the_order_is_kept(tmp_path: Path) -> None:
    lines = '{"id": "b", "text": "x"}\n\n  \r\n{"id": "a", "text": "y"}\r\n\n'
    assert ids(write(tmp_path / "kb.jsonl", lines)) == ["b", "a"]


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\x0b"])
def test_only_a_newline_ends_a_json_line(tmp_path: Path, separator: str) -> None:
    record = json.dumps({"id": "a", "text": f"one{separator}two"}, ensure_ascii=False)
    assert only(write(tmp_path / "kb.jsonl", record)).text == f"one{separator}two"


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [("note.txt", "words", "words"), ("note.md", "# T", "# T"), ("kb.jsonl", '{"id": "a", "text": "words"}', "words")],
)
def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path, name: str, content: str, text: str) -> None:
    assert only(write(tmp_path / name, content.encode("utf-8-sig"))).text == text


def test_a_folder_is_read_in_the_order_of_its_names_with_ids_below_its_own(tmp_path: Path) -> None:
    write(tmp_path / "kb" / "z.txt", "last")
    write(tmp_path / "kb" / "a" / "deep" / "n.md", "# Deep\nnote")
    write(tmp_path / "kb" / "m.jsonl", '{"id": "one", "text": "x"}\n{"id": "two", "text": "y"}\n')
    write(tmp_path / "kb" / "picture.png", b"\x89PNG\xff")
    documents = list(ingest.read(tmp_path / "kb"))
    assert [(one.id, one.title) for one in documents] == [
        ("kb/a/deep/n.md", "Deep"),
        ("one", ""),
        ("two", ""),
        ("kb/z.txt", "z"),
    ]
    assert documents[0].metadata["path"] == "kb/a/deep/n.md"


def test_hidden_files_and_folders_are_skipped_but_a_hidden_parent_hides_nothing(tmp_path: Path) -> None:
    folder = tmp_path / ".kb"
    for name in ("seen.txt", ".hidden.txt", ".git/inside.txt", "sub/.also/deep.md"):
        write(folder / name, "words")
    assert ids(folder) == [".kb/seen.txt"]


def test_a_folder_named_like_a_file_is_walked_not_read(tmp_path: Path) -> None:
    write(tmp_path / "kb" / "notes.md" / "inner.txt", "words")
    assert ids(tmp_path / "kb") == ["kb/notes.md/inner.txt"]


def test_a_beir_folder_gives_its_corpus_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "corpus.jsonl", '{"_id": "d1", "title": "T", "text": "words", "metadata": {"url": "u"}}\n')
    write(tmp_path / "queries.jsonl", '{"_id": "q1", "text": "a question"}\n')
    write(tmp_path / "readme.md", "# About")
    assert list(ingest.read(tmp_path)) == [evokey.Document("d1", "words", "T", {"url": "u"})]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{broken", "is not valid JSON"),
        ('{"id": "a", "text": "cut', "is not valid JSON"),
        ("[1, 2]", "is not a JSON object"),
        ('"words"', "is not a JSON object"),
        ('{"id": "a", "body": "w"}', r"needs the fields id \(or _id\) and text; it has id, body"),
        ('{"text": "w", "name": "a"}', r"needs the fields id \(or _id\) and text; it has text, name"),
        ("{}", "it has none"),
        pytest.param('{"id": "a", "text": "w", "metadata": 5}', "metadata"),
        pytest.param('{"id": "a", "text": "w", "metadata": "ab"}', "metadata"),
    ],
)
def test_a_bad_json_line_is_named_with_its_file_and_number(tmp_path: Path, line: str, complaint: str) -> None:
    file = write(tmp_path / "kb.jsonl", f'{{"id": "ok", "text": "w"}}\n\n{line}\n')
    with pytest.raises(InvalidDocument, match=rf"kb\.jsonl, line 3.*{complaint}"):
        list(ingest.read(file))


@pytest.mark.parametrize("record", ['{"id": "a", "text": 5}', '{"id": "a", "text": "w", "title": ["T"]}'])
def test_a_json_line_with_a_field_that_is_no_string_is_named_with_its_file_and_number(
    tmp_path: Path, record: str
) -> None:
    with pytest.raises(InvalidDocument, match=r"kb\.jsonl, line 1"):
        list(ingest.read(write(tmp_path / "kb.jsonl", record)))


def test_an_underscored_id_counts_where_id_is_null(tmp_path: Path) -> None:
    assert ids(write(tmp_path / "kb.jsonl", '{"id": null, "_id": "a", "text": "w"}')) == ["a"]


@pytest.mark.parametrize("name", ["other.txt", "other.md"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "cp1252", "cp1251", "shift_jis"])
def test_other_encodings_than_utf8_are_recognised(tmp_path: Path, name: str, encoding: str) -> None:
    said = {
        "cp1251": "Русский текст о погоде и о том, что будет завтра. " * 5,
        "shift_jis": "今日は天気がよいので、公園へ散歩に行きました。明日は雨が降るでしょう。" * 5,
    }.get(encoding, "Le café est près de la forêt, où l’été dure jusqu’à la fin de l’année. " * 5)
    document = only(write(tmp_path / name, said.encode(encoding)))
    assert document.text == said
    assert ("encoding" in document.metadata) == (encoding != "utf-8-sig")


def test_a_damaged_place_does_not_make_utf8_another_encoding(tmp_path: Path) -> None:
    said = "Der Bäcker und die Bäckerin grüßen über die Straße. " * 3
    document = only(write(tmp_path / "a.md", said.encode() + b"\xff end"))
    assert document.text == f"{said}\ufffd end" and "encoding" not in document.metadata


@pytest.mark.parametrize("name", ["picture.txt", "picture.md", "picture.csv"])
def test_what_is_no_text_is_named(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / name, b"\x89PNG\r\n\x1a\n\x00\x00\x00\xff")
    with pytest.raises(InvalidDocument, match=rf"{name} cannot be read as .*: it is not a text \(byte 0"):
        list(ingest.read(file))


def test_a_json_line_that_is_not_utf8_is_named_with_its_number(tmp_path: Path) -> None:
    file = write(tmp_path / "kb.jsonl", b'{"id": "a", "text": "w"}\n{"id": "b", "text": "caf\xe9"}\n')
    with pytest.raises(InvalidDocument, match=r"kb\.jsonl, line 2.* is not UTF-8"):
        list(ingest.read(file))


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match=r"nowhere\.txt does not exist"):
        list(ingest.read(tmp_path / "nowhere.txt"))


@pytest.mark.parametrize("name", ["paper.xyz", "noending"])
def test_an_unknown_kind_is_named_with_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidDocument, match=rf"{name} is of unknown type; known types are .*\.csv, .*\.md.*\.txt"):
        list(ingest.read(write(tmp_path / name, "words")))


@pytest.mark.parametrize("inside", [[], ["a.xyz"], [".hidden.txt"]])
def test_a_folder_without_anything_to_read_is_an_error(tmp_path: Path, inside: list[str]) -> None:
    folder = tmp_path / "kb"
    folder.mkdir()
    for name in inside:
        write(folder / name, "words")
    with pytest.raises(InvalidDocument, match=r"kb contains no file of a known type \(\.bash, "):
        list(ingest.read(folder))


def test_what_stands_before_a_bad_line_is_still_handed_out(tmp_path: Path) -> None:
    documents = ingest.read(write(tmp_path / "kb.jsonl", '{"id": "a", "text": "w"}\nbroken\n'))
    assert next(documents).id == "a"
    with pytest.raises(InvalidDocument, match="line 2"):
        next(documents)
