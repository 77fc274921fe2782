"""Components of other packages: an encoder and a policy that are installed, found by their entry points, do all that
evokey's own do. Components named by their place need the user's word, and objects must be passed again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import Opener
from parts import parts as parts  # the fixture
from test_encoder_contract import (  # noqa: F401 - the same promises, for an encoder of another package
    test_a_text_has_the_same_vector_alone_in_company_and_again,
    test_no_texts_give_nothing,
    test_odd_texts_are_taken,
    test_texts_kept_encoded_are_as_they_were,
    test_the_form_of_what_comes_back,
)
from typer.testing import CliRunner

import evokey
from evokey import registry
from evokey.cli.app import app
from evokey.errors import InvalidSettings, NotAllowed, UnknownComponent
from evokey.evolution.guarded import Guarded
from evokey.registry import COMPONENTS, OFFERS
from evokey.types import Completion, Message

MODULE = '''
import hashlib
import re

import numpy as np

from evokey.evolution.guarded import Guarded
from evokey.evolution.policy import Proposal
from evokey.types import Choice


class Hashed:
    """Words, hashed into a few dimensions."""

    kind, cost = "dense", "nothing"

    def __init__(self, dimensions=64, salt=""):
        self.dimensions, self.salt, self.identity = dimensions, salt, f"hashed/{dimensions}/{salt}"

    def documents(self, texts):
        return np.stack([self._vector(text) for text in texts]) if texts else np.zeros((0, self.dimensions), np.float32)

    queries = documents

    def _vector(self, text):
        vector = np.zeros(self.dimensions)
        for word in re.findall("[a-z0-9]+", text.lower()):
            seed = int.from_bytes(hashlib.sha256((self.salt + word).encode()).digest()[:8], "big")
            vector += np.random.default_rng(seed).standard_normal(self.dimensions)
        return (vector / (np.linalg.norm(vector) or 1)).astype(np.float32)


class Bold:
    """Keeps every taught question as a key, and asks nobody whether that helps."""

    def __init__(self, penalty=0.0):
        self._penalty, self._guarded = penalty, Guarded()

    def __getattr__(self, name):
        return getattr(self._guarded, name)

    def propose(self, data):
        weights = dict(zip(data.fusion.names, data.fusion.untaught, strict=True))
        choice = {one.name: Choice(penalty=self._penalty) for one in data.retrievers}
        return Proposal(choice, weights, None, None, True)

    def overlay(self, retriever, log, choice):
        return self._guarded.overlay(retriever, log, choice)
'''
ENTRIES = "[evokey.components]\nencoder.hashed = hashed_words:Hashed\npolicy.bold = hashed_words:Bold\n"


@pytest.fixture(scope="module", autouse=True)
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A package that is installed as pip would."""
    site = tmp_path_factory.mktemp("site")
    noted = site / "hashed_words-1.0.dist-info"
    noted.mkdir()
    (site / "hashed_words.py").write_text(MODULE, "utf-8")
    (noted / "METADATA").write_text("Metadata-Version: 2.1\nName: hashed-words\nVersion: 1.0\n", "utf-8")
    (noted / "entry_points.txt").write_text(ENTRIES, "utf-8")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(site))
        yield site


@pytest.fixture
def name() -> str:
    """Of the encoder, for the contract."""
    return "hashed"


def test_an_installed_encoder_and_policy_learn_and_forget(
    tmp_path: Path, opened: Opener, commands: list[evokey.Document]
) -> None:
    memory = opened(encoder={"name": "hashed", "dimensions": 32}, policy={"name": "bold", "penalty": 0.05})
    memory.add(commands)
    query = "my colleague broke everything yesterday"
    untaught = [(hit.id, hit.score) for hit in memory.search(query)]
    memory.feedback(query, relevant=["git-revert"], actor="ada")
    assert memory.evolve().published
    assert memory.search(query)[0].id == "git-revert"
    memory.close()
    again = opened()
    assert again.search(query)[0].id == "git-revert"
    assert (again.stats().retrievers, again.stats().policy) == (["hashed"], "bold")
    again.forget(actor="ada")
    assert [(hit.id, hit.score) for hit in again.search(query)] == untaught
    assert (tmp_path / "kb" / "keys" / "hashed").is_dir()


def test_installed_components_are_listed_with_their_package() -> None:
    told = json.loads(CliRunner().invoke(app, ["encoders", "--json"]).stdout)
    assert told[-1] == {
        "name": "hashed", "about": "Words, hashed into a few dimensions.", "installed": True, "install": None,
        "package": "hashed-words",
    }  # fmt: skip
    assert all(one["package"] == "evokey" for one in told[:-1])
    assert "(from hashed-words)" in " ".join(CliRunner().invoke(app, ["parts", "policy"]).stdout.split())
    assert "choose one of: encoder" in CliRunner().invoke(app, ["parts", "bread"]).output


def test_options_are_checked_against_the_class_and_unknown_names_list_what_is_installed() -> None:
    with pytest.raises(
        InvalidSettings, match="encoder 'hashed' has no option colour; its options are: dimensions, salt"
    ):
        registry.build("encoder", {"name": "hashed", "colour": "red"})
    with pytest.raises(UnknownComponent, match=r"no encoder called 'bert'; choose one of: .*hashed.*'module:Class'"):
        registry.build("encoder", "bert")
    with pytest.raises(UnknownComponent, match="cannot be imported from hashed_words:Nothing: AttributeError"):
        registry.build("encoder", "hashed_words:Nothing")


@pytest.mark.parametrize("kind", OFFERS)
def test_a_class_of_any_kind_can_be_named_by_its_place(kind: str) -> None:
    assert registry.load(kind, "hashed_words:Hashed").__name__ == "Hashed"


# ---- by its place


FOREIGN = {
    "encoder": '[[retriever]]\nencoder = "hashed_words:Hashed"\n',
    "an encoder inside": '[[retriever]]\nencoder = {name = "cached", encoder = "hashed_words:Hashed", at = "KB"}\n',
    "keys": '[[retriever]]\nencoder = "bm25"\nkeys = "hashed_words:Hashed"\n',
    "store": '[[retriever]]\nencoder = "bm25"\nstore = {name = "hashed_words:Hashed"}\n',
    **{
        kind: f'{kind} = "hashed_words:Hashed"\n[[retriever]]\nencoder = "bm25"\n'
        for kind in ("policy", "fusion", "reranker", "llm", "generator", "verifier", "expander")
    },
}


@pytest.mark.parametrize("what", FOREIGN)
def test_code_that_a_directory_names_is_not_imported_until_it_is_allowed(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("imported")

    folder = tmp_path / "kb"
    evokey.open(folder, encoder="bm25").close()
    (folder / "evokey.toml").write_text("format = 2\n" + FOREIGN[what].replace("KB", str(folder)), "utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(registry, "_load_foreign", fail)
        with pytest.raises(NotAllowed, match=r"names code to run: hashed_words:Hashed.*evokey allow"):
            evokey.open(folder)
        for command in (["allow"], ["doctor"]):
            CliRunner().invoke(app, [*command, "--at", str(folder)], catch_exceptions=False)


def test_an_allowed_class_is_used_and_the_user_s_own_settings_need_no_further_word(
    tmp_path: Path, opened: Opener, commands: list[evokey.Document]
) -> None:
    with opened("mine", encoder="hashed_words:Hashed") as memory:
        memory.add(commands)
    assert len(opened("mine")) == len(commands)
    opened("theirs", encoder="bm25").close()
    (tmp_path / "theirs" / "evokey.toml").write_text("format = 2\n" + FOREIGN["encoder"], "utf-8")
    assert opened("theirs", allow=["hashed_words:Hashed"]).stats().retrievers == ["hashed_words-Hashed"]


def test_every_text_among_the_options_of_another_package_needs_the_user_s_word(tmp_path: Path) -> None:
    evokey.open(tmp_path / "kb", encoder="bm25").close()
    told = 'format = 2\n[[retriever]]\nencoder = {name = "hashed", salt = "https://evil.example"}\n'
    (tmp_path / "kb" / "evokey.toml").write_text(told, "utf-8")
    with pytest.raises(NotAllowed, match=r"encoder\.salt is given to .*hashed: https://evil\.example"):
        evokey.open(tmp_path / "kb")
    evokey.open(tmp_path / "kb", allow=["https://evil.example"]).close()


# ---- objects


class Upside:
    """Ranks by length, the longest last."""

    identity = "upside"

    def scores(self, query: str, documents: Any) -> Any:
        import numpy as np

        return np.array([-float(len(one.text)) for one in documents])


class Mute:
    identity = "mute"

    def complete(self, messages: list[Message], **_: Any) -> Completion:
        return Completion("", self.identity)

    def stream(self, messages: list[Message], **_: Any) -> Iterator[str]:
        yield ""


def hashed(**options: Any) -> Any:
    return registry.build("encoder", {"name": "hashed", **options})


def given() -> Mapping[str, Any]:
    return {"encoder": [hashed(), "bm25"], "policy": Guarded(), "reranker": Upside(), "llm": Mute()}


def test_objects_take_part_and_a_memory_is_opened_again_with_them(
    tmp_path: Path, opened: Opener, commands: list[evokey.Document]
) -> None:
    with opened(**given()) as memory:
        memory.add(commands)
        before = memory.search("record changes", k=4)
        assert [len(hit.document.text) for hit in before] == sorted(len(hit.document.text) for hit in before)
        assert memory.stats().retrievers == ["hashed_words.Hashed", "bm25"]
        with pytest.raises(InvalidSettings, match=r"encoder, llm, policy, reranker.*'module:Class'"):
            memory.watch()
    text = (tmp_path / "kb" / "evokey.toml").read_text("utf-8")
    assert 'encoder = "object"\n' in text and 'class = "hashed_words.Hashed"\nidentity = "hashed/64/"' in text
    assert f'reranker = {{name = "object", class = "{__name__}.Upside"}}' in text
    assert opened(**given()).search("record changes", k=4) == before


def test_a_memory_made_with_objects_says_which_are_missing(tmp_path: Path) -> None:
    evokey.open(tmp_path / "kb", **given()).close()
    for missing in ([], ["reranker"], ["llm", "policy"]):
        passed = {kind: one for kind, one in given().items() if missing and kind not in missing}
        with pytest.raises(InvalidSettings, match="made with objects, which its settings cannot build") as refused:
            evokey.open(tmp_path / "kb", **passed)
        assert all(f"{kind}=…" in str(refused.value) for kind in missing or given())
        assert not any(f"{kind}=…" in str(refused.value) for kind in passed)
    with pytest.raises(InvalidSettings, match=r"was made with hashed_words.Hashed/auto"):
        evokey.open(tmp_path / "kb", **{**given(), "encoder": [hashed(salt="other"), "bm25"]})
    shown = CliRunner().invoke(app, ["search", "record", "--at", str(tmp_path / "kb")])
    assert shown.exit_code != 0 and "encoder=…" in " ".join(shown.output.split())


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"encoder": 5}, "encoder is a name, a mapping with name and options, or an object that has kind, cost"),
        ({"reranker": Upside}, r"Upside is a class; pass an object of it: Upside\(…\)"),
        ({"llm": Upside()}, "this Upside has no complete, stream"),
        ({"policy": Mute()}, "this Mute has no propose, overlay"),
    ],
)
def test_what_cannot_be_a_component_is_refused(tmp_path: Path, said: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSettings, match=message):
        evokey.open(tmp_path / "kb", **said)
    assert not (tmp_path / "kb").exists()


def test_every_kind_says_what_its_components_must_have() -> None:
    assert set(OFFERS) == set(COMPONENTS) - {"tool", "ledger"}
