"""A store of another package, installed and found by its entry point, whose keys are in another process: it keeps what
every store promises, and a memory learns and forgets with it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Opener
from test_store_contract import *  # noqa: F403 - the same promises
from test_store_contract import Make

import evokey
from evokey import registry
from evokey.inspect import doctor
from evokey.protocols import Space

HERE = Path(__file__).parent
ENTRIES = "[evokey.components]\nstore.distant = distant_keys:Distant\n"


@pytest.fixture(scope="module", autouse=True)
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A package that is installed as pip would."""
    site = tmp_path_factory.mktemp("site")
    noted = site / "distant_keys-1.0.dist-info"
    noted.mkdir()
    shutil.copy(HERE / "distant_keys.py", site)
    (noted / "METADATA").write_text("Metadata-Version: 2.1\nName: distant-keys\nVersion: 1.0\n", "utf-8")
    (noted / "entry_points.txt").write_text(ENTRIES, "utf-8")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(site))
        yield


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Where the process with the keys listens."""
    command = [sys.executable, str(HERE / "distant_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


@pytest.fixture
def make(space: Space, server: str) -> Make:
    return lambda: registry.build("store", {"name": "distant", "address": server}, space=space)


@pytest.fixture(params=["dense", "sparse"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def found(memory: evokey.Memory, **asked: Any) -> list[list[tuple[str, float]]]:
    """What the queries find."""
    return [[(hit.id, hit.score) for hit in memory.search(query, **asked)] for query in QUERIES]


def nearly(rankings: list[list[tuple[str, float]]]) -> Any:
    """The same documents, with scores that differ by a rounding at most."""
    return [[(id, pytest.approx(score, abs=1e-6)) for id, score in one] for one in rankings]


QUERIES = ("my colleague broke everything yesterday", "record changes", "a clean tree", "who wrote this line")


@pytest.mark.parametrize("keys", ["full", {"name": "chunks", "tokens": 16, "overlap": 2}], ids=["full", "chunks"])
@pytest.mark.parametrize("encoder", ["wordllama", "bm25", ("bm25", "wordllama")])
def test_a_memory_learns_and_forgets_as_with_a_store_of_its_own(
    tmp_path: Path, opened: Opener, commands: list[evokey.Document], server: str, encoder: Any, keys: Any
) -> None:
    settings = {"encoder": list(encoder) if isinstance(encoder, tuple) else encoder, "keys": keys}
    distant = opened("distant", **settings, store={"name": "distant", "address": server})
    own = opened("own", **settings)
    for memory in (distant, own):
        memory.add([replace(one, text=" ".join([one.text] * 3)) for one in commands])
        memory.delete(["git-clone"])
        memory.add([evokey.Document("git-tag", "Give a name to a state of the history.", "git tag", {"tool": "git"})])
    untaught = found(distant)
    assert untaught == nearly(found(own))
    for memory in (distant, own):
        memory.feedback(QUERIES[0], relevant=["git-revert"], actor="ada")
        memory.feedback(QUERIES[3], relevant=["git-blame"], irrelevant=["git-log"], actor="bob")
        assert memory.evolve().published
    assert distant.search(QUERIES[0])[0].id == "git-revert"
    taught = nearly(found(own, k=3))
    assert taught != untaught and found(distant, k=3) == taught
    assert found(distant, where={"tool": "git"}) == nearly(found(own, where={"tool": "git"}))
    told = [memory.explain("git-revert", QUERIES[0]) for memory in (distant, own)]
    assert [view.after for view in told[0].views] == pytest.approx([view.after for view in told[1].views], abs=1e-6)
    distant.close()
    assert doctor.examine(tmp_path / "distant") == []
    assert doctor.rebuild(tmp_path / "distant") == len(commands)
    again = opened("distant")
    assert found(again, k=3) == taught
    again.forget(actor="ada")
    again.forget(actor="bob")
    assert found(again) == nearly(untaught)
    assert again.stats().lessons == 0
