"""The dashboard of a running crawl, in a browser: live counts, explanations, corrections and filters."""

import json
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.integration.dashboard.browsing import PHONE, BrowserPage, Demo

pytestmark = pytest.mark.slow

PAGES = "Number(document.querySelector('[data-figure=pages]').textContent)"


def drawn(chart: str) -> str:
    """Return an expression that is true if a chart shows anything but zeros."""
    return f"document.querySelector('#chart-{chart} .plot')?.data?.[0].y.some(value => value > 0)"


@pytest.fixture(scope="module")
def demo(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The demo with a delay between pages, so that the page is open while pages are decided."""
    with Demo.running(tmp_path_factory.mktemp("demo"), delay_s=0.3) as running:
        yield running


def test_counts_charts_and_duplicates_are_live(demo: Demo, watch: Callable[..., BrowserPage]) -> None:
    """They change without a reload, equal the API's figures, and axe-core finds no serious fault."""
    watched = watch(demo.url)
    page = watched.page
    page.goto("/")
    expect(page.locator("#line")).to_have_text("connected")
    first = watched.figure("pages")
    watched.until(f"first => {PAGES} > first", first)
    expect(page.locator("#rows tbody tr")).not_to_have_count(0)
    watched.until(drawn("pages"))
    demo.wait_for(lambda: json.loads(demo.get("/api/stats"))["summary"]["verdicts"]["updated"])
    watched.until(drawn("distances"))
    summary = json.loads(demo.get("/api/stats?history=none"))["summary"]
    watched.until(f"pages => {PAGES} >= pages", summary["pages"])
    assert watched.figure("duplicates") >= summary["verdicts"]["duplicate"] > 0
    page.locator("#chart-pages summary").click()
    expect(page.locator("#chart-pages details table tbody tr")).not_to_have_count(0)
    assert watched.axe() == []


def test_a_duplicate_is_explained_and_corrected(demo: Demo, watch: Callable[..., BrowserPage]) -> None:
    """A row leads to the explanation, and its button to the audit trail."""
    watched = watch(demo.url)
    page = watched.page
    page.goto("/")
    duplicate = page.locator("#rows tbody tr", has=page.locator(".verdict.duplicate")).first
    address = duplicate.locator("[data-title=Page] .page-url").inner_text()
    duplicate.get_by_role("link", name="Why").click()
    expect(page.locator("[data-figure=verdict]")).to_have_text("duplicate")
    expect(page.locator("#url")).to_have_value(address)
    expect(page.locator("#passages .passage")).not_to_have_count(0)
    expect(page.locator("#bits tbody tr")).to_have_count(8)
    expect(page.locator("#rule")).to_contain_text("The rule calls the pair duplicates: ")
    expect(page.locator("#rule details[open]", has_text=re.compile(": (?:decides|holds)"))).to_have_count(1)
    expect(page.locator("#features tbody tr")).not_to_have_count(0)
    assert watched.axe() == []

    page.locator("#not-duplicate-reason").fill("two stories of one name")
    page.get_by_role("button", name="Not a duplicate").click()
    expect(page.locator("#said")).to_contain_text("in force")
    expect(page.locator("#correct")).to_contain_text("is not a duplicate of")
    expect(page.locator("#correct")).to_contain_text("two stories of one name")
    expect(page.locator("#rule")).to_contain_text("A person decided: apart.")
    (row, *_) = json.loads(demo.get("/api/corrections"))["rows"]
    assert (row["url"], row["duplicate"], row["in_force"]) == (address, False, True)
    assert watched.axe() == []


def test_a_kept_page_shows_its_neighbours(demo: Demo, watch: Callable[..., BrowserPage]) -> None:
    """It shows why they did not match, with a link to compare each."""
    demo.wait_for(lambda: json.loads(demo.get("/api/duplicates?limit=1"))["rows"])
    kept = json.loads(demo.get("/api/duplicates?limit=1"))["rows"][0]["of_url"]
    watched = watch(demo.url)
    page = watched.page
    page.goto(f"/why?url={kept}")
    expect(page.locator("[data-figure=verdict]")).to_have_text("unique")
    page.locator("#neighbours").get_by_role("link", name="Compare with").first.click()
    expect(page.locator("#passages .passage")).not_to_have_count(0)
    assert "of=" in page.url


def test_a_group_shows_its_pages(demo: Demo, watch: Callable[..., BrowserPage]) -> None:
    """The explanation leads to them; a form chooses the policy by which one of them stands for the group."""
    (row,) = demo.wait_for(lambda: json.loads(demo.get("/api/duplicates?verdict=duplicate&limit=1"))["rows"])
    watched = watch(demo.url)
    page = watched.page
    page.goto(f"/why?sequence={row['sequence']}")
    page.get_by_role("link", name="all its copies").click()
    members = page.locator("#members tbody tr")
    expect(members.filter(has=page.locator(".verdict.duplicate")).first).to_be_visible()
    expect(members.first).to_contain_text("yes")
    expect(page.locator("#url")).to_have_value(row["url"])
    assert watched.axe() == []
    page.locator("#canonical").fill("longest")
    page.get_by_role("button", name="Show group").click()
    expect(page.locator("#group")).to_contain_text("longest")
    assert watched.axe() == []


def test_host_and_verdict_filter_the_table(demo: Demo, watch: Callable[..., BrowserPage]) -> None:
    """An unknown host has no rows; the reset brings them back; a paused table does not change."""
    page = watch(demo.url).page
    page.goto("/")
    rows = page.locator("#rows tbody tr")
    expect(rows).not_to_have_count(0)
    page.locator("#verdict").select_option("updated")
    expect(rows.locator(".verdict.updated")).to_have_count(1)
    expect(rows).to_have_count(1)
    page.locator("#search").fill("https://nobody.example/")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(rows).to_have_count(0)
    expect(page.locator("#rows-state")).to_contain_text("No such page among the newest.")
    expect(page.get_by_role("link", name="Look for it among all kept pages")).to_be_visible()
    page.locator("#search").fill("")
    page.locator("#verdict").select_option("unique")
    expect(rows.locator(".verdict.unique").first).to_be_visible()
    page.get_by_role("button", name="All").click()
    expect(rows).not_to_have_count(1)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#rows-state")).to_have_text("Paused.")
    page.locator("#hosts").get_by_role("button").first.click()
    expect(page.locator("#search")).to_have_value("127.0.0.1")


def test_the_keyboard_is_enough(demo: Demo, watch: Callable[..., BrowserPage]) -> None:
    """The first Tab skips to the rows, the focus is visible, and keys change colours and charts."""
    page = watch(demo.url).page
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(page.locator("#newest")).to_be_focused()
    page.locator("#theme").focus()
    page.keyboard.press("End")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("#theme")).to_have_value("dark")
    page.locator("input[name=span]").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("input[value=day]")).to_be_checked()


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_the_page_fits_on_a_phone(demo: Demo, watch: Callable[..., BrowserPage], colours: str) -> None:
    """Both pages fit into 360 pixels without a word cut in two, with enough contrast in light and dark colours."""
    watched = watch(demo.url, PHONE, color_scheme=colours)
    page = watched.page
    page.goto("/")
    expect(page.locator("#rows tbody tr")).not_to_have_count(0)
    expect(page.locator("#chart-latency svg").first).to_be_visible()
    assert (watched.overflow(), watched.broken_words()) == (0, [])
    assert watched.axe() == []
    page.locator("#rows").get_by_role("link", name="Why").first.click()
    expect(page.locator("#features tbody tr")).not_to_have_count(0)
    assert (watched.overflow(), watched.broken_words()) == (0, [])
    assert watched.axe() == []
