"""Try the built package as a user would: a new environment of every Python that is here.

    python benchmarks/package.py DIST [--suite] [--out FILE] [--most N] [--uv]

DIST holds the wheel and the sdist (`make package` builds them). Each Python from 3.11 on that is found, in PATH or
under pyenv, gets an empty virtual environment with the wheel and what it needs, in the newest versions; the oldest
Python another one with the lowest versions that the wheel allows, and one from the sdist. There `evokey doctor` must
find the installation sound, and the README's ten lines must print what they say. --suite runs the core of the tests,
too. A Python that is not here is named; nothing fails by that. What is in FILE is not tried again,
and --most limits how many are tried now. --uv installs by uv in place of pip.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SUITE = ["tests/test_memory.py", "tests/test_cli.py", "tests/test_earlier.py", "tests/test_filters.py", "tests/keys"]
TESTING = ["pytest", "hypothesis", "httpx<1"]
LOWER = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?>=([^,;\s]+)")
TAIL = 2_000


@dataclass(frozen=True)
class Trial:
    python: Path
    what: str
    """newest, lowest, or sdist"""
    install: list[str]
    """What pip is told to install."""


def find_pythons() -> dict[str, Path]:
    """By version (3.11, 3.12 …), the interpreters of this machine."""
    places = [Path(one) for one in os.environ.get("PATH", "").split(os.pathsep) if one]
    places += sorted(Path("~/.pyenv/versions").expanduser().glob("*/bin"), reverse=True)
    found: dict[str, Path] = {}
    for version in PYTHONS:
        for place in places:
            python = place / f"python{version}"
            if version not in found and python.is_file() and _says_version(python, version):
                found[version] = python
    return found


def _says_version(python: Path, version: str) -> bool:
    """pyenv has shims in PATH for versions that are not chosen: they fail."""
    said = subprocess.run([python, "--version"], capture_output=True, text=True)
    return said.returncode == 0 and said.stdout.startswith(f"Python {version}.")


def lowest(wheel: Path) -> list[str]:
    """The lowest versions that a wheel allows, of what it needs without extras."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
        needs = message_from_bytes(archive.read(name)).get_all("Requires-Dist") or []
    bounds = [LOWER.match(one.replace(" ", "")) for one in needs if "extra ==" not in one]
    assert all(bounds), f"every dependency of {wheel.name} needs a lower bound: {needs}"
    return [f"{one[1]}=={one[2]}" for one in bounds if one]


def trials(wheel: Path, sdist: Path) -> list[Trial]:
    found = find_pythons()
    for version in PYTHONS:
        if version not in found:
            print(f"Python {version} is not on this machine: not tried", flush=True)
    oldest = next(iter(found.values()))
    planned = [Trial(python, "newest", [str(wheel)]) for python in found.values()]
    return [*planned, Trial(oldest, "lowest", [str(wheel), *lowest(wheel)]), Trial(oldest, "sdist", [str(sdist)])]


def run_trial(trial: Trial, suite: bool, uv: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        call([trial.python, "-m", "venv", folder / "venv"], folder)
        python = folder / "venv" / "bin" / "python"
        start = time.perf_counter()
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        call([*(["uv", "pip", "install", "--quiet", "--python", python] if uv else pip), *trial.install], folder)
        seconds = time.perf_counter() - start
        checked = json.loads(call([python, "-m", "evokey", "doctor", "--json"], folder))
        example, expected = ten_lines()
        assert call([python, "-c", example], folder).split() == expected
        versions = {one["part"]: one["found"] for one in checked["installation"] if one["state"] == "sound"}
        result = {
            "python": versions["Python"].split()[0], "packages": trial.what,
            "installer": "uv" if uv else "pip", "install_seconds": round(seconds, 1),
            "versions": {name: versions[name] for name in sorted(versions) if re.match(r"[\d.post]+$", versions[name])},
        }  # fmt: skip
        return {**result, **(run_suite(python) if suite else {})}


def ten_lines() -> tuple[str, list[str]]:
    """The README's example, and what it prints."""
    code = re.search(r"```python\n(import evokey\n.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert code is not None
    return code[1], re.findall(r"print\(.*#\s*(\S+)", code[1])


def run_suite(python: Path) -> dict[str, int]:
    """The core of the tests with what is installed, not with the source beside them; warnings do not count."""
    call([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *TESTING], ROOT)
    options = ["-q", "-p", "no:cacheprovider", "-o", "filterwarnings=", "-o", "addopts="]
    said = call([python, "-m", "pytest", *options, *SUITE], ROOT)
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|skipped)", said.splitlines()[-1])}
    return {"tests_passed": counts["passed"], "tests_skipped": counts.get("skipped", 0)}


def call(command: list[Any], folder: Path) -> str:
    """What it prints, as in a shell of its own; where it fails, that is shown."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "EVOKEY_AT", "VIRTUAL_ENV")}
    quiet = kept | {"HAYSTACK_TELEMETRY_ENABLED": "False", "ANONYMIZED_TELEMETRY": "False"}
    done = subprocess.run([str(one) for one in command], cwd=folder, env=quiet, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-TAIL:]}\n{done.stderr[-TAIL:]}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path)
    parser.add_argument("--suite", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--most", type=int, default=100)
    parser.add_argument("--uv", action="store_true")
    given = parser.parse_args()
    (wheel,), (sdist,) = given.dist.resolve().glob("*.whl"), given.dist.resolve().glob("*.tar.gz")
    found = json.loads(given.out.read_text("utf-8")) if given.out and given.out.exists() else {"trials": {}}
    planned = {f"{one.python.name.removeprefix('python')} {one.what}": one for one in trials(wheel, sdist)}
    for name in [name for name in planned if name not in found["trials"]][: given.most]:
        tried = run_trial(planned[name], given.suite, given.uv)
        print(f"{wheel.name}: {json.dumps({**tried, 'versions': len(tried['versions'])})}", flush=True)
        found["trials"][name] = tried
        if given.out:
            machine = f"{platform.system()} {platform.machine()}"
            given.out.write_text(json.dumps({"machine": machine, **found}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
