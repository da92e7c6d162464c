"""The dashboard of a crawl that goes on, in a browser: counts move, a duplicate is explained, a person knows better."""

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.integration.dashboard.browsing import PHONE, Demo, Watched

pytestmark = pytest.mark.slow

PAGES = "Number(document.querySelector('[data-figure=pages]').textContent)"


def drawn(chart: str) -> str:
    """Whether a chart shows anything but zeros."""
    return f"document.querySelector('#chart-{chart} .plot')?.data?.[0].y.some(value => value > 0)"


@pytest.fixture(scope="module")
def demo(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Started when the browser is, and slow, so that the page is open while pages are judged."""
    with Demo.running(tmp_path_factory.mktemp("demo"), delay_s=0.1) as running:
        yield running


def test_counts_charts_and_duplicates_change_while_the_crawl_goes_on(demo: Demo, watch: Callable[..., Watched]) -> None:
    """Without a reload; then the figures are those of the API, and axe-core finds no serious fault."""
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


def test_a_duplicate_is_explained_and_a_person_says_that_it_is_none(demo: Demo, watch: Callable[..., Watched]) -> None:
    """From the table to the reasons, and from the button to the audit trail."""
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
    expect(page.locator("#rule details[open]", has_text="decides")).to_have_count(1)
    expect(page.locator("#features tbody tr")).not_to_have_count(0)
    assert watched.axe() == []

    page.locator("#not-duplicate-reason").fill("two stories of one name")
    page.get_by_role("button", name="Not a duplicate").click()
    expect(page.locator("#said")).to_contain_text("in force")
    expect(page.locator("#correct")).to_contain_text("is not a duplicate of")
    expect(page.locator("#correct")).to_contain_text("two stories of one name")
    expect(page.locator("#rule")).to_contain_text("A person said apart")
    (row, *_) = json.loads(demo.get("/api/corrections"))["rows"]
    assert (row["url"], row["duplicate"], row["in_force"]) == (address, False, True)
    assert watched.axe() == []


def test_a_page_that_was_kept_shows_its_neighbours(demo: Demo, watch: Callable[..., Watched]) -> None:
    """Why they did not match, and from there to each of them beside it."""
    demo.wait_for(lambda: json.loads(demo.get("/api/duplicates?limit=1"))["rows"])
    kept = json.loads(demo.get("/api/duplicates?limit=1"))["rows"][0]["of_url"]
    watched = watch(demo.url)
    page = watched.page
    page.goto(f"/why?url={kept}")
    expect(page.locator("[data-figure=verdict]")).to_have_text("unique")
    page.locator("#neighbours").get_by_role("link", name="Compare with").first.click()
    expect(page.locator("#passages .passage")).not_to_have_count(0)
    assert "of=" in page.url


def test_host_and_verdict_filter_the_table(demo: Demo, watch: Callable[..., Watched]) -> None:
    """A host that nobody has leaves none; the reset brings them back; a paused table stays as it is."""
    page = watch(demo.url).page
    page.goto("/")
    rows = page.locator("#rows tbody tr")
    expect(rows).not_to_have_count(0)
    page.locator("#verdict").select_option("updated")
    expect(rows.locator(".verdict.updated")).to_have_count(1)
    expect(rows).to_have_count(1)
    page.locator("#host").fill("nobody.example")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(rows).to_have_count(0)
    expect(page.locator("#rows-state")).to_have_text("None yet.")
    page.get_by_role("button", name="All").click()
    expect(rows).not_to_have_count(1)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#rows-state")).to_have_text("Paused.")
    page.locator("#hosts").get_by_role("button").first.click()
    expect(page.locator("#host")).to_have_value("127.0.0.1")


def test_the_keyboard_is_enough(demo: Demo, watch: Callable[..., Watched]) -> None:
    """The first Tab is a way past everything; what has the focus is seen; colours and charts change by keys."""
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
def test_a_telephone_shows_all_of_it(demo: Demo, watch: Callable[..., Watched], colours: str) -> None:
    """Nothing is wider than 360 pixels, on either page, and nothing is too faint in either colours."""
    watched = watch(demo.url, PHONE, color_scheme=colours)
    page = watched.page
    page.goto("/")
    expect(page.locator("#rows tbody tr")).not_to_have_count(0)
    expect(page.locator("#chart-latency svg").first).to_be_visible()
    assert watched.overflow() == 0
    assert watched.axe() == []
    page.locator("#rows").get_by_role("link", name="Why").first.click()
    expect(page.locator("#features tbody tr")).not_to_have_count(0)
    assert watched.overflow() == 0
    assert watched.axe() == []
