"""Libraries that read files, beside one another on real ones. Makes benchmarks/results/readers.json.

    pip install pypdf pdfminer.six 'markitdown[pdf,docx]' trafilatura selectolax html-text html2text mammoth docx2txt
    python benchmarks/readers.py [CORPUS]

Up to 80 files of each kind, chosen by chance from the corpus (corpus.py) and /usr/share/doc. Counted are seconds, words
and files that a library raises an error on. "evokey" is our reader (Markdown, without navigation), in this process.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import io
import json
import logging
import random
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import corpus

RESULTS = Path(__file__).parent / "results" / "readers.json"
COUNT, SMALLEST, LARGEST = 80, 200, 3_000_000


def ours(kind: str) -> Callable[[Path], str]:
    reader = import_module(f"evokey.ingest.readers.{kind}")
    return lambda path: str(reader.read(path.read_bytes(), path).text)


def pypdfium2(path: Path) -> str:
    import pypdfium2 as library

    document = library.PdfDocument(path)
    return "\n".join(document[at].get_textpage().get_text_range() for at in range(len(document)))


def pypdf(path: Path) -> str:
    import pypdf as library

    return "\n".join(page.extract_text() for page in library.PdfReader(path).pages)


def pdfminer(path: Path) -> str:
    from pdfminer.high_level import extract_text

    return str(extract_text(path))


def markitdown(path: Path) -> str:
    from markitdown import MarkItDown

    return str(MarkItDown(enable_plugins=False).convert(str(path)).text_content)


def trafilatura(path: Path) -> str:
    import trafilatura as library

    return library.extract(path.read_bytes(), output_format="markdown", include_tables=True) or ""


def html_text(path: Path) -> str:
    import html_text as library

    return str(library.extract_text(path.read_text("utf-8", "replace")))


def html2text(path: Path) -> str:
    import html2text as library

    return str(library.html2text(path.read_text("utf-8", "replace")))


def selectolax(path: Path) -> str:
    from selectolax.lexbor import LexborHTMLParser

    body = LexborHTMLParser(path.read_bytes()).body
    return body.text(separator=" ") if body else ""


def lxml(path: Path) -> str:
    from lxml import html

    return str(html.fromstring(path.read_bytes()).text_content())


def python_docx(path: Path) -> str:
    import docx

    return "\n".join(one.text for one in docx.Document(str(path)).paragraphs)


def mammoth(path: Path) -> str:
    import mammoth as library

    with path.open("rb") as file:
        return str(library.convert_to_markdown(file).value)


def docx2txt(path: Path) -> str:
    import docx2txt as library

    return str(library.process(str(path)))


def docutils(path: Path) -> str:
    """Without our reading of unknown directives."""
    from docutils.core import publish_doctree

    settings = {"report_level": 5, "halt_level": 5, "file_insertion_enabled": False, "_disable_config": True}
    return str(publish_doctree(path.read_text("utf-8", "replace"), settings_overrides=settings).astext())


LIBRARIES: dict[str, tuple[Callable[[Path], str], ...]] = {
    "docx": (python_docx, mammoth, docx2txt, markitdown),
    "pdf": (pypdfium2, pypdf, pdfminer, markitdown),
    "html": (lxml, selectolax, html_text, html2text, trafilatura, markitdown),
    "rst": (docutils,),
}
"""Those that change the parser for the whole process (ours, of reStructuredText) come last."""


def sample(kind: str, folder: Path) -> list[Path]:
    found = [path for root in (folder, Path("/usr/share/doc")) for path in root.rglob(f"*.{kind}")]
    sized = sorted(path for path in found if path.is_file() and SMALLEST < path.stat().st_size < LARGEST)
    return random.Random(1).sample(sized, min(COUNT, len(sized)))


def measure(read: Callable[[Path], str], files: list[Path]) -> dict[str, Any]:
    words = errors = 0
    slowest, begun = 0.0, time.perf_counter()
    for path in files:
        start = time.perf_counter()
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                words += len(read(path).split())
        except Exception:  # noqa: BLE001 - whatever a library raises is counted
            errors += 1
        slowest = max(slowest, time.perf_counter() - start)
    taken = time.perf_counter() - begun
    return {"seconds": round(taken, 2), "slowest": round(slowest, 2), "words": words, "errors": errors}


def version(name: str) -> str | None:
    names = {"pdfminer": "pdfminer.six", "html_text": "html-text", "python_docx": "python-docx"}
    try:
        return importlib.metadata.version(names.get(name, name))
    except importlib.metadata.PackageNotFoundError:
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="?", default=corpus.CORPUS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    sys.setrecursionlimit(10_000)
    found: dict[str, Any] = {}
    for kind, libraries in LIBRARIES.items():
        files = sample(kind, given.corpus)
        rows = {one.__name__: measure(one, files) | {"version": version(one.__name__)} for one in libraries}
        rows["evokey"] = measure(ours(kind), files)
        found[kind] = {"files": len(files), "libraries": rows}
        print(kind, json.dumps(found[kind], indent=1))
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
