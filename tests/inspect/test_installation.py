"""evokey doctor: the installation is examined, also without a memory, and what is wrong is named with its repair."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import wordllama

from evokey.inspect.installation import check_installation, check_writing

Doctor = Callable[..., subprocess.CompletedProcess[str]]
SOURCE = Path(__file__).parents[2] / "src"
METADATA = """Metadata-Version: 2.1
Name: evokey
Version: 9.0
Requires-Python: >=3.11
Requires-Dist: numpy>=2
Requires-Dist: no-such-package>=1.5
Requires-Dist: scipy>=99
Provides-Extra: complete
Requires-Dist: filelock>=3; extra == "complete"
Provides-Extra: lacking
Requires-Dist: no-such-part>=1; extra == "lacking"
Provides-Extra: old
Requires-Dist: rich>=99; extra == "old"
"""


@pytest.fixture
def doctor(tmp_path: Path) -> Doctor:
    """The command in an empty folder; what stands in `first` is imported before what is installed."""

    def run(*words: str, first: Path | None = None) -> subprocess.CompletedProcess[str]:
        (tmp_path / "empty").mkdir(exist_ok=True)
        path = os.pathsep.join(str(one) for one in (first, SOURCE) if one)
        command = [sys.executable, "-m", "evokey", "doctor", *words]
        environment = {key: value for key, value in os.environ.items() if key != "EVOKEY_AT"} | {"PYTHONPATH": path}
        return subprocess.run(command, cwd=tmp_path / "empty", env=environment, capture_output=True, text=True)

    return run


def parts(found: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    return {one["part"]: one for one in json.loads(found.stdout)["installation"]}


def test_without_a_memory_the_installation_is_examined_and_nothing_is_left_behind(
    doctor: Doctor, tmp_path: Path
) -> None:
    found = doctor("--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["sound"] is True
    wanted = {"evokey", "Python", "numpy", "scipy", "word vectors", "SQLite", "clock", "disk", "a memory"}
    assert wanted <= parts(found).keys()
    assert list((tmp_path / "empty").iterdir()) == []
    assert "the installation is sound" in doctor("--installation").stdout


def test_a_memory_that_is_named_and_not_there_is_an_error(doctor: Doctor) -> None:
    found = doctor("--at", "nowhere")
    assert found.returncode == 1 and "there is no memory at nowhere" in found.stderr


def test_packages_outside_of_their_bounds_are_named_and_absent_extras_are_no_fault(
    doctor: Doctor, tmp_path: Path
) -> None:
    described = tmp_path / "first" / "evokey-9.0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text(METADATA, "utf-8")
    found = doctor("--json", first=described.parent)
    assert found.returncode == 1
    states = {part: one["state"] for part, one in parts(found).items()}
    assert (states["numpy"], states["no-such-package"], states["scipy"]) == ("sound", "broken", "broken")
    extras = [states[f"evokey[{name}]"] for name in ("complete", "lacking", "old")]
    assert extras == ["sound", "absent", "broken"]
    assert "needs >=99" in parts(found)["scipy"]["found"]
    assert parts(found)["no-such-package"]["repair"].endswith("pip install 'no-such-package>=1.5'")


def test_word_vectors_that_cannot_be_read_are_named(doctor: Doctor, tmp_path: Path) -> None:
    damaged = tmp_path / "first" / "wordllama"
    shutil.copytree(Path(wordllama.__file__).parent, damaged)
    for table in damaged.rglob("*.safetensors"):
        os.truncate(table, 1000)
    found = doctor("--json", first=damaged.parent)
    assert found.returncode == 1
    assert parts(found)["word vectors"]["state"] == "broken"
    assert "--force-reinstall wordllama" in parts(found)["word vectors"]["repair"]


def test_a_sound_memory_in_a_broken_installation_is_not_called_sound(doctor: Doctor, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    subprocess.run([sys.executable, "-m", "evokey", "init", "--at", "kb"], cwd=tmp_path, env=environment, check=True)
    described = tmp_path / "first" / "evokey-9.0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text(METADATA, "utf-8")
    found = doctor("--at", str(tmp_path / "kb"), "--json", first=described.parent)
    assert found.returncode == 1
    assert json.loads(found.stdout)["findings"] == [] and "scipy" in parts(found)


def test_a_clock_from_before_the_installation_is_named() -> None:
    (clock,) = [one for one in check_installation(now=lambda: 86_400.0) if one.part == "clock"]
    assert clock.state == "broken" and clock.found.startswith("1970-01-02")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder in which nobody can write is known on Linux only")
def test_a_folder_in_which_no_memory_can_be_made_is_named() -> None:
    written = check_writing(Path("/proc"))[-1]
    assert written.state == "broken" and "cannot be made in /proc" in written.found
