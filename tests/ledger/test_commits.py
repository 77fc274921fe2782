"""The count of commits tells every process at once that something is new, and nothing hangs on it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from multiprocessing.pool import ThreadPool
from pathlib import Path

import pytest
from conftest import Opener

from evokey.ledger.sqlite import database as sqlite
from evokey.ledger.sqlite.commits import WIDTH, Commits
from evokey.ledger.sqlite.database import COMMITS, SQLite
from evokey.ledger.sqlite.file import FILE

WRITE = "INSERT INTO traffic VALUES (?, ?)"
WRITING = """
import sys
from pathlib import Path
from evokey.ledger.sqlite.database import SQLite
with SQLite(Path(sys.argv[1])) as database, database.write():
    database.run("INSERT INTO traffic VALUES ('from afar', 1)")
"""
CUT_SHORT = """
import os, sys
from pathlib import Path
from evokey.ledger.sqlite.commits import Commits
from evokey.ledger.sqlite.database import SQLite
after = sys.argv[2] == "after"
database = SQLite(Path(sys.argv[1]))
setattr(Commits, "end" if after else "begin", lambda commits: os._exit(9))
with database.write():
    database.run("INSERT INTO traffic VALUES ('cut short', 1)")
"""


def written(database: SQLite, query: str) -> None:
    database.run(WRITE, (query, 1))


def queries(database: SQLite) -> list[str]:
    return [row[0] for row in database.all("SELECT query FROM traffic ORDER BY query")]


def count(folder: Path) -> int:
    return int.from_bytes((folder / COMMITS).read_bytes()[:WIDTH], sys.byteorder)


class Refusing:
    """What SQLite is asked with, when it must not be asked."""

    def execute(self, sql: str) -> None:
        raise AssertionError(f"SQLite was asked: {sql}")


def unreadable(*_: object, **__: object) -> None:
    raise OSError("no file can be read here")


def test_what_is_not_new_is_known_without_asking_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "TRUSTED", 60.0)
    with SQLite(tmp_path) as writer, SQLite(tmp_path) as reader:
        written(writer, "first")
        version = reader.version
        looking = reader._cursor
        monkeypatch.setattr(reader, "_cursor", Refusing())
        assert [reader.version for _ in range(3)] == [version] * 3
        written(writer, "second")
        with pytest.raises(AssertionError, match="data_version"):
            _ = reader.version
        monkeypatch.setattr(reader, "_cursor", looking)
        assert reader.version != version and queries(reader) == ["first", "second"]


def test_a_commit_of_another_process_is_seen_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "TRUSTED", 60.0)
    with SQLite(tmp_path) as reader:
        before = reader.version
        subprocess.run([sys.executable, "-c", WRITING, str(tmp_path)], check=True)
        assert reader.version != before


@pytest.mark.parametrize(("moment", "there"), [("before", []), ("after", ["cut short"])])
def test_a_commit_that_was_cut_short_hides_nothing(
    tmp_path: Path, moment: str, there: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "TRUSTED", 60.0)
    with SQLite(tmp_path) as reader:
        before = reader.version
        done = subprocess.run([sys.executable, "-c", CUT_SHORT, str(tmp_path), moment], check=False)
        assert done.returncode == 9
        assert (reader.version != before, queries(reader)) == (bool(there), there)
        assert count(tmp_path) % 2 == (moment == "after")
        written(reader, "the next one")
        assert count(tmp_path) % 2 == 0
        assert queries(reader) == [*there, "the next one"]


def test_a_commit_that_nobody_counted_is_seen_before_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(sqlite, "monotonic", lambda: now)
    with SQLite(tmp_path) as reader:
        version = reader.version
        with sqlite3.connect(tmp_path / FILE) as stranger:
            stranger.execute(WRITE, ("by hand", 1))
        stranger.close()
        assert reader.version == version
        now += sqlite.TRUSTED
        assert reader.version != version


def test_where_the_file_cannot_be_had_sqlite_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "TRUSTED", 60.0)
    (tmp_path / COMMITS).mkdir()
    with SQLite(tmp_path) as writer, SQLite(tmp_path) as reader:
        for query in ("first", "second"):
            before = reader.version
            written(writer, query)
            assert reader.version != before


def test_a_memory_knows_its_own_commits_though_nobody_can_count_them(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "TRUSTED", 60.0)
    memory = opened(encoder="bm25")
    memory.add([{"id": "a", "text": "ant bee"}])
    assert memory.search("ant")
    monkeypatch.setattr(Commits, "_advance", lambda commits, past: None)
    memory.add([{"id": "b", "text": "zebra"}])
    assert [hit.id for hit in memory.search("zebra")] == ["b"]
    memory.delete(["b"])
    assert memory.search("zebra") == []


def test_a_file_in_the_place_of_another_is_taken_up_and_a_lost_one_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(sqlite, "monotonic", lambda: now)
    with SQLite(tmp_path) as writer, SQLite(tmp_path) as reader:
        own, before = writer.version, reader.version
        (tmp_path / COMMITS).unlink()
        written(writer, "first")
        assert writer.version != own
        now += sqlite.TRUSTED
        assert reader.version != before and (tmp_path / COMMITS).exists()
        for query in ("second", "third"):
            before = reader.version
            written(writer, query)
            assert reader.version != before


def test_the_file_belongs_to_whom_the_ledger_belongs(tmp_path: Path) -> None:
    SQLite(tmp_path).close()
    (tmp_path / COMMITS).unlink()
    (tmp_path / FILE).chmod(0o666)
    if os.geteuid() == 0:
        os.chown(tmp_path / FILE, 65534, 65534)
    SQLite(tmp_path).close()
    ledger, count_file = (tmp_path / FILE).stat(), (tmp_path / COMMITS).stat()
    assert (count_file.st_uid, count_file.st_gid, count_file.st_mode) == (ledger.st_uid, ledger.st_gid, ledger.st_mode)


def test_a_commit_in_the_midst_of_looking_is_seen_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "TRUSTED", 60.0)
    with SQLite(tmp_path) as writer, SQLite(tmp_path) as reader:
        cursor, late = reader._cursor, iter(["late"])

        class Slow:
            def execute(self, sql: str) -> sqlite3.Cursor:
                found = cursor.execute(sql)
                for query in late:
                    written(writer, query)
                return found

        monkeypatch.setattr(reader, "_cursor", Slow())
        first = reader.version
        assert reader.version != first


def test_a_writer_that_cannot_read_the_file_counts_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "TRUSTED", 60.0)
    with SQLite(tmp_path) as reader:
        with monkeypatch.context() as patch:
            patch.setattr("evokey.ledger.sqlite.commits._File", unreadable)
            writer = SQLite(tmp_path)
        with writer:
            for query in ("first", "second"):
                before = reader.version
                written(writer, query)
                assert reader.version != before


def test_many_who_make_the_file_at_once_undo_no_count(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()

    def following(path: Path) -> Commits:
        commits = Commits(path)
        commits.follow(tmp_path / FILE)
        return commits

    with ThreadPool(8) as threads:
        for turn in range(20):
            path = tmp_path / str(turn)
            first = threads.map(following, [path] * 8)[0]
            first.begin()
            assert first.settled is None
            first.end()
            assert {commits.settled for commits in threads.map(following, [path] * 8)} == {2}
            assert path.stat().st_size % WIDTH == 0


@pytest.mark.parametrize("size", [0, 3])
def test_a_count_that_is_cut_while_it_is_read_hides_nothing(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "TRUSTED", 60.0)
    with SQLite(tmp_path) as writer, SQLite(tmp_path) as reader:
        for query in ("first", "second", "third"):
            before = reader.version
            os.truncate(tmp_path / COMMITS, size)
            assert reader.version == before
            written(writer, query)
            assert reader.version != before
        assert queries(reader) == ["first", "second", "third"]
