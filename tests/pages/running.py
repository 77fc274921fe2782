"""Run a page of the docs in an empty folder, with what its reader has already (before/)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PATIENCE = 900


def run_page(page: Path, folder: Path) -> None:
    """By page.py, in a process of its own, with this environment's packages."""
    command = [sys.executable, str(HERE / "page.py"), str(page), str(folder), "--skip-install", "--port", str(_free())]
    before = HERE / "before" / f"{name_of(page)}.py"
    more = ["--before", str(before)] if before.exists() else []
    around = os.environ | {"PYTHONPATH": os.pathsep.join(str(Path(one).resolve()) for one in sys.path if one)}
    done = subprocess.run([*command, *more], env=around, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-3000:]


def name_of(page: Path) -> str:
    """The page's own name; of README files below the root, with their folder's."""
    return page.stem if page.stem != "README" or page.parent == ROOT else f"{page.parent.name}-README"


def _free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
