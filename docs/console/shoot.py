"""Screenshots of the console for docs/console.md, of the demo's memory: python docs/console/shoot.py DEMO_OUTPUT

DEMO_OUTPUT is what `evokey demo --out DEMO_OUTPUT` wrote; a copy of its memory is served. Needs Debian's chromium.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from serve.served import serving

from evokey import Document
from evokey import open as open_memory
from evokey.serve.options import Options

HERE = Path(__file__).parent
QUESTION = "zip two lists of different length"
DESKTOP: dict[str, Any] = {"viewport": {"width": 1180, "height": 860}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True}
PAGES = {
    "search": f"#/search?q={QUESTION.replace(' ', '+')}",
    "before-after": f"#/search?compare=1&q={QUESTION.replace(' ', '+')}",
    "learn": "#/learn",
    "history": "#/history",
    "review": "#/review",
    "insight": "#/insight",
    "documents": "#/documents",
    "document": "#/documents?id=itertools.zip_longest",
}


def main(demo: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        shutil.copytree(demo / "memory", Path(folder) / "memory")
        (Path(folder) / "empty").mkdir()
        open_memory(Path(folder) / "empty" / "kb", encoder="bm25").close()
        busy(Path(folder) / "memory")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        with serving(Options(at=Path(folder) / "memory", auth=False)) as url:
            shoot(browser, url)
        with serving(Options(at=Path(folder) / "empty" / "kb", auth=False)) as url:
            page = new_page(browser, "light", DESKTOP)
            take(page, f"{url}/#/search", "welcome")
        with serving(Options(at=Path(folder) / "empty" / "kb")) as url:
            take(new_page(browser, "light", DESKTOP), f"{url}/#/search", "sign-in")
        browser.close()


def busy(folder: Path) -> None:
    """Some days of use, so that the pages have something to tell."""
    with open_memory(folder) as memory:
        memory.add([Document("notes.md", "Parental leave is asked for in the portal.", "Notes")])
        asked = {
            "pretty print json": (9, None), "sort a dictionary by value": (7, False), "parental leave form": (4, False),
            "flatten a nested list": (6, None), "read a csv file": (5, True), "send an e-mail": (3, None),
        }  # fmt: skip
        for query, (times, vote) in asked.items():
            for number in range(times):
                shown = memory.show(query, memory.search(query), actor=f"user{number}")
                if vote is not None and number < 3:
                    reason = None if vote else "not in the documents" if "leave" in query else "wrong document"
                    memory.rate(shown, vote, reason, actor=f"user{number}")
        memory.show("xylophone quartzite", [])
        memory.feedback("open a zip file and list what is inside", relevant=["zipfile.ZipFile.namelist"], actor="ada")
        memory.feedback("flatten a nested list", relevant=["itertools.chain.from_iterable"], actor="grace")
        memory.keep_shown()


def new_page(browser: Browser, colours: str, size: dict[str, Any]) -> Page:
    return browser.new_context(color_scheme=colours, **size).new_page()  # type: ignore[arg-type]


def take(page: Page, address: str, name: str) -> None:
    page.goto(address)
    page.wait_for_selector("main h1", state="attached")
    page.wait_for_load_state("networkidle")
    page.wait_for_selector("[aria-busy]", state="detached")
    save(page, name)


def save(page: Page, name: str) -> None:
    """In 96 colours: a fraction of the size."""
    path = HERE / f"{name}.png"
    page.screenshot(path=path)
    Image.open(path).convert("P", palette=Image.Palette.ADAPTIVE, colors=96).save(path, optimize=True)


def shoot(browser: Browser, url: str) -> None:
    for name, path in PAGES.items():
        take(new_page(browser, "light", DESKTOP), f"{url}/{path}", name)
    page = new_page(browser, "light", DESKTOP)
    page.goto(f"{url}/{PAGES['search']}")
    page.get_by_role("button", name="Why?").first.click()
    page.wait_for_selector(".explained")
    save(page, "why")
    page.goto(f"{url}/#/learn")
    page.get_by_role("button", name="Preview").click()
    page.wait_for_selector("text=Who would find something else", timeout=120_000)
    save(page, "preview")
    page.get_by_role("button", name="Compare it first").click()
    page.get_by_role("button", name="Publish the candidate").wait_for()
    take(page, f"{url}/#/learn", "candidate")
    for name in ("search", "insight"):
        take(new_page(browser, "dark", DESKTOP), f"{url}/{PAGES[name]}", f"{name}-dark")
        take(new_page(browser, "light", PHONE), f"{url}/{PAGES[name]}", f"{name}-phone")
    take(new_page(browser, "dark", PHONE), f"{url}/{PAGES['before-after']}", "before-after-phone")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
