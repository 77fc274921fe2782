"""Shared by all tests: small corpora, and the real data sets where they lie beside the project."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import evokey
from evokey import Choice
from evokey.demo import run
from evokey.evolution import lens_training
from evokey.evolution.guarded import Guarded
from evokey.evolution.policy import Proposal, TrainingData

if TYPE_CHECKING:
    from postgres_server import Server

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as for a job in the background: interrupts are tested here
    signal.signal(signal.SIGINT, signal.default_int_handler)
DATA = Path(os.environ.get("EVOKEY_DATA") or Path(__file__).parents[2] / "shared" / "data")
Opener = Callable[..., evokey.Memory]
Attach = Callable[..., evokey.Layer]
Always = Callable[[Choice], None]
LENS = Choice(0.5, 1.0, 0.0, 0.2, lens_parameter=0.3, last_anchor=150)
"""Moved keys, rows and a lens."""

COMMANDS = {
    "git-revert": ("git revert", "Record new changes that reverse the effect of earlier ones."),
    "git-reset": ("git reset", "Move the current branch to a named state."),
    "git-log": ("git log", "Show the history, newest first."),
    "git-stash": ("git stash", "Put local modifications away and return to a clean working tree."),
    "git-blame": ("git blame", "Show who last changed each line of a file."),
    "git-bisect": ("git bisect", "Use binary search to find the change that introduced a bug."),
    "git-clone": ("git clone", "Copy a repository into a new directory."),
    "git-merge": ("git merge", "Join two or more development histories together."),
}


@pytest.fixture(autouse=True, scope="session")
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes what the user of this machine allowed."""
    with pytest.MonkeyPatch.context() as patched:
        for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            patched.setenv(variable, str(tmp_path_factory.mktemp(variable.lower())))
        yield


@pytest.fixture
def commands() -> list[evokey.Document]:
    return [evokey.Document(id, text, title, {"tool": "git"}) for id, (title, text) in COMMANDS.items()]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    """Opens memories under the test's own folder and closes them at its end."""
    with ExitStack() as stack:
        yield lambda name="kb", **settings: stack.enter_context(evokey.open(tmp_path / name, **settings))


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server for all tests of a process: each takes names of its own in it."""
    from postgres_server import Server  # here: the core of the tests runs without PostgreSQL (benchmarks/package.py)

    with Server.start() as server:
        yield server


@pytest.fixture
def shared(server: Server) -> Iterator[Opener]:
    """Opens memories in the database, in a schema of the test's own, and closes them at its end."""
    with ExitStack() as stack:
        yield server.opener(stack)


@pytest.fixture
def attach(tmp_path: Path) -> Iterator[Attach]:
    """Opens layers beside a search function under the test's own folder and closes them at its end."""
    with ExitStack() as stack:

        def open_layer(search: Any, name: str = "kb", **settings: Any) -> evokey.Layer:
            return stack.enter_context(evokey.beside(search, tmp_path / name, **settings))

        yield open_layer


@pytest.fixture(scope="session")
def pages() -> list[evokey.Document]:
    """The demo's documents."""
    return run.documents()


@pytest.fixture(scope="session")
def questions() -> list[run.Question]:
    """All wordings of the demo's intents."""
    return run.questions()


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> Always:
    """Makes the guarded policy choose this, for every retriever: it rarely takes a lens in a small world."""
    propose = Guarded.propose

    def propose_choice(self: Guarded, data: TrainingData) -> Proposal:
        made = propose(self, replace(data, lessons=data.lessons.only(data.lessons.queries[:1])))  # one lesson: quick
        weights = dict(zip(data.fusion.names, data.fusion.untaught, strict=True))
        return replace(made, choice={one.name: choice for one in data.retrievers}, weights=weights, changes=True)

    def choose(one: Choice) -> None:
        nonlocal choice
        choice = one
        monkeypatch.setattr(lens_training, "MIN_QUERIES", 2)
        monkeypatch.setattr(Guarded, "propose", propose_choice)

    choice = Choice()
    return choose


@pytest.fixture(scope="session")
def dataset() -> Callable[[str], Dataset]:
    def load(name: str) -> Dataset:
        if not (DATA / name / "corpus.jsonl").exists():
            pytest.skip(f"SKIPPED FOR WANT OF DATA: {DATA / name} is not there")
        return Dataset(DATA / name)

    return load


class Dataset:
    """A folder in BEIR layout, with the judged queries of its test split."""

    def __init__(self, folder: Path) -> None:
        corpus = _records(folder / "corpus.jsonl")
        self.documents = [evokey.Document(row["_id"], row["text"], row.get("title") or "") for row in corpus]
        known = {document.id for document in self.documents}
        queries = {row["_id"]: row["text"] for row in _records(folder / "queries.jsonl")}
        self.judged: dict[str, dict[str, Any]] = {}
        for row in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]:
            query, document, grade = row.split("\t")
            if int(grade) > 0 and document in known and query in queries:
                self.judged.setdefault(queries[query], {})[document] = int(grade)


def _records(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def ranking(memory: evokey.Memory, query: str, k: int = 10, **options: Any) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in memory.search(query, k=k, **options)]
