"""What strangers wrote is shown as what it is: it runs nothing, leads nowhere and turns nothing round.

The filter is in this process, so that pages come when the test wants them to.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

from dedup_service.core.page import Page
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.core.rules.rule import MatchRule
from dedup_service.interfaces.http.access_guard import Token
from dedup_service.interfaces.http.dashboard import EmbeddedDashboard
from dedup_service.interfaces.http.server import Address
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from tests.integration.dashboard.browsing import PHONE, Watched
from tests.interfaces.cli.running import article

pytestmark = pytest.mark.slow

SCRIPT = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"
BIDI = "invoice\u202egnp.exe\u2066 \x1b[31mred\x00"
LONG = "x" * (1 << 20)
MARKUP = "</td></table><h1 id=owned>owned</h1>"
URLS = {
    "script": "javascript:document.title='owned'",
    "markup": 'https://evil.example/"><script>document.title="owned"</script>',
    "bidi": "https://evil.example/\u202egnp.exe",
    "data": "data:text/html,<script>alert(1)</script>",
    "long": "https://evil.example/" + "y" * (1 << 20),
}


class Filter:
    """A filter with a dashboard, and pages for it."""

    def __init__(self, folder: Path, token: Token | None = None, rule: MatchRule | None = None) -> None:
        watching = EmbeddedDashboard(Address("127.0.0.1", 0), token, "filter")
        self.dedup = NearDuplicateFilter.open(folder, rule=rule, observers=watching.observers)
        self._serving = watching.serving(self.dedup, lambda: None)
        self.url = f"http://{self._serving.__enter__().address}"

    def give(self, url: str, title: str, text: str) -> str:
        """A page, and its verdict."""
        return self.dedup.check(Page(url=url, canonical_url=url, id=url, title=title, text=text)).kind.value

    def close(self) -> None:
        """End it."""
        self._serving.__exit__(None, None, None)
        self.dedup.close()


@pytest.fixture
def dedup(tmp_path: Path) -> Iterator[Filter]:
    """An empty one."""
    made = Filter(tmp_path / "state")
    yield made
    made.close()


def test_hostile_titles_and_addresses_are_inert(dedup: Filter, watch: Callable[..., Watched]) -> None:
    """On the page, where they come live, and on the page that tells why; nothing runs, and nothing asks elsewhere."""
    watched = watch(dedup.url, PHONE)
    page = watched.page
    page.goto("/")
    expect(page.locator("#line")).to_have_text("connected")
    texts = {name: article(seed) for seed, name in enumerate(URLS)}
    titles = dict(zip(URLS, (SCRIPT, MARKUP, BIDI, SCRIPT, LONG), strict=True))
    for name, url in URLS.items():
        assert dedup.give(f"https://first.example/{name}", f"{titles[name]} first", texts[name]) == "unique"
        assert dedup.give(url, titles[name], texts[name]) == "duplicate"
    rows = page.locator("#rows tbody tr")
    expect(rows).to_have_count(len(URLS))
    expect(page.locator("#groups tbody tr")).to_have_count(len(URLS))
    expect(page.locator("#rows")).to_contain_text("<script>document.title = 'owned'</script>")
    expect(page.locator("#rows")).to_contain_text("javascript:document.title")
    inert(watched)

    for address in page.locator("#rows [data-title=Why] a").evaluate_all("links => links.map(link => link.href)"):
        page.goto(address)
        expect(page.locator("html")).to_have_attribute("data-ready", "")
        inert(watched)


def inert(watched: Watched) -> None:
    """Nothing of what strangers wrote has become more than text."""
    page = watched.page
    assert page.title() != "owned"
    assert page.locator("#owned, h1 h1, [onerror]").count() == 0
    assert page.evaluate("document.querySelectorAll('script').length") <= 3
    links = page.evaluate("[...document.querySelectorAll('a')].map(link => [link.protocol, link.target, link.rel])")
    assert {protocol for protocol, _, _ in links} <= {"http:", "https:"}
    assert all(rel == "noreferrer noopener" for _, target, rel in links if target)
    text = page.evaluate("document.body.innerText")
    assert not set(text) & set("\u202e\u2066\x1b\x00")
    assert len(text) < 100_000
    assert watched.overflow() == 0


def test_what_guards_hold_is_told(tmp_path: Path, watch: Callable[..., Watched]) -> None:
    """A site that answers every address with one page: how many pages matched and were not believed, and by which."""
    walled = Filter(tmp_path / "state", rule=replace(PROFILES["balanced"], guards=Guards(max_hosts=3)))
    try:
        watched = watch(walled.url)
        watched.page.goto("/")
        expect(watched.page.locator("#line")).to_have_text("connected")
        expect(watched.page.locator("[data-figure=guarded]")).to_have_count(0)
        given = [walled.give(f"https://host{host}.example/", "Please agree", article(1)) for host in range(9)]
        held = given.count("undecided")
        assert held >= 3
        expect(watched.page.locator("[data-figure=guarded]")).to_contain_text(f"hosts {held}.")
        watched.close()
    finally:
        walled.close()


def test_a_correction_changes_what_comes_next(dedup: Filter, watch: Callable[..., Watched]) -> None:
    """A person says "not a duplicate" on the page; the same page delivered again is kept."""
    text = article(1)
    dedup.give("https://a.example/1", "One story", text)
    assert dedup.give("https://b.example/1", "One story", text) == "duplicate"
    watched = watch(dedup.url)
    page = watched.page
    page.goto("/why?url=https://b.example/1")
    page.get_by_role("button", name="Not a duplicate").click()
    expect(page.locator("#said")).to_contain_text("in force")
    assert dedup.give("https://b.example/1", "One story", text) == "unique"
    page.reload()
    expect(page.locator("[data-figure=verdict]")).to_have_text("unique")

    page.locator("#is-duplicate-of").fill("https://a.example/1")
    page.get_by_role("button", name="Is a duplicate of it").click()
    expect(page.locator("#said")).to_contain_text("in force")
    assert dedup.give("https://b.example/1", "One story", text) != "unique"


def test_what_cannot_be_answered_is_said(dedup: Filter, watch: Callable[..., Watched]) -> None:
    """An address that the filter has not seen, in the server's own words."""
    watched = watch(dedup.url)
    watched.page.goto("/why?url=https://nobody.example/")
    expect(watched.page.locator("#trouble")).to_be_visible()
    assert [fault for fault in watched.faults if "404" not in fault] == []
    watched.faults.clear()  # the browser tells of an answer that is an error


def test_a_line_that_is_lost_comes_back(tmp_path: Path, watch: Callable[..., Watched]) -> None:
    """The page says so, and has what came in the meantime from another run of the program."""
    first = Filter(tmp_path / "first")
    first.give("https://a.example/1", "One story", article(1))
    watched = watch(first.url)
    page = watched.page
    page.goto("/")
    expect(page.locator("#line")).to_have_text("connected")
    port = int(first.url.rpartition(":")[2])
    first.close()
    expect(page.locator("#line")).to_have_attribute("data-state", "reconnecting")
    watching = EmbeddedDashboard(Address("127.0.0.1", port), None, "filter")
    with (
        NearDuplicateFilter.open(tmp_path / "second", observers=watching.observers) as second,
        watching.serving(second, lambda: None),
    ):
        for number in range(3):
            url = f"https://b.example/{number}"
            second.check(Page(url=url, canonical_url=url, id=url, title="Another", text=article(number)))
        expect(page.locator("#line")).to_have_attribute("data-state", "connected")
        expect(page.locator("[data-figure=pages]")).to_have_text("3")
        watched.close()
    watched.faults.clear()  # connections that were refused


def test_without_the_token_a_form_asks_for_it(tmp_path: Path, watch: Callable[..., Watched]) -> None:
    """And with it the page opens, its address without the token, in this browser from then on."""
    secret = "correct-horse-battery"
    guarded = Filter(tmp_path / "state", Token(secret))
    try:
        watched = watch(guarded.url)
        page = watched.page
        assert page.goto("/").status == 401
        expect(page.get_by_role("heading")).to_have_text("This dashboard needs its token")
        assert watched.axe() == []
        page.get_by_label("Token").fill(secret)
        page.get_by_role("button").click()
        expect(page.locator("#line")).to_have_text("connected")
        assert page.url == f"{guarded.url}/"
        assert json.loads(page.request.get("/api/stats").text())["summary"]["mode"] == "filter"
        assert [fault for fault in watched.faults if "401" not in fault] == []
        watched.faults.clear()  # the browser tells of the first answer
        watched.close()
    finally:
        guarded.close()
