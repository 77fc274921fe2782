"""Another encoder: never a silent mix, and nothing learned is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Opener
from typer.testing import CliRunner

import evokey
from evokey.cli.app import app
from evokey.errors import EncoderMismatch, InvalidSettings, UnknownComponent
from evokey.inspect import doctor

LESSONS = {
    "undo what I just published": ["git-revert"],
    "who wrote this line": ["git-blame"],
    "which commit broke it": ["git-bisect"],
    "download a project": ["git-clone"],
}


def taught(opened: Opener, commands: list[evokey.Document], **settings: object) -> evokey.Memory:
    memory = opened(**settings)
    memory.add(commands)
    for query, relevant in LESSONS.items():
        memory.feedback(query, relevant=relevant)
    assert memory.evolve().published
    return memory


def right(memory: evokey.Memory) -> int:
    return sum(memory.search(query)[0].id == relevant[0] for query, relevant in LESSONS.items())


def test_settings_that_name_another_encoder_are_an_error_with_the_way_out(
    opened: Opener, commands: list[evokey.Document], tmp_path: Path
) -> None:
    taught(opened, commands, encoder="bm25").close()
    file = tmp_path / "kb" / "evokey.toml"
    file.write_text(file.read_text() + 'language = "german"\n')
    with pytest.raises(EncoderMismatch, match=r"bm25/english/2.* bm25/german/2.*evokey doctor --reencode"):
        opened()
    documents, report = doctor.reencode(tmp_path / "kb")
    assert documents == len(commands) and report is not None and report.published
    memory = opened()
    assert right(memory) == len(LESSONS)
    assert memory.epochs()[-1].kind == "reencode"


@pytest.mark.parametrize("before", [["bm25"], ["bm25", "wordllama"]])
@pytest.mark.parametrize("after", [["wordllama"], ["wordllama", "bm25"]])
def test_a_memory_changes_its_encoders_and_keeps_what_it_learned(
    opened: Opener, commands: list[evokey.Document], tmp_path: Path, before: list[str], after: list[str]
) -> None:
    memory = taught(opened, commands, encoder=before, keys={"name": "chunks", "tokens": 64})
    memory.close()
    doctor.reencode(tmp_path / "kb", after)
    memory = opened()
    assert memory.stats().retrievers == after and memory.stats().lessons == len(LESSONS)
    assert right(memory) == len(LESSONS)
    twin = opened("twin", encoder=after, keys={"name": "chunks", "tokens": 64})
    twin.add(commands)
    for query, relevant in LESSONS.items():
        twin.feedback(query, relevant=relevant)
    twin.evolve()
    for query in LESSONS:
        assert [(h.id, h.score) for h in memory.search(query)] == [(h.id, h.score) for h in twin.search(query)]
    assert memory.search("show history", epoch=1)[0].id == "git-log"
    assert not any(path.name.endswith(".lost") for path in (tmp_path / "kb").iterdir())


def test_an_encoder_that_cannot_be_made_costs_nothing(
    opened: Opener, commands: list[evokey.Document], tmp_path: Path
) -> None:
    taught(opened, commands, encoder="bm25").close()
    with pytest.raises(UnknownComponent, match="no encoder called 'bert'"):
        doctor.reencode(tmp_path / "kb", ["bert"])
    with pytest.raises(InvalidSettings, match="takes its vectors from the caller"):
        doctor.reencode(tmp_path / "kb", ["given"])
    assert right(opened()) == len(LESSONS)


def test_the_command_line_reencodes(opened: Opener, commands: list[evokey.Document], tmp_path: Path) -> None:
    taught(opened, commands, encoder="bm25").close()
    at = ["--at", str(tmp_path / "kb"), "--json"]
    refused = CliRunner().invoke(app, ["doctor", "--encoder", "wordllama", *at])
    assert refused.exit_code == 2 and "--reencode" in refused.stdout
    done = CliRunner().invoke(app, ["doctor", "--reencode", "--encoder", '{"name": "bm25", "k1": 1.5}', *at])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["rebuilt"] == len(commands) and said["learned"]["published"] and said["sound"]
    assert "k1 = 1.5" in (tmp_path / "kb" / "evokey.toml").read_text()


@pytest.mark.parametrize("kind", ["encoders", "keys"])
def test_what_there_is_can_be_listed(kind: str) -> None:
    shown = CliRunner().invoke(app, [kind])
    assert shown.exit_code == 0 and ("bm25" if kind == "encoders" else "chunks") in shown.stdout
    parts = json.loads(CliRunner().invoke(app, [kind, "--json"]).stdout)
    assert all(part["about"] and part["installed"] == (part["install"] is None) for part in parts)
    assert {"bm25", "wordllama", "openai"} <= {part["name"] for part in parts} or kind == "keys"
