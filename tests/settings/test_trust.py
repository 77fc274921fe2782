"""A memory that somebody hands you runs no code, calls no host and reads no file that you have not allowed."""

from __future__ import annotations

import inspect
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from wire import Wire

import evokey
from evokey import registry
from evokey.cli.app import app
from evokey.errors import InvalidSettings, NotAllowed, NotAMemory
from evokey.http.client import Service
from evokey.inspect import doctor
from evokey.settings import Settings, needs, overwrite, settings_of, trust

OWL = evokey.Document("owl", "owls hunt at night")
OPENAI = "https://api.openai.com"


@pytest.fixture(autouse=True)
def fresh_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has allowed nothing yet; their folders."""
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "user" / variable))
    return tmp_path / "user"


@pytest.fixture
def wire() -> Iterator[Wire]:
    with Wire() as server:
        yield server


def handed(folder: Path, text: str) -> Path:
    """A directory with a memory in it, whose settings somebody else wrote."""
    with evokey.open(folder, encoder="bm25") as memory:
        memory.add([OWL])
    (folder / "evokey.toml").write_text(f'format = 2\n{text}\n[[retriever]]\nencoder = "bm25"\n', "utf-8")
    return folder


STRANGE = {
    "a host": ('llm = {name = "openai", model = "m", base_url = "https://evil.example/v1"}', "https://evil.example"),
    "this machine": ('llm = {name = "openai", model = "m", base_url = "http://127.0.0.1:1/v1"}', "http://127.0.0.1:1"),
    "a key for a host": (
        'llm = {name = "openai", model = "m", base_url = "https://evil.example", key_env = "AWS_SECRET"}',
        "AWS_SECRET@https://evil.example",
    ),
    "the provider's key elsewhere": (
        'llm = {name = "openai", model = "m", base_url = "https://evil.example", key_env = "OPENAI_API_KEY"}',
        "OPENAI_API_KEY@https://evil.example",
    ),
    "another key for the provider": (
        'llm = {name = "anthropic", model = "m", key_env = "AWS_SECRET"}', "AWS_SECRET@https://api.anthropic.com"
    ),
    "the provider without encryption": (
        'llm = {name = "openai", model = "m", base_url = "http://api.openai.com/v1"}', "http://api.openai.com"
    ),
    "a host inside a part": (
        'verifier = {name = "judge", llm = {name = "cached", at = "KB/a.sqlite", llm = {name = "openai", model = "m", '
        'base_url = "https://evil.example"}}}',
        "https://evil.example",
    ),
    "a host in a list": (
        'expander = {name = "several", methods = [{name = "recorded", file = "/etc/passwd"}]}', "/etc/passwd"
    ),
    "a reranker": ('reranker = {name = "endpoint", base_url = "https://evil.example"}', "https://evil.example"),
    "code": ('verifier = {name = "custom", function = "os:system"}', "os:system"),
    "a file to write": (
        'llm = {name = "cached", at = "/tmp/a.sqlite", llm = {name = "openai", model = "m"}}', "/tmp/a.sqlite"
    ),
    "a file above": ('verifier = {name = "human", at = "KB/../other.sqlite"}', "other.sqlite"),
    "a prompt": ('expander = {name = "custom-rewriter", prompt = "/etc/passwd"}', "/etc/passwd"),
    "a model of the hub": ('reranker = {name = "cross-encoder", model = "evil/model"}', "evil/model"),
    "a revision of a model": (
        'reranker = {name = "cross-encoder", model = "gte-base", revision = "refs/pr/1"}', "gte-base@refs/pr/1"
    ),
    "a model in the directory": ('reranker = {name = "cross-encoder", model = "KB/keys"}', "keys"),
}  # fmt: skip


@pytest.mark.parametrize("reach", STRANGE)
def test_what_a_directory_reaches_outside_needs_the_users_word(
    reach: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET", "secret")
    text, allowance = STRANGE[reach]
    folder = handed(tmp_path / "kb", text.replace("KB", str(tmp_path / "kb")))
    with pytest.raises(NotAllowed, match="reaches outside its own directory") as caught:
        evokey.open(folder)
    said = str(caught.value)
    assert allowance in said and "evokey allow" in said and "allow=[" in said and "config.toml" in said
    (wanted,) = {one.allowance for one in needs(settings_read(folder), folder)}
    assert wanted.endswith(allowance)
    for command in (doctor.rebuild, doctor.reencode):
        with pytest.raises(NotAllowed):
            command(folder)


def settings_read(folder: Path) -> Settings:
    from evokey.settings import read

    return read(folder / "evokey.toml")


@pytest.mark.parametrize(
    "text",
    [
        "",
        'llm = {name = "openai", model = "m"}',
        'llm = {name = "openai", model = "m", base_url = "https://api.openai.com:443/v1", key_env = "OPENAI_API_KEY"}',
        'reranker = {name = "cross-encoder", model = "gte-base"}',
        'llm = {name = "cached", at = "KB/a.sqlite", llm = {name = "anthropic", model = "m"}}',
        'verifier = {name = "human", at = "KB/human.sqlite"}',
    ],
)
def test_what_stays_inside_or_with_the_provider_needs_nothing(text: str, tmp_path: Path) -> None:
    folder = handed(tmp_path / "kb", text.replace("KB", str(tmp_path / "kb")))
    assert needs(settings_read(folder), folder) == []


def test_three_ways_to_allow_and_each_allows_that_alone(tmp_path: Path, fresh_user: Path) -> None:
    text, _ = STRANGE["a key for a host"]
    folder, wanted = handed(tmp_path / "kb", text), "AWS_SECRET@https://evil.example"
    for wrong in ("https://evil.example", "AWS_SECRET@https://evil.example:444", "AWS_SECRET", OPENAI):
        with pytest.raises(NotAllowed):
            evokey.open(folder, allow=[wrong])
    evokey.open(folder, allow=[wanted]).close()
    with pytest.raises(NotAllowed):
        evokey.open(folder)  # an argument holds for the call alone
    trust.record(folder, [wanted])
    evokey.open(folder).close()
    trust.withdraw(folder)
    config = trust.configuration()
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"allow = {json.dumps([wanted])}", "utf-8")
    evokey.open(folder).close()
    config.write_text("allow = 7", "utf-8")
    with pytest.raises(InvalidSettings, match="allow is a list of texts"):
        evokey.open(folder)


def test_ones_own_memory_opens_again_without_a_further_word(tmp_path: Path, wire: Wire) -> None:
    mine = {"name": "openai", "model": "wordllama", "base_url": wire.url}
    with evokey.open(tmp_path / "kb", encoder=mine) as memory:
        memory.add([OWL])
    with evokey.open(tmp_path / "kb") as memory:
        assert [hit.id for hit in memory.search("owls")] == ["owl"]
    assert "127.0.0.1" not in "".join(path.name for path in (tmp_path / "kb").iterdir())
    (tmp_path / "kb").rename(tmp_path / "moved")
    with pytest.raises(NotAllowed):
        evokey.open(tmp_path / "moved")
    evokey.open(tmp_path / "moved", encoder=mine).close()  # said again in this process: the user's own word


def test_a_directory_that_changes_after_it_was_allowed_gains_nothing(tmp_path: Path, wire: Wire) -> None:
    mine = {"name": "openai", "model": "wordllama", "base_url": wire.url}
    evokey.open(tmp_path / "kb", encoder="bm25", llm=mine).close()
    settings = tmp_path / "kb" / "evokey.toml"
    settings.write_text(settings.read_text("utf-8").replace(wire.url, "https://evil.example"), "utf-8")
    with pytest.raises(NotAllowed, match="evil"):
        evokey.open(tmp_path / "kb")


def test_no_key_leaves_for_a_host_that_is_not_allowed(tmp_path: Path, wire: Wire, monkeypatch: Any) -> None:
    monkeypatch.setenv("AWS_SECRET", "secret")
    options = f'name = "endpoint", base_url = "{wire.host}/v2", key_env = "AWS_SECRET"'
    folder = handed(tmp_path / "kb", f"reranker = {{{options}}}")
    with pytest.raises(NotAllowed):
        evokey.open(folder)
    assert wire.requests == []
    with evokey.open(folder, allow=[f"AWS_SECRET@{wire.host}"]) as memory:
        memory.search("owls")
    assert wire.requests[0].headers["authorization"] == "Bearer secret"


def test_a_file_that_describes_a_memory_is_no_word_of_the_user_either(tmp_path: Path) -> None:
    text, _ = STRANGE["a host"]
    (tmp_path / "described.toml").write_text(text, "utf-8")
    with pytest.raises(NotAllowed):
        evokey.open(tmp_path / "described.toml")
    assert not (tmp_path / "described").exists()
    evokey.open(tmp_path / "described.toml", allow=["https://evil.example"]).close()
    evokey.open(tmp_path / "described").close()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "elsewhere.toml").write_text('at = "../elsewhere"', "utf-8")
    with pytest.raises(NotAllowed, match="elsewhere"):
        evokey.open(tmp_path / "sub" / "elsewhere.toml")


def test_a_link_out_of_the_directory_needs_the_users_word(tmp_path: Path) -> None:
    folder = handed(tmp_path / "kb", "")
    private = tmp_path / "private"
    (private / "photos").mkdir(parents=True)
    (folder / "keys" / "bm25").rename(tmp_path / "old")
    (folder / "keys" / "bm25").symlink_to(private)
    with pytest.raises(NotAllowed, match="is a link to"):
        evokey.open(folder)
    for command in (doctor.rebuild, doctor.reencode):
        with pytest.raises(NotAllowed):
            command(folder)
    assert (private / "photos").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no name here")
def test_a_pipe_in_the_directory_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    folder = handed(tmp_path / "kb", "")
    os.mkfifo(folder / "human.sqlite")
    with pytest.raises(InvalidSettings, match="neither a file nor a folder"):
        evokey.open(folder)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER evil AFTER INSERT ON lessons BEGIN DELETE FROM documents; END",
        "CREATE VIEW evil AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
        "CREATE VIRTUAL TABLE evil USING fts5(x)",
    ],
)
def test_a_ledger_that_acts_by_itself_is_refused(statement: str, tmp_path: Path) -> None:
    folder = handed(tmp_path / "kb", "")
    with sqlite3.connect(folder / "ledger.sqlite") as ledger:
        ledger.execute(statement)
    ledger.close()
    with pytest.raises(NotAMemory, match="evil"):
        evokey.open(folder)


@pytest.mark.parametrize("name", ["../../other/1", "/etc", "..", "a/b"])
def test_a_list_of_keys_leads_to_no_other_folder(name: str, tmp_path: Path) -> None:
    folder = handed(tmp_path / "kb", "")
    file = folder / "keys" / "bm25" / "segments.json"
    manifest = json.loads(file.read_text())
    manifest.pop("checksum", None)
    file.write_text(json.dumps({**manifest, "segments": [name]}), "utf-8")
    assert any("segments that nobody writes" in one.what for one in doctor.examine(folder))
    with evokey.open(folder) as memory:
        assert [hit.id for hit in memory.search("owls")] == ["owl"]


def test_a_command_that_an_error_offers_can_be_copied_safely(tmp_path: Path) -> None:
    folder = handed(tmp_path / "kb", """verifier = {name = "custom", function = "a:b'; touch hacked; '"}""")
    with pytest.raises(NotAllowed) as caught:
        evokey.open(folder)
    command = str(caught.value).partition("run: evokey allow")[2].partition("; or open")[0]
    subprocess.run(["sh", "-c", f"true {command}"], cwd=tmp_path, check=True)
    assert not (tmp_path / "hacked").exists()
    (folder / "evokey.toml").write_text('verifier = {name = "custom", function = "a:b\\u001b[2J"}', "utf-8")
    with pytest.raises(InvalidSettings, match="characters that are not allowed in a name"):
        evokey.open(folder)


def test_the_command_line_lists_and_allows(tmp_path: Path) -> None:
    folder = handed(tmp_path / "kb", STRANGE["code"][0])
    run = CliRunner()
    failed = run.invoke(app, ["search", "owls", "--at", str(folder)])
    assert failed.exit_code == 2 and "evokey allow os:system" in " ".join(failed.output.split())
    listed = run.invoke(app, ["allow", "--at", str(folder), "--json"])
    assert json.loads(listed.stdout) == [{"setting": "verifier.function", "uses": "os:system", "allowed": False}]
    assert run.invoke(app, ["allow", "os:system", "--at", str(folder)]).exit_code == 0
    assert run.invoke(app, ["search", "owls", "--at", str(folder)]).exit_code == 0
    assert run.invoke(app, ["allow", "--withdraw", "--at", str(folder)]).exit_code == 0
    assert run.invoke(app, ["search", "owls", "--at", str(folder)]).exit_code == 2


def test_a_user_without_a_folder_of_their_own_can_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    evokey.open(tmp_path / "kb", encoder="bm25", verifier={"name": "custom", "function": "os:getcwd"}).close()
    assert "open it with allow=[…] from now on" in caplog.text
    evokey.open(tmp_path / "kb", allow=["os:getcwd"]).close()


def test_new_encoders_by_doctor_are_the_users_own_word(tmp_path: Path, wire: Wire) -> None:
    with evokey.open(tmp_path / "kb", encoder="bm25") as memory:
        memory.add([OWL])
    doctor.reencode(tmp_path / "kb", [{"name": "openai", "model": "wordllama", "base_url": wire.url}])
    with evokey.open(tmp_path / "kb") as memory:
        assert [hit.id for hit in memory.search("owls")] == ["owl"]


SAFE = frozenset(
    "tokens count overlap k1 b language analyser dimensions batch_size max_tokens price service device query_prefix "
    "document_prefix max_length threads precision format longest kinds weights timeout retries total "
    "requests_per_minute parallel prompt_price answer_price extra_body leave_out context seed mode calls money now "
    "sampled units most split search rounds documents passage temperature task rewrites backend prefix senses synonyms "
    "related terms weight form metric k threshold letters titles wrong margin attribute rule gain control passages "
    "passage_tokens closed_book lens negatives x capacity batch patience retrieved accumulate online rest largest "
    "normalise gate provider failure sleep chance identity whole local".split()
)
"""Options that reach nothing outside: numbers, words, what is sent to the provider."""
REACHING = trust.FILES | registry.INSIDE.keys() | {"base_url", "key_env", "function", "model", "revision"}


def test_every_option_of_every_component_is_known_to_be_safe_or_to_reach() -> None:
    unknown = set()
    for kind in registry.COMPONENTS.keys() - {"store", "tool", "ledger"}:
        for name in registry.COMPONENTS[kind]:
            try:
                taken = set(inspect.signature(registry.load(kind, name)).parameters)
            except evokey.EvokeyError:
                continue
            unknown |= {(kind, name, option) for option in taken - SAFE - REACHING}
    unknown |= {("service", "", option) for option in set(inspect.signature(Service).parameters) - SAFE - REACHING}
    assert unknown == set(), "say in trust.py what these reach, or here that they reach nothing"


def test_every_component_that_loads_a_model_is_known() -> None:
    remote = {"openai", "cohere", "voyage", "anthropic", "endpoint", "recorded"}
    for kind in ("encoder", "reranker", "llm", "expander"):
        for name, found in registry.COMPONENTS[kind].items():
            try:
                taken = inspect.signature(registry.load(kind, name)).parameters
            except evokey.EvokeyError:
                continue
            if "model" in taken and name not in remote:
                assert name in trust.LOCAL[kind] or "model" in found.options


def test_a_background_learner_may_reach_what_its_memory_may(tmp_path: Path) -> None:
    folder = handed(tmp_path / "kb", STRANGE["code"][0])
    code = (
        "import sys; from pathlib import Path; from evokey import memory\n"
        "with memory.open(Path(sys.argv[1]), allow=['os:system']) as one:\n"
        "    learner = one.watch(); print(learner._thinker.ask('propose').report.published); learner.stop()"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False", done.stderr


def test_what_replaced_settings_reach_is_noted_outside_the_directory(tmp_path: Path) -> None:
    folder = handed(tmp_path / "kb", "")
    overwrite(folder, settings_of(encoder="bm25", verifier={"name": "custom", "function": "os:getcwd"}))
    assert trust.allowances(folder) == ["os:getcwd"]
