"""The files for containers and systemd: linted, and they name what is there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


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


def test_the_systemd_unit_is_one() -> None:
    said = (DEPLOY / "evokey.service").read_text()
    assert "User=evokey" in said and "KillSignal=SIGTERM" in said
    if tool := shutil.which("systemd-analyze"):
        done = subprocess.run([tool, "verify", DEPLOY / "evokey.service"], capture_output=True, text=True)
        faults = [line for line in done.stderr.splitlines() if "evokey" in line and "not executable" not in line]
        assert faults == []
