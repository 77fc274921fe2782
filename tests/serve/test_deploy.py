"""The files for containers and systemd: linted, and they name what is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml
from postgres_server import Server

import evokey

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
MILVUS = "http://milvus:19530"


def test_the_dockerfile_passes_its_linter() -> None:
    linter = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([linter, DEPLOY / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_runs_as_a_user_without_rights_and_installs_extras_that_exist() -> None:
    said = (DEPLOY / "Dockerfile").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.search(r"'\.\[([a-z0-9,]+)\]'", said)
    assert named is not None and set(named[1].split(",")) <= set(extras)
    assert said.count("\nFROM ") == 2 and "\nUSER 10001\n" in said and "HEALTHCHECK" in said


def test_compose_files_pin_images_keep_data_and_hold_no_secret() -> None:
    for file in ("compose.yaml", "compose.milvus.yaml"):
        told = yaml.safe_load((DEPLOY / file).read_text())
        for service in told["services"].values():
            assert "build" in service or "depends_on" in service or not service["image"].endswith(("latest", "slim"))
            for value in (service.get("environment") or {}).values():
                assert "PASSWORD" not in value or value.count(":?") == value.count("${")
        mounted = {mount.partition(":")[0] for one in told["services"].values() for mount in one.get("volumes", ())}
        assert mounted == set(told["volumes"])


def read_command(file: str) -> str:
    """What the container of evokey runs, up to the service, and the service."""
    (command,) = yaml.safe_load((DEPLOY / file).read_text())["services"]["evokey"]["command"]
    return str(command)


def test_with_milvus_the_service_is_the_same_and_its_store_is_installed_and_up() -> None:
    told = yaml.safe_load((DEPLOY / "compose.milvus.yaml").read_text())["services"]
    named = re.search(r"'\.\[([a-z0-9,]+)\]'", (DEPLOY / "Dockerfile").read_text())
    assert named is not None and {"milvus", "ann", "postgres", "serve"} <= set(named[1].split(","))
    served = [read_command(file).partition("exec ")[2] for file in ("compose.yaml", "compose.milvus.yaml")]
    assert served[0] == served[1] != ""
    assert told["evokey"]["depends_on"] == {"milvus": {"condition": "service_healthy"}} and "milvus" in told


def test_with_milvus_the_new_memory_keeps_its_keys_there_and_is_opened_again(server: Server, tmp_path: Path) -> None:
    keys, name = tmp_path / "keys.db", server.fresh_name()
    before, _, served = read_command("compose.milvus.yaml").partition("exec ")
    assert before.count(MILVUS) == 2 and served.startswith("evokey serve ")
    words = before.replace(MILVUS, str(keys)).replace("/data", str(tmp_path / "data")) + "evokey stats"
    for state in ("first", "after the volume was lost"):
        told = {"EVOKEY_AT": server.url, "EVOKEY_NAME": name, "XDG_STATE_HOME": str(tmp_path / state)}
        told["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(["/bin/sh", "-c", words], env={**os.environ, **told}, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "data" / "service").is_dir()
    with evokey.open(server.url, name=name, allow=[str(keys)]) as memory:
        stores = {one.name: one.store for one in memory.settings.retrievers}
        assert stores["wordllama"] == {"name": "milvus", "uri": str(keys), "collection": "evokey"}
        memory.add([{"id": "a", "text": "undo a commit"}, {"id": "b", "text": "bake bread"}])
        assert [hit.id for hit in memory.search("revert it", k=1)] == ["a"] and keys.exists()


def test_the_systemd_unit_is_one() -> None:
    said = (DEPLOY / "evokey.service").read_text()
    assert "User=evokey" in said and "KillSignal=SIGTERM" in said
    if tool := shutil.which("systemd-analyze"):
        done = subprocess.run([tool, "verify", DEPLOY / "evokey.service"], capture_output=True, text=True)
        faults = [line for line in done.stderr.splitlines() if "evokey" in line and "not executable" not in line]
        assert faults == []
