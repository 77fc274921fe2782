"""The machine that measures, in a few words."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

CPUINFO, MEMINFO = Path("/proc/cpuinfo"), Path("/proc/meminfo")
PACKAGES = ("numpy", "scipy", "faiss-cpu", "bm25s", "numba", "tantivy", "nudge-ft", "xllamacpp")


def describe() -> dict[str, Any]:
    return {
        "processor": _summarise(CPUINFO, "model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory": _summarise(MEMINFO, "MemTotal"),
        "system": f"{platform.system()} {platform.release()}",
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "threads": 1,
        "versions": {"python": sys.version.split()[0], **_versions()},
    }


def _summarise(path: Path, name: str) -> str | None:
    if not path.exists():
        return None
    lines = (line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
    return next((value.strip() for key, value in lines if key.strip() == name), None)


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
