"""A newcomer's run, timed: each page of "Start" and "Integrations", in an empty virtual environment.

    python benchmarks/newcomer.py DIST [--out FILE] [--most N] [--uv]

DIST holds the wheels of evokey and of its integrations (`make newcomer` builds them); they stand in for the package
index, which has not got them yet. Everything else comes from the index that pip knows. Installed is what the page's own
`pip install` lines say (evokey alone if it has none); then tests/pages/page.py runs all code of the page. What is in
FILE is not run again, and --most limits how many pages are run now. --uv installs by uv in place of pip.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from package import call

ROOT = Path(__file__).parents[1]
RUNNER = ROOT / "tests" / "pages"
PAGES = ("start", "beside", "files", "mcp", "feedback", "langchain", "haystack", "llamaindex", "import", "service")
CPU = "torch==2.13.0"
"""Of torch, the build for processors, where a page pulls it: the one for GPUs has gigabytes."""

sys.path.insert(0, str(RUNNER))
import page as runner  # noqa: E402


def installs(page: Path) -> list[str]:
    """What the page's own lines install."""
    lines = [line for one in runner.blocks(page.read_text("utf-8")) for line in runner.commands(one.code)]
    said = [word for line in lines if line.startswith("pip install ") for word in shlex.split(line)[2:]]
    return said or ["evokey"]


def run(name: str, dist: Path, uv: bool) -> dict[str, Any]:
    page, before = ROOT / "docs" / f"{name}.md", RUNNER / "before" / f"{name}.py"
    wanted = installs(page)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        python = folder / "venv" / "bin" / "python"
        call([sys.executable, "-m", "venv", folder / "venv"], folder)
        constraint = folder / "constraints.txt"
        constraint.write_text(CPU + "\n", "utf-8")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--find-links", dist]
        if uv:
            pip = ["uv", "pip", "install", "--quiet", "--python", python, "--find-links", dist]
        before_install = stamp()
        call([*pip, "--constraint", constraint, *wanted], folder)
        installed = stamp() - before_install
        size = sum(path.stat().st_size for path in (folder / "venv").rglob("*") if path.is_file())
        (folder / "here").mkdir()
        more = ["--before", before] if before.exists() else []
        before_run = stamp()
        said = call([python, RUNNER / "page.py", page, folder / "here", "--skip-install", *more], folder)
        ran = stamp() - before_run
    times = zip(("seconds", "processor_seconds"), installed.round(1).tolist(), ran.round(1).tolist(), strict=True)
    return {
        "install": wanted, "installer": "uv" if uv else "pip", "megabytes": round(size / 1e6),
        "blocks": len(json.loads(said.splitlines()[-1])),
        **{f"{what}_{name}": one for name, *both in times for what, one in zip(("install", "run"), both, strict=True)},
    }  # fmt: skip


def stamp() -> np.ndarray:
    """Seconds of wall time, and of processor time of this process's children: the machine may be busy with others."""
    used = os.times()
    return np.array([time.perf_counter(), used.children_user + used.children_system])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "newcomer.json")
    parser.add_argument("--most", type=int, default=len(PAGES))
    parser.add_argument("--uv", action="store_true")
    given = parser.parse_args()
    found = json.loads(given.out.read_text("utf-8")) if given.out.exists() else {"pages": {}}
    for name in [name for name in PAGES if name not in found["pages"]][: given.most]:
        found["pages"][name] = run(name, given.dist.resolve(), given.uv)
        machine = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
        given.out.write_text(json.dumps({**found, "machine": machine}, indent=1) + "\n", "utf-8")
        print(name, json.dumps(found["pages"][name]), flush=True)


if __name__ == "__main__":
    main()
