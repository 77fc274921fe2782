"""Is this installation sound? Python, packages and extras against their bounds, word vectors, SQLite, disk, clock."""

from __future__ import annotations

import math
import platform
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import evokey
from evokey import memory as memory_
from evokey.errors import EvokeyError
from evokey.registry import build

NAME = "evokey"
ROOM = 200 * 2**20
"""Bytes of free space below which a full disk is to be expected."""
DAY = 86_400.0
QUESTION = "how do I undo a commit?"
DOCUMENTS = {
    "git-revert": "Record new changes that reverse the effect of earlier ones.",
    "git-commit": "Record changes to the repository: make a commit.",
    "git-log": "Show the history, newest first.",
}


@dataclass(frozen=True, slots=True)
class Check:
    part: str
    found: str
    state: Literal["sound", "absent", "broken"] = "sound"
    """Absent: an extra that is not installed, which is nothing wrong."""
    repair: str = ""


def check_installation(now: Callable[[], float] = time.time) -> list[Check]:
    """Read only: what is installed, and whether it works."""
    return [
        *_check_program(),
        *_check_packages(),
        *_check_extras(),
        _check_table(),
        _check_sqlite(),
        _check_clock(now()),
    ]


def _check_program() -> list[Check]:
    wanted = metadata.metadata(NAME)["Requires-Python"]
    python, machine = platform.python_version(), f"{platform.system()} {platform.machine()}"
    fits = SpecifierSet(wanted).contains(python, prereleases=True)
    return [
        Check(NAME, f"{metadata.version(NAME)}, in {Path(evokey.__file__).parent}"),
        Check("Python", f"{python} ({machine})")
        if fits
        else Check("Python", f"{python}, and evokey needs {wanted}", "broken", "install a Python that fits"),
    ]


def _requirements(extra: str = "") -> list[Requirement]:
    """What evokey needs on this machine; of an extra, what it needs besides."""
    found = [Requirement(line) for line in metadata.requires(NAME) or ()]
    if not extra:
        return [one for one in found if one.marker is None or one.marker.evaluate({"extra": ""})]
    return [
        one
        for one in found
        if one.marker and one.marker.evaluate({"extra": extra}) and not one.marker.evaluate({"extra": ""})
    ]


def _version(requirement: Requirement) -> str | None:
    try:
        return metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return None


def _check_packages() -> list[Check]:
    return [_check_package(one) for one in _requirements()]


def _check_package(wanted: Requirement) -> Check:
    found = _version(wanted)
    repair = f"{sys.executable} -m pip install '{wanted.name}{wanted.specifier}'"
    if found is None:
        return Check(wanted.name, "not installed", "broken", repair)
    if not wanted.specifier.contains(found, prereleases=True):
        return Check(wanted.name, f"{found}, and evokey needs {wanted.specifier}", "broken", repair)
    return Check(wanted.name, found)


def _check_extras() -> list[Check]:
    names = metadata.metadata(NAME).get_all("Provides-Extra") or ()
    return [_check_extra(name) for name in sorted(names) if name != "all"]


def _check_extra(name: str) -> Check:
    """One that is there in part is absent; one whose packages are all there, in a version that does not fit, broken."""
    wanted = [one for one in _requirements(name) if canonicalize_name(one.name) != NAME]
    found = {one.name: _version(one) for one in wanted}
    install = f"pip install 'evokey[{name}]'"
    missing = [package for package, version in found.items() if version is None]
    if missing:
        return Check(f"evokey[{name}]", f"not installed (lacks {', '.join(missing)})", "absent", install)
    wrong = [
        f"{one.name} {found[one.name]} instead of {one.specifier}"
        for one in wanted
        if not one.specifier.contains(found[one.name] or "", prereleases=True)
    ]
    if wrong:
        return Check(f"evokey[{name}]", ", ".join(wrong), "broken", install)
    return Check(f"evokey[{name}]", ", ".join(f"{package} {version}" for package, version in found.items()))


def _check_table() -> Check:
    """The word vectors of the default encoder, which come inside the package wordllama."""
    repair = f"{sys.executable} -m pip install --force-reinstall wordllama"
    try:
        (vector,) = build("encoder", "wordllama").queries([QUESTION])
    except Exception as error:  # noqa: BLE001 - whatever a damaged file or package raises is the finding
        return Check("word vectors", f"{type(error).__name__}: {error}", "broken", repair)
    length = math.sqrt(float(vector @ vector))
    if not math.isclose(length, 1.0, rel_tol=1e-3):
        return Check("word vectors", f"a vector has length {length}, not 1", "broken", repair)
    return Check("word vectors", f"wordllama, {len(vector)} dimensions")


def _check_sqlite() -> Check:
    version = sqlite3.sqlite_version
    with sqlite3.connect(":memory:") as database:
        options = {row[0] for row in database.execute("PRAGMA compile_options")}
        whole = database.execute("SELECT count(*) FROM json_each('[1, 2]')").fetchone() == (2,)
    if "THREADSAFE=0" in options or not whole:
        found = f"{version} is built without {'JSON' if not whole else 'threads'}"
        return Check("SQLite", found, "broken", "use a Python whose sqlite3 module has both")
    return Check("SQLite", f"{version}, with threads and JSON")


def _check_clock(now: float) -> Check:
    """Lessons carry their time, and the newest count most: a clock that is far behind would make new ones old."""
    installed = Path(evokey.__file__).stat().st_mtime
    shown = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M UTC")
    if now < installed - DAY:
        return Check("clock", f"{shown}, before evokey was installed", "broken", "set the clock of this machine")
    return Check("clock", shown)


def check_writing(folder: Path) -> list[Check]:
    """Make a memory in a new directory of this folder, teach and search it, and remove it."""
    free = shutil.disk_usage(folder).free
    space = f"{free / 2**30:.1f} GiB free in {folder}"
    full = Check("disk", space, "broken", "make room, or use another disk") if free < ROOM else Check("disk", space)
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".evokey-doctor-") as place:
            first = _learn(Path(place))
    except (OSError, EvokeyError) as error:
        return [full, Check("a memory", f"cannot be made in {folder}: {error}", "broken", "use another folder (--at)")]
    if first != ["git-commit", "git-revert", "git-commit"]:
        return [full, Check("a memory", f"finds {', '.join(first)}", "broken", "report this with the lines above")]
    return [full, Check("a memory", f"was made in {folder}, taught, searched and removed")]


def _learn(folder: Path) -> list[str]:
    """The first hit before a lesson, after it, and when it is forgotten."""
    with memory_.open(folder / "kb") as memory:
        memory.add([{"id": id, "text": text} for id, text in DOCUMENTS.items()])
        found = [memory.search(QUESTION)[0].id]
        memory.feedback(QUESTION, relevant=["git-revert"], actor="doctor")
        memory.evolve()
        found.append(memory.search(QUESTION)[0].id)
        memory.forget(actor="doctor")
        return [*found, memory.search(QUESTION)[0].id]
