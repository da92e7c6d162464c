"""Text of crawled pages is shown as plain text: no scripts, no links but http, no control characters.

The filter runs in this process, so that a test decides when pages arrive.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import expect

from dedup_service.core.page import Page
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.rules.rule import MatchRule
from dedup_service.interfaces.http.access_guard import Token
from dedup_service.interfaces.http.dashboard import EmbeddedDashboard
from dedup_service.interfaces.http.server import Address
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from tests.integration.dashboard.browsing import DESK, PHONE, BrowserPage
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


class WatchedFilter:
    """A filter with a dashboard."""

    def __init__(
        self, folder: Path, token: Token | None = None, rule: MatchRule | None = None, bases: Sequence[Path] = ()
    ) -> None:
        dashboard = EmbeddedDashboard(Address("127.0.0.1", 0), token, "filter")
        self.dedup = NearDuplicateFilter.open(folder, rule=rule, observers=dashboard.observers, bases=bases)
        self._serving = dashboard.serving(self.dedup, lambda: None)
        self.url = f"http://{self._serving.__enter__().address}"

    def give(self, url: str, title: str, text: str) -> str:
        """Decide a page and return its verdict."""
        return self.dedup.check(Page(url=url, canonical_url=url, id=url, title=title, text=text)).kind.value

    def close(self) -> None:
        """Close dashboard and filter."""
        self._serving.__exit__(None, None, None)
        self.dedup.close()


@pytest.fixture
def dedup(tmp_path: Path) -> Iterator[WatchedFilter]:
    """An empty filter."""
    opened = WatchedFilter(tmp_path / "state")
    yield opened
    opened.close()


def test_hostile_titles_and_addresses_are_inert(dedup: WatchedFilter, watch: Callable[..., BrowserPage]) -> None:
    """On the main page, on `/why` and on `/group`, nothing runs, and nothing is requested from other servers."""
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
    assert max(page.locator("#groups tbody tr").evaluate_all("rows => rows.map(row => row.clientHeight)")) < 100
    expect(page.locator("#rows")).to_contain_text("<script>document.title = 'owned'</script>")
    expect(page.locator("#rows")).to_contain_text("javascript:document.title")
    assert_inert(watched)

    for address in page.locator("#rows [data-title=Why] a").evaluate_all("links => links.map(link => link.href)"):
        for shown in (address, address.replace("/why?", "/group?")):
            page.goto(shown)
            expect(page.locator("html")).to_have_attribute("data-ready", "")
            assert_inert(watched)


def assert_inert(watched: BrowserPage) -> None:
    """Assert that the text of crawled pages has stayed plain text."""
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


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_a_group_shows_dates_and_shares_of_main_text(
    dedup: WatchedFilter, watch: Callable[..., BrowserPage], size: tuple[int, int]
) -> None:
    """What a page does not say is a dash. On a phone, every page of the group is a card."""
    known = {"date": "2026-11-20", "text_percent": 71}
    for address, title, more in (("https://a.example/" + "路径" * 200, "", known), ("https://b.example/", "社区", {}),
                                 ("https://c.example/", "Story", {"text_percent": 0})):  # fmt: skip
        dedup.dedup.check(Page(url=address, canonical_url=address, id=address, title=title, text=article(1), **more))
    watched = watch(dedup.url, size)
    page = watched.page
    page.goto("/group?sequence=1")
    rows = page.locator("#members").get_by_role("row")
    expect(rows).to_have_count(4)
    heads = rows.first.get_by_role("columnheader").all_inner_texts()
    shown = [dict(zip(heads, row.get_by_role("cell").all_inner_texts(), strict=True)) for row in rows.all()[1:]]
    assert [row["Main text"] for row in shown] == ["71%", "–", "0%"]
    assert [row["Published"] for row in shown] == ["2026-11-20", "–", "–"]
    assert [row["Canonical"] for row in shown] == ["yes", "no", "no"]
    assert page.locator("#members time").evaluate_all("times => times.map(time => time.dateTime)") == ["2026-11-20"]
    narrow = page.locator("#members td").evaluate_all("cells => Math.min(...cells.map(cell => cell.clientWidth))")
    assert size == DESK or narrow > 250
    assert watched.overflow() == 0
    assert watched.axe() == []


def test_a_correction_changes_the_next_verdict(dedup: WatchedFilter, watch: Callable[..., BrowserPage]) -> None:
    """After "Not a duplicate", the same page is kept when it is delivered again."""
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


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_the_score_is_shown_by_quantity(
    tmp_path: Path, watch: Callable[..., BrowserPage], size: tuple[int, int]
) -> None:
    """A row for each of the nine with its points and a bar, in the order of their size; then their sum."""
    row = MatchRow(name="enough points", jaccard=0.1, score=-0.25)
    opened = WatchedFilter(tmp_path / "state", rule=MatchRule(keys=True, verified=(row,)))
    try:
        text = ". ".join(article(seed, 12) for seed in range(20))
        opened.give("https://a.example/1", "One story", text)
        assert opened.give("https://b.example/1", "One story", text.replace("bridge", "viaduct")) == "duplicate"
        watched = watch(opened.url, size)
        page = watched.page
        page.goto("/why?url=https://b.example/1")
        expect(page.locator("[data-figure=score]")).to_contain_text("enough points")
        score = json.loads(page.request.get("/api/why?url=https://b.example/1").text())["match"]["score"]
        rows = page.get_by_role("region", name="Points of each quantity of the score").locator("tbody tr")
        cells = [row.locator("td").all_inner_texts() for row in rows.all()]
        assert [row[0] for row in cells] == [*(each["name"] for each in score["quantities"]), "every pair", "sum"]
        assert cells[-1][2] == f"{score['sum']:+.2f}".replace("-", "−")
        widths = rows.locator("td.bar span").evaluate_all("bars => bars.map(bar => bar.clientWidth)")
        assert len(widths) == 9
        assert widths == sorted(widths, reverse=True)
        against = rows.locator("td.bar span.against")
        expect(against).to_have_count(sum(each["points"] < 0 for each in score["quantities"]))
        assert watched.overflow() == 0
        assert watched.axe() == []
    finally:
        opened.close()


def test_a_lost_connection_is_restored(tmp_path: Path, watch: Callable[..., BrowserPage]) -> None:
    """The page shows the loss, and then the figures of another run of the program."""
    first = WatchedFilter(tmp_path / "first")
    first.give("https://a.example/1", "One story", article(1))
    watched = watch(first.url)
    page = watched.page
    page.goto("/")
    expect(page.locator("#line")).to_have_text("connected")
    port = int(first.url.rpartition(":")[2])
    first.close()
    expect(page.locator("#line")).to_have_attribute("data-state", "reconnecting")
    dashboard = EmbeddedDashboard(Address("127.0.0.1", port), None, "filter")
    with (
        NearDuplicateFilter.open(tmp_path / "second", observers=dashboard.observers) as second,
        dashboard.serving(second, lambda: None),
    ):
        for number in range(3):
            url = f"https://b.example/{number}"
            second.check(Page(url=url, canonical_url=url, id=url, title="Another", text=article(number)))
        expect(page.locator("#line")).to_have_attribute("data-state", "connected")
        expect(page.locator("[data-figure=pages]")).to_have_text("3")
        watched.close()
    watched.faults.clear()  # connections that were refused


def test_without_the_token_a_form_asks_for_it(tmp_path: Path, watch: Callable[..., BrowserPage]) -> None:
    """With the token the page opens, its URL has no token, and the browser is not asked again."""
    secret = "correct-horse-battery"
    guarded = WatchedFilter(tmp_path / "state", Token(secret))
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
        watched.faults.clear()  # the browser logs the first answer
        watched.close()
    finally:
        guarded.close()


def test_a_page_without_a_verdict_is_explained(tmp_path: Path, watch: Callable[..., BrowserPage]) -> None:
    """A page of a base has none here: what is known of it is shown, and that the verdict is not kept."""
    with NearDuplicateFilter.open(tmp_path / "base") as base:
        base.check_text(article(1), "https://a.example/1", title="One story")
    opened = WatchedFilter(tmp_path / "state", bases=[tmp_path / "base"])
    try:
        page = watch(opened.url).page
        page.goto("/why?sequence=1")
        expect(page.locator("#verdict")).to_contain_text("its verdict is no longer kept")
        expect(page.locator("#verdict")).to_contain_text("Rule in force")
        expect(page.locator("#trouble")).to_be_hidden()
    finally:
        opened.close()
