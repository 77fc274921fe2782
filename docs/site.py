"""A hook of mkdocs: the pages of the site that are not in this folder, and links that lead out of it.

README, CONTRIBUTING and CHANGELOG become pages, and so do the results that pages show; links are changed accordingly.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
RESULTS = "benchmarks/results"
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
SHOWN = (".md", ".svg", ".png", ".json")
REFERENCE = """# Reference

Made from the code: what a program that uses evokey calls.

::: evokey.open

::: evokey.Memory

::: evokey.beside

::: evokey.client.Client

::: evokey.types

::: evokey.errors
"""


def on_files(files: Files, config: Any) -> Files:
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text("utf-8")))
    files.append(File.generated(config, "reference.md", content=REFERENCE))
    for path in sorted((ROOT / RESULTS).rglob("*")):
        if path.suffix in SHOWN:
            name = path.relative_to(ROOT / "benchmarks").as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    if page.file.src_uri in PAGES.values():  # they stand beside this folder, and link into it
        markdown = markdown.replace("](docs/", "](").replace(f"]({RESULTS}", "](results")
        for name, target in PAGES.items():
            markdown = markdown.replace(f"]({name}", f"]({target}")
        return markdown
    up = "../" * len(PurePosixPath(page.file.src_uri).parents)
    for name, target in PAGES.items():
        markdown = markdown.replace(f"]({up}{name}", f"]({up[3:]}{target}")
    return markdown.replace(f"]({up}{RESULTS}", f"]({up[3:]}results")
