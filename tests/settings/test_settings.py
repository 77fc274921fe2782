"""What a memory is made of: said once, kept in its evokey.toml, and never silently changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Opener

import evokey
from evokey import settings
from evokey.errors import InvalidSettings, NewerFormat, NotAMemory, UnknownComponent
from evokey.inspect import doctor
from evokey.settings import RetrieverSettings, Settings

AUTO, FULL, FLAT, SPARSE = {"name": "auto"}, {"name": "full"}, {"name": "flat"}, {"name": "sparse"}
BM25 = RetrieverSettings({"name": "bm25"}, FULL, SPARSE)
WORDLLAMA = RetrieverSettings({"name": "wordllama"}, FULL, FLAT)
TUNED = RetrieverSettings({"name": "bm25", "k1": 1.5, "b": 0.75}, FULL, SPARSE)
BM25_TABLE = '[[retriever]]\nencoder = "bm25"\n'


def file(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")
    return path


def everything(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
    }


# ---- values


def test_what_is_not_said_takes_the_default() -> None:
    retrievers = tuple(replace(one, keys=AUTO) for one in (BM25, WORDLLAMA))
    assert settings.settings_of() == Settings(retrievers, {"name": "guarded"}, {"name": "query"})


@pytest.mark.parametrize(
    ("said", "retrievers"),
    [
        ({"encoder": "bm25"}, (replace(BM25, keys=AUTO),)),
        ({"encoder": ["wordllama", "bm25"], "keys": "full"}, (WORDLLAMA, BM25)),
        ({"encoder": "wordllama", "store": "flat", "keys": "full"}, (WORDLLAMA,)),
        ({"encoder": "given"}, (RetrieverSettings({"name": "given"}, AUTO, FLAT),)),
    ],
)
def test_every_encoder_named_becomes_a_retriever_with_the_store_that_fits(
    said: dict[str, Any], retrievers: tuple[RetrieverSettings, ...]
) -> None:
    assert settings.settings_of(**said).retrievers == retrievers


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        ({"encoder": "bert"}, UnknownComponent, "no encoder called 'bert'; choose one of: .*bm25, .*wordllama"),
        ({"encoder": ["bm25", "bert"]}, UnknownComponent, "no encoder called 'bert'"),
        ({"policy": "greedy"}, UnknownComponent, "no policy called 'greedy'; choose one of: guarded"),
        ({"keys": "halves"}, UnknownComponent, "no keys called 'halves'; choose one of: abstract, auto, chunks, full"),
        (
            {"store": "hnsw"},
            UnknownComponent,
            "no store called 'hnsw'; choose one of: ann, flat, late, milvus, milvus-sparse, pgvector, sparse",
        ),
        ({"expander": "hide"}, UnknownComponent, "no expander called 'hide'; choose one of: bge-rewriter"),
        ({"encoder": "bm25", "store": "flat"}, InvalidSettings, "'bm25' needs store 'sparse', not 'flat'"),
        ({"encoder": "wordllama", "store": "sparse"}, InvalidSettings, "'wordllama' needs store 'flat', not 'sparse'"),
        ({"encoder": ["bm25", "bm25"]}, InvalidSettings, "each encoder may be named once, not bm25, bm25"),
    ],
)
def test_settings_that_make_no_memory_name_the_culprit_and_make_nothing(
    tmp_path: Path, said: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        evokey.open(tmp_path / "kb", **said)
    assert not (tmp_path / "kb").exists()


def test_a_memory_of_no_encoder_is_refused() -> None:
    with pytest.raises(InvalidSettings, match="at least one encoder"):
        settings.check(Settings(()))


# ---- TOML


@pytest.mark.parametrize(
    "made",
    [
        settings.settings_of(),
        settings.settings_of(encoder=["given", "bm25"]),
        Settings((TUNED,)),
        Settings((RetrieverSettings({"name": "bm25", "text": 'quo"te \\ and\nß', "on": True, "n": 3}, FULL, SPARSE),)),
        Settings(
            (RetrieverSettings({"name": "bm25", "keys": "🦉", "n": [1, 2]}, {"name": "chunks", "tokens": 9}, SPARSE),)
        ),
    ],
)
def test_settings_written_and_read_are_the_same(tmp_path: Path, made: Settings) -> None:
    assert settings.read(file(tmp_path / "s.toml", settings.to_toml(made))) == made


def test_an_empty_file_is_the_default_and_a_table_may_say_less_or_more(tmp_path: Path) -> None:
    """A file that names no keys means those it always meant."""
    assert settings.read(file(tmp_path / "a.toml", "")) == settings.settings_of(keys="full")
    assert settings.read(file(tmp_path / "b.toml", BM25_TABLE)) == Settings((BM25,))
    assert settings.read(file(tmp_path / "c.toml", BM25_TABLE + "k1 = 1.5\nb = 0.75\n")) == Settings((TUNED,))


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("policy = [", InvalidSettings, "is not valid TOML"),
        ("format = 3", NewerFormat, r"has format 3, this evokey reads up to 2; upgrade with: pip install -U evokey"),
        ('polcy = "guarded"\nexpandr = "x"', InvalidSettings, "has unknown settings: expandr, polcy"),
        ('policy = "greedy"', UnknownComponent, "no policy called 'greedy'"),
        ('[[retriever]]\nkeys = "full"', InvalidSettings, r"has a \[\[retriever\]\] without an encoder"),
        ('[[retriever]]\nencoder = "bert"', UnknownComponent, "no encoder called 'bert'"),
        (BM25_TABLE + 'store = "flat"', InvalidSettings, "needs store 'sparse'"),
        (BM25_TABLE * 2, InvalidSettings, "named once, not bm25, bm25"),
        ('[retriever]\nencoder = "bm25"', InvalidSettings, "retriever"),
        ('format = "1"', InvalidSettings, "format"),
        ('policy = ["guarded"]', InvalidSettings, "policy"),
        ("[[retriever]]\nencoder = ['bm25']", InvalidSettings, "encoder"),
    ],
)
def test_a_bad_settings_file_is_named_with_what_is_wrong(
    tmp_path: Path, content: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        settings.read(file(tmp_path / "s.toml", content))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("k1 = -1.0", r"bm25 needs k1 > 0 and 0 ≤ b ≤ 1, not k1=-1\.0"),
        ("k2 = 1.0", "k2"),
        ('k1 = "high"', "k1"),
    ],
)
def test_a_bad_option_of_an_encoder_is_named(tmp_path: Path, option: str, message: str) -> None:
    with pytest.raises(InvalidSettings, match=message):
        evokey.open(file(tmp_path / "kb.toml", f"{BM25_TABLE}{option}\n"))


# ---- a memory keeps its own


def test_a_new_memory_keeps_its_settings_beside_its_data(tmp_path: Path, opened: Opener) -> None:
    opened(encoder="bm25")
    assert (tmp_path / "kb" / "evokey.toml").read_text() == (
        'format = 2\npolicy = "guarded"\nexpander = "query"\n\n'
        '[[retriever]]\nencoder = "bm25"\nkeys = "auto"\nstore = "sparse"\n'
    )


@pytest.mark.parametrize(
    "again",
    [
        {},
        {"encoder": "bm25"},
        {"encoder": ["bm25"]},
        {"keys": "auto", "store": "sparse", "policy": "guarded", "expander": "query"},
    ],
)
def test_reopening_with_nothing_or_the_same_is_fine(opened: Opener, again: dict[str, Any]) -> None:
    with opened(encoder="bm25") as first:
        first.add([{"id": "a", "text": "apples"}])
    memory = opened(**again)
    assert (len(memory), memory.stats().retrievers) == (1, ["bm25"])


@pytest.mark.parametrize(
    ("again", "said"),
    [
        ({"encoder": "wordllama"}, "encoder='wordllama'"),
        ({"encoder": ["bm25", "wordllama"]}, r"encoder=\['bm25', 'wordllama'\]"),
        ({"store": "flat"}, "store='flat'"),
        ({"policy": "greedy"}, "policy='greedy'"),
        ({"keys": "halves"}, "keys='halves'"),
        ({"expander": "hyde"}, "expander='hyde'"),
    ],
)
def test_reopening_with_other_settings_is_an_error_that_tells_both_and_changes_nothing(
    tmp_path: Path, opened: Opener, again: dict[str, Any], said: str
) -> None:
    opened(encoder="bm25").close()
    before = everything(tmp_path)
    with pytest.raises(
        InvalidSettings, match=rf"made with bm25/auto, policy guarded, expander query, not with {said}. Open it without"
    ):
        evokey.open(tmp_path / "kb", **again)
    assert everything(tmp_path) == before


def test_the_options_of_an_encoder_are_kept_and_matter(tmp_path: Path, opened: Opener) -> None:
    file(tmp_path / "tuned.toml", f'at = "tuned"\n{BM25_TABLE}k1 = 5.0\n')
    scores = []
    for name in ("plain", "tuned.toml", "tuned"):
        with opened(name, **({"encoder": "bm25"} if name == "plain" else {})) as memory:
            memory.add([{"id": "a", "text": "apples apples"}, {"id": "b", "text": "pears"}])
            scores.append(memory.search("apples")[0].score)
    assert scores[0] != scores[1] == scores[2]


# ---- a TOML file as path


@pytest.mark.parametrize(("at", "folder"), [("", "notes"), ('at = "data/kb"\n', "data/kb")])
def test_a_toml_file_describes_a_memory_in_the_folder_it_names_or_that_has_its_name(
    tmp_path: Path, opened: Opener, at: str, folder: str
) -> None:
    file(tmp_path / "notes.toml", at + BM25_TABLE)
    with opened("notes.toml") as memory:
        memory.add([{"id": "a", "text": "apples"}])
    assert settings.read(tmp_path / folder / "evokey.toml") == Settings((BM25,))
    assert len(opened("notes.toml")) == len(opened(folder)) == len(opened(f"{folder}/evokey.toml")) == 1


def test_a_toml_file_and_arguments_at_once_are_refused(tmp_path: Path) -> None:
    described = file(tmp_path / "notes.toml", BM25_TABLE)
    with pytest.raises(
        InvalidSettings, match=r"notes\.toml already says how the memory is made; leave out encoder, keys"
    ):
        evokey.open(described, encoder="bm25", keys="full")
    assert not (tmp_path / "notes").exists()


def test_a_toml_file_that_changed_since_is_an_error_that_tells_both(tmp_path: Path, opened: Opener) -> None:
    described = file(tmp_path / "notes.toml", BM25_TABLE)
    opened("notes.toml").close()
    file(described, '[[retriever]]\nencoder = "wordllama"\n')
    with pytest.raises(InvalidSettings, match=r"made with bm25/full.*notes\.toml now says wordllama/full"):
        evokey.open(described)


def test_a_toml_file_that_is_not_there_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(NotAMemory, match=r"notes\.toml does not exist; give a directory, or write that file first"):
        evokey.open(tmp_path / "notes.toml")


def test_a_directory_may_be_called_something_toml(tmp_path: Path) -> None:
    (tmp_path / "kb.toml").mkdir()
    evokey.open(tmp_path / "kb.toml", encoder="bm25").close()
    assert (tmp_path / "kb.toml" / "evokey.toml").exists()


@pytest.mark.parametrize(("content", "message"), [("policy = [", "is not valid TOML"), ("at = 5", "at ")])
def test_a_toml_file_that_cannot_be_read_is_an_error_of_the_settings(
    tmp_path: Path, content: str, message: str
) -> None:
    with pytest.raises(InvalidSettings, match=message):
        evokey.open(file(tmp_path / "notes.toml", content))


# ---- paths that hold something else


def test_a_directory_with_foreign_files_is_refused_and_left_untouched(tmp_path: Path) -> None:
    for name in ("thesis.tex", "photos/a.jpg", "b.txt", "z.txt"):
        file(tmp_path / "home" / name, "mine")
    before = everything(tmp_path)
    with pytest.raises(
        NotAMemory, match=r"home is no memory: it has no evokey\.toml, and holds b\.txt, photos, thesis\.tex\. Give an"
    ):
        evokey.open(tmp_path / "home")
    assert everything(tmp_path) == before


def test_an_empty_directory_or_a_making_that_was_interrupted_is_taken(tmp_path: Path, opened: Opener) -> None:
    (tmp_path / "empty").mkdir()
    assert len(opened("empty", encoder="bm25")) == 0
    opened("cut", encoder="bm25").close()
    (tmp_path / "cut" / "evokey.toml").unlink()
    assert opened("cut", encoder="bm25").stats().retrievers == ["bm25"]


def test_a_file_is_no_memory(tmp_path: Path) -> None:
    with pytest.raises(NotAMemory, match=r"notes\.txt is a file; a memory is a directory"):
        evokey.open(file(tmp_path / "notes.txt", "mine"))


def test_a_place_below_a_file_is_no_memory(tmp_path: Path) -> None:
    with pytest.raises(NotAMemory, match=r"notes\.txt"):
        evokey.open(file(tmp_path / "notes.txt", "mine") / "kb")


def test_a_memory_of_a_newer_format_is_refused_and_left_untouched(tmp_path: Path, opened: Opener) -> None:
    opened(encoder="bm25").close()
    stored = tmp_path / "kb" / "evokey.toml"
    stored.write_text(stored.read_text().replace("format = 2", "format = 99") + 'shape = "round"\n')
    before = everything(tmp_path)
    with pytest.raises(NewerFormat, match="has format 99, this evokey reads up to 2; upgrade with: pip install -U"):
        evokey.open(tmp_path / "kb")
    assert everything(tmp_path) == before


def test_a_policy_is_written_with_its_options_and_read_as_before(tmp_path: Path, opened: Opener) -> None:
    opened("a", policy={"name": "guarded", "lens": "dense"}).close()
    path = tmp_path / "a" / "evokey.toml"
    text = path.read_text("utf-8")
    assert 'policy = {name = "guarded", lens = "dense"}' in text
    for spelled in (
        text,
        text.replace('{name = "guarded", lens = "dense"}', '"guarded"') + '[policy_options]\nlens = "dense"\n',
    ):
        path.write_text(spelled, "utf-8")
        assert settings.read(path).policy == {"name": "guarded", "lens": "dense"}
    path.write_text(text.replace('"dense"', '"dens"'), "utf-8")
    with pytest.raises(InvalidSettings, match="none, dense, all"):
        opened("a")


def test_settings_that_cannot_be_read_are_an_error_with_a_way_out(tmp_path: Path) -> None:
    with evokey.open(tmp_path / "kb", encoder="bm25"):
        pass
    (tmp_path / "kb" / "evokey.toml").unlink()
    (tmp_path / "kb" / "evokey.toml").mkdir()
    for look in (evokey.open, doctor.examine):
        with pytest.raises(InvalidSettings, match=r"evokey\.toml cannot be read .* restore it from a backup"):
            look(tmp_path / "kb")
