"""Real files of every kind: documentation and source of packages, from PyPI and Debian, for readers.py and folder.py.

    python benchmarks/corpus.py [DIR]       (default: bench-output/corpus)

What is there already is not fetched again. Debian's packages need apt-get; without it they are left out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tarfile
import urllib.request
from pathlib import Path

CORPUS = Path(__file__).parents[1] / "bench-output" / "corpus"
SOURCES = {
    "numpy": "2.5.4", "pydantic": "2.14.3", "mkdocs": "1.6.1", "nbconvert": "7.17.2", "pypdf": "7.0.1",
    "pdfminer.six": "20260107", "python-docx": "1.2.0", "mammoth": "1.13.0", "sphinx": "9.2.0", "matplotlib": "3.11.2",
    "statsmodels": "0.15.0", "django": "6.1.3", "attrs": "26.1.0", "networkx": "3.7", "httpx": "0.28.1",
    "typer": "0.29.0", "xarray": "2026.9.0", "seaborn": "0.13.2", "ipython": "9.18.1", "click": "8.5.1",
}  # fmt: skip
DEBIAN = ("python3.11-doc", "git-doc")


def fetch_source(name: str, version: str, folder: Path) -> None:
    index = f"https://pypi.org/pypi/{name}/{version}/json"
    with urllib.request.urlopen(index, timeout=60) as answer:
        files = json.load(answer)["urls"]
    url = next(one["url"] for one in files if one["packagetype"] == "sdist")
    if "://" not in url:  # some mirrors tell the place within their own tree
        url = "https://files.pythonhosted.org/packages/" + url.rpartition("packages/")[2]
    with urllib.request.urlopen(url, timeout=300) as answer, tarfile.open(fileobj=answer, mode="r|gz") as packed:
        packed.extractall(folder, filter="data")


def fetch_debian(name: str, folder: Path) -> None:
    folder.mkdir(parents=True)
    subprocess.run(["apt-get", "download", name], cwd=folder, check=True, capture_output=True)
    for package in list(folder.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
        package.unlink()


def fetch(folder: Path = CORPUS) -> Path:
    for name, version in SOURCES.items():
        place = folder / "sources" / name
        if not place.exists():
            print(f"fetching {name} {version}")
            fetch_source(name, version, place)
    for name in DEBIAN if shutil.which("apt-get") else ():
        place = folder / "debian" / name
        if not place.exists():
            print(f"fetching {name}")
            fetch_debian(name, place)
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=CORPUS)
    fetch(parser.parse_args().folder)
