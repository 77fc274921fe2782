"""The console in a real browser (chromium): every story, empty and broken states, a phone, and hostile texts."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from serve.served import fill, serving

import evokey
import evokey.client
from evokey.serve.keys import Key, KeyRing
from evokey.serve.options import Options

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="SKIPPED FOR WANT OF CHROMIUM: apt install chromium")
HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script> "
    "[a](javascript:alert(1)) ![b](x)"
)
COLOURS = [
    ("--text", "--page"), ("--quiet", "--page"), ("--accent", "--surface"), ("--bad", "--bad-soft"),
    ("--good", "--good-soft"), ("--accent-text", "--accent"),
]  # fmt: skip
"""Colours of texts, and what is behind them."""


expect.set_options(timeout=30_000)  # to learn, a process starts


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    yield from new_page(browser)


def new_page(browser: Browser, **options: Any) -> Iterator[Page]:
    """A page on which nothing may fail: no script error, and nothing that the policy refuses."""
    context = browser.new_context(**options)
    context.set_default_timeout(20_000)
    found, troubles = context.new_page(), list[str]()
    found.on("pageerror", lambda error: troubles.append(str(error)))
    found.on("console", lambda said: troubles.append(said.text) if "Content Security Policy" in said.text else None)
    yield found
    context.close()
    assert troubles == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = fill(tmp_path / "kb")
    with evokey.open(found) as memory:
        memory.add([{"id": "hostile.md", "title": HOSTILE, "text": f"hostile {HOSTILE}", "metadata": {"x": HOSTILE}}])
    return found


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    with serving(Options(at=folder, auth=False)) as address:
        yield address


def learn(page: Page, url: str) -> None:
    """Teach by one click, and publish."""
    page.goto(f"{url}/#/search?q=shell")
    page.get_by_role("button", name="✓ Right").first.click()
    expect(page.get_by_text("Lesson 1 recorded")).to_be_visible()
    page.get_by_role("link", name="Learn").click()
    page.get_by_role("button", name="Learn and publish").click()
    expect(page.get_by_role("heading", name="Published as epoch 1")).to_be_visible()


def test_a_newcomer_adds_files_asks_and_teaches(page: Page, tmp_path: Path) -> None:
    evokey.open(tmp_path / "new", encoder="bm25").close()
    (tmp_path / "leave.md").write_text("# Parental leave\n\nAsk for it in the portal.")
    (tmp_path / "travel.md").write_text("# Travel\n\nTickets are booked by the office.")
    with serving(Options(at=tmp_path / "new", auth=False)) as url:
        page.goto(url)
        expect(page.get_by_role("heading", name="Welcome. This memory is empty.")).to_be_visible()
        page.set_input_files("#files", [tmp_path / "leave.md", tmp_path / "travel.md"])
        expect(page.get_by_role("heading", name="Ask your documents")).to_be_visible()
        page.get_by_label("Question").fill("who books tickets")
        page.keyboard.press("Enter")
        expect(page.locator(".hit").first).to_contain_text("Tickets are booked by the office.")
        page.get_by_role("button", name="✓ Right").first.click()
        expect(page.get_by_text("Lesson 1 recorded")).to_be_visible()


def test_search_highlights_teaches_and_takes_back(page: Page, url: str, folder: Path) -> None:
    page.goto(f"{url}/#/search?q=erase+somebody")
    first = page.locator(".hit").first
    expect(first.locator("mark").first).to_have_text("Erase")
    first.get_by_role("button", name="✗ Wrong").click()
    expect(first.get_by_role("button", name="✗ Wrong")).to_have_attribute("aria-pressed", "true")
    first.get_by_role("button", name="Undo").click()
    expect(first.get_by_role("button", name="✗ Wrong")).to_have_attribute("aria-pressed", "false")
    with evokey.open(folder) as memory:
        assert [one.verdicts[0].grade for one in memory.lessons()] == [-1.0, 0.0]


def test_before_and_after_side_by_side_and_why(page: Page, url: str) -> None:
    learn(page, url)
    page.goto(f"{url}/#/search?compare=1&q=shell")
    expect(page.get_by_role("heading", name="Before, untaught")).to_be_visible()
    expect(page.get_by_role("heading", name="Now, epoch 1")).to_be_visible()
    page.goto(f"{url}/#/search?q=shell")
    page.get_by_role("button", name="Why?").first.click()
    told = page.locator(".explained").first
    expect(told).to_contain_text("bm25:")
    expect(told).to_contain_text("lesson 1, by the owner")


def test_votes_open_a_review_that_the_keyboard_answers(page: Page, url: str, folder: Path) -> None:
    page.goto(f"{url}/#/search?q=what+everybody+earns")
    page.get_by_role("button", name="👎 No").click()
    page.get_by_role("button", name="wrong document").click()
    expect(page.get_by_text("it is in Review")).to_be_visible()
    page.goto(f"{url}/#/review")
    expect(page.get_by_role("heading", name="what everybody earns")).to_be_visible()
    page.keyboard.press("r")
    expect(page.get_by_role("button", name="✓ Right").first).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    with evokey.open(folder) as memory:
        assert [(one.query, one.verdicts[0].document) for one in memory.lessons()] == [
            ("what everybody earns", "secret.md")
        ]


def test_learn_previews_who_would_gain_and_then_publishes(page: Page, url: str) -> None:
    page.goto(f"{url}/#/learn")
    expect(page.get_by_role("heading", name="No lessons yet")).to_be_visible()
    page.goto(f"{url}/#/search?q=shell")
    page.get_by_role("button", name="✓ Right").first.click()
    expect(page.get_by_text("Lesson 1 recorded")).to_be_visible()
    page.goto(f"{url}/#/learn")
    expect(page.get_by_text("1 new lesson since epoch 0.")).to_be_visible()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="Preview: nothing is published")).to_be_visible()
    page.get_by_role("button", name="Learn and publish").click()
    expect(page.get_by_role("heading", name="Published as epoch 1")).to_be_visible()


def test_history_shows_changes_rolls_back_and_forgets_with_a_preview(page: Page, url: str, folder: Path) -> None:
    page.goto(f"{url}/#/history")
    expect(page.get_by_role("heading", name="Nothing has been learned yet")).to_be_visible()
    learn(page, url)
    page.get_by_role("link", name="History").click()
    page.get_by_role("button", name="What changed?").click()
    expect(page.get_by_role("link", name="install.md")).to_be_visible()
    page.once("dialog", lambda asked: asked.accept())
    page.get_by_role("button", name="Go back to this").last.click()
    expect(page.get_by_role("heading", name="Epoch 2")).to_be_visible()
    page.get_by_label("Forget", exact=True).select_option("query")
    page.get_by_label("Which one").fill("shell")
    page.get_by_role("button", name="What would go?").click()
    page.get_by_role("button", name="Forget 1 lesson for good").click()
    expect(page.get_by_text("Forgot 1 lesson.")).to_be_visible()
    with evokey.open(folder) as memory:
        assert memory.lessons() == []


def test_insight_tells_what_is_missing_and_worth_teaching(page: Page, url: str) -> None:
    page.goto(f"{url}/#/insight")
    expect(page.get_by_role("heading", name="Nothing to tell yet")).to_be_visible()
    for query in ("xylophone", "question", "question+again"):
        page.goto(f"{url}/#/search?q={query}")
        expect(page.locator(".hit, .state").first).to_be_visible()
        page.wait_for_load_state("networkidle")
    page.goto(f"{url}/#/search?q=xylophone")
    page.get_by_role("button", name="It is not in the documents").click()
    expect(page.get_by_text("Noted as a gap")).to_be_visible()
    page.get_by_role("link", name="Insight").click()
    for heading in ("Without hits", "Gaps"):
        card = page.locator("section").filter(has=page.get_by_role("heading", name=heading))
        expect(card.get_by_role("link", name="xylophone")).to_be_visible()
    card = page.locator("section").filter(has=page.get_by_role("heading", name="Worth teaching"))
    expect(card.get_by_role("link", name="question", exact=True)).to_be_visible()


def test_documents_are_browsed_and_read_with_what_they_learned(page: Page, url: str) -> None:
    learn(page, url)
    page.get_by_role("link", name="Documents").click()
    page.get_by_role("link", name="Install").click()
    expect(page.locator("pre")).to_have_text("Run pip install evokey in a shell.")
    expect(page.get_by_text("lesson 1, by the owner")).to_be_visible()
    page.once("dialog", lambda asked: asked.accept())
    page.get_by_role("button", name="Remove this document").click()
    expect(page.get_by_text("4 documents")).to_be_visible()


def test_a_preview_is_compared_by_what_people_open_and_then_published(page: Page, url: str, folder: Path) -> None:
    page.goto(f"{url}/#/search?q=shell")
    expect(page.locator(".hit").first).to_be_visible()
    with evokey.client.Client(url) as client:
        client.feedback("shell", relevant=["search.md"])
    page.get_by_role("link", name="Learn").click()
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Compare it first").click()
    expect(page.get_by_role("heading", name="Candidate not published")).to_be_visible()
    page.goto(f"{url}/#/search?q=shell")
    unmixed = page.locator(".hit").first.element_handle()
    page.get_by_label("Mix in the candidate").check()
    unmixed.wait_for_element_state("hidden")  # a click on what was found before counts for nobody
    with page.expect_response("**/clicks"):
        page.locator(".hit").get_by_role("link", name="Search", exact=True).click()
    expect(page.locator("pre")).to_have_text("Call search with a question.")
    page.get_by_role("link", name="Learn").click()
    expect(page.get_by_text("1 speak for it")).to_be_visible()
    page.get_by_role("link", name="History").click()
    expect(page.get_by_role("cell", name="epoch 0 and the candidate")).to_be_visible()
    page.locator("#tab-learn").click()
    page.get_by_role("button", name="Publish the candidate").click()
    expect(page.get_by_text("The candidate is published.")).to_be_visible()
    with evokey.open(folder) as memory:
        assert memory.epoch == 1


def test_what_was_tried_lately_is_listed_with_its_reason(page: Page, url: str) -> None:
    learn(page, url)
    page.get_by_role("button", name="Learn and publish").click()
    card = page.locator("section").filter(has=page.get_by_role("heading", name="Lately")).last
    expect(card.get_by_text("nothing new since epoch 1")).to_be_visible()
    expect(card.get_by_text("epoch 1", exact=True)).to_be_visible()


def test_a_layer_is_searched_and_taught_and_says_where_its_documents_are(page: Page, tmp_path: Path) -> None:
    (tmp_path / "found_elsewhere.py").write_text(
        "def search(query, k):\n    return [{'id': 'a', 'title': 'Leave', 'text': 'Ask in the portal.'}, {'id': 'b'}]\n"
    )
    (tmp_path / "layers.toml").write_text("[shop]\nsearch = 'found_elsewhere:search'\nencoder = ['bm25']\n")
    with serving(Options(root=tmp_path / "root", layers=tmp_path / "layers.toml", auth=False)) as url:
        page.goto(f"{url}/#/search?q=leave")
        expect(page.locator(".hit").first).to_contain_text("Ask in the portal.")
        page.get_by_role("button", name="✓ Right").last.click()
        expect(page.get_by_text("Lesson 1 recorded")).to_be_visible()
        page.get_by_role("link", name="Learn").click()
        page.get_by_role("button", name="Learn and publish").click()
        expect(page.get_by_role("heading", name="Published as epoch 1")).to_be_visible()
        page.goto(f"{url}/#/search?q=leave")
        expect(page.locator(".hit").first.locator("h2")).to_have_text("b")
        page.get_by_role("link", name="Documents").click()
        expect(page.get_by_role("heading", name="The documents are in your search")).to_be_visible()


# ---- keys, errors, phones, hostile texts


def test_a_key_is_asked_for_kept_in_the_tab_alone_and_limits_what_is_offered(page: Page, folder: Path) -> None:
    secret = KeyRing(folder).create(Key("reader"))
    with serving(Options(at=folder)) as url:
        page.goto(f"{url}/#/search?q=shell")
        page.get_by_label("API key").fill("evk_reader_wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_text("That key is unknown, expired or revoked.")).to_be_visible()
        page.get_by_label("API key").fill(secret)
        page.keyboard.press("Enter")
        expect(page.locator(".hit").first).to_be_visible()
        assert page.get_by_role("button", name="✓ Right").count() == 0
        assert secret not in page.content() and page.context.cookies() == []
        assert page.evaluate("() => JSON.stringify(localStorage)") == "{}"
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("API key")).to_be_visible()


def test_markup_and_scripts_in_documents_and_questions_are_shown_as_text(page: Page, url: str) -> None:
    page.goto(f"{url}/#/search?q=hostile")
    expect(page.locator(".hit").first).to_contain_text("<script>")
    page.goto(f"{url}/#/documents?id=hostile.md")
    expect(page.locator("pre")).to_contain_text("<img src=x")
    page.goto(f"{url}/#/search?q=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E+qqqq")
    expect(page.locator(".state, .hit").first).to_be_visible()
    assert "owned" not in page.title()
    assert page.locator("main img, main script, main a[href^='javascript']").count() == 0


def test_a_service_that_went_away_is_said_and_tried_again(page: Page, folder: Path) -> None:
    with serving(Options(at=folder, auth=False)) as url:
        page.goto(f"{url}/#/search?q=shell")
        expect(page.locator(".hit").first).to_be_visible()
    page.get_by_role("link", name="Insight").click()
    expect(page.get_by_role("alert")).to_contain_text("The service does not answer")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_pages_fit_a_phone_and_have_enough_contrast(browser: Browser, url: str, colours: str) -> None:
    sizes: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "color_scheme": colours}
    for page in new_page(browser, **sizes):
        for name in ("search?q=shell", "search?q=hostile", "learn", "history", "review", "insight", "documents"):
            page.goto(f"{url}/#/{name}")
            page.wait_for_selector("main h1, main h2", state="attached")
            page.wait_for_load_state("networkidle")
            assert page.evaluate("() => document.documentElement.scrollWidth") == 360, name
            assert page.locator("#tabs").bounding_box()["y"] < 740  # type: ignore[index]
        for text, behind in COLOURS:
            assert contrast(colour(page, text), colour(page, behind)) >= 4.5, (text, behind)


def colour(page: Page, name: str) -> tuple[int, ...]:
    said = page.evaluate("name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()", name)
    return tuple(int(part, 16) for part in re.findall("[0-9a-f]{2}", said))


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """By WCAG 2."""

    def light(parts: tuple[int, ...]) -> float:
        linear = [(v / 255 / 12.92) if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_control_has_a_name_and_the_keyboard_reaches_all_pages(page: Page, url: str) -> None:
    for name in ("search?q=shell", "learn", "history", "insight", "documents"):
        page.goto(f"{url}/#/{name}")
        page.wait_for_load_state("networkidle")
        unnamed = page.evaluate(
            "() => [...document.querySelectorAll('input, select, button, a')].filter((one) => !(one.labels?.length "
            "|| one.getAttribute('aria-label') || one.textContent.trim())).map((one) => one.outerHTML)"
        )
        assert unnamed == []
    page.goto(f"{url}/#/search?q=shell")
    expect(page.locator(".hit").first).to_be_visible()
    page.locator("body").press("j")
    expect(page.locator(".hit").first).to_be_focused()
    page.keyboard.press("g")
    page.keyboard.press("i")
    expect(page.get_by_role("heading", name="Insight")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("/")
    expect(page.get_by_label("Question")).to_be_focused()
