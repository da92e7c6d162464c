"""The downloader middleware around single responses, with real workers and a real state."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.test import get_crawler

from crawler.demo.articles import load_articles
from crawler.demo.templates import article_page
from dedup_service.core.guards import Guards
from dedup_service.core.profiles import rule_for, written
from dedup_service.faces.scrapy import NearDuplicateDownloaderMiddleware, page_judged
from dedup_service.runtime.state_errors import StateInUseError

STORIES = load_articles()
FERRY = article_page("courier", STORIES["en-ferry"], ())
FERRY_AGAIN = article_page("wire", STORIES["en-ferry"], ())
FLOOD = article_page("courier", STORIES["en-flood"], ())


class Engine:
    """Stands for Scrapy's engine: notes why it was asked to close."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    async def close_spider_async(self, *, reason: str) -> None:
        self.reasons.append(reason)


class Sieve:
    """A middleware in a running loop of its own."""

    def __init__(self, **settings: Any) -> None:
        self.crawler = get_crawler(Spider, {"NEARDUP_PROCESSES": 1, **settings})
        self.crawler.engine = Engine()
        self.judged: list[dict[str, Any]] = []
        self.crawler.signals.connect(self.note, signal=page_judged)
        self.runner = asyncio.Runner()
        try:
            self.middleware = self.runner.run(self._made())
        except BaseException:
            self.runner.close()
            raise

    async def _made(self) -> NearDuplicateDownloaderMiddleware:
        return NearDuplicateDownloaderMiddleware.from_crawler(self.crawler)

    def note(self, verdict: dict[str, Any]) -> None:
        self.judged.append(verdict)

    def give(self, response: Response, request: Request | None = None) -> Response:
        response.request = request or Request(response.url)
        return self.runner.run(self.middleware.process_response(response.request, response))

    def stat(self, name: str) -> Any:
        return self.crawler.stats.get_value(f"neardup/{name}")

    def close(self) -> None:
        self.runner.run(self.middleware.spider_closed())
        self.runner.close()


def page(path: str, body: bytes) -> HtmlResponse:
    return HtmlResponse(f"https://example.org/{path}", body=body, headers={"Content-Type": "text/html"})


@pytest.fixture(scope="module")
def sieve() -> Iterator[Sieve]:
    made = Sieve(NEARDUP_KEEP_PAGE=True)
    yield made
    made.close()


def test_a_copy_is_flagged_with_the_page_that_it_repeats(sieve: Sieve) -> None:
    """The verdict is in request.meta, on the response, in the stats and in the signal; the response goes on."""
    first, copy = page("ferry", FERRY), page("again", FERRY_AGAIN)
    assert sieve.give(first) is first
    assert sieve.give(copy) is copy
    verdict = copy.meta["neardup"]
    assert (verdict["verdict"], verdict["duplicate_of_url"]) == ("duplicate", "https://example.org/ferry")
    assert first.flags == ["neardup-unique"]
    assert copy.flags == ["neardup-duplicate"]
    assert [v["verdict"] for v in sieve.judged] == ["unique", "duplicate"]
    assert (sieve.stat("page_count"), sieve.stat("verdict_count/duplicate")) == (2, 1)
    assert copy.meta["neardup_page"].title == STORIES["en-ferry"].title


def test_guards_are_counted_by_name(tmp_path: Path) -> None:
    """A copy that is not believed is passed on also where copies are dropped."""
    profile = tmp_path / "guarded.toml"
    profile.write_text(written(replace(rule_for(), guards=Guards(most_pages=1))))
    sieve = Sieve(NEARDUP_PROFILE=str(profile), NEARDUP_ACTION="drop")
    sieve.give(page("ferry", FERRY))
    with pytest.raises(IgnoreRequest):
        sieve.give(page("copy", FERRY_AGAIN))
    assert sieve.give(page("another", FERRY_AGAIN)).flags == ["neardup-undecided"]
    assert (sieve.stat("guard_count/pages"), sieve.stat("verdict_count/undecided")) == (1, 1)
    sieve.close()


@pytest.mark.parametrize(
    ("response", "callback"),
    [
        (page("robots.txt", FLOOD), NO_CALLBACK),
        (TextResponse("https://example.org/data.json", body=b"{}"), None),
        (Response("https://example.org/image.png", body=b"\x89PNG"), None),
        (HtmlResponse("https://example.org/missing", status=404, body=FLOOD), None),
    ],
)
def test_what_is_no_page_passes_untouched(sieve: Sieve, response: Response, callback: Any) -> None:
    """Robots.txt and media requests, other types and other statuses get no verdict and no flag."""
    before = sieve.stat("page_count")
    assert sieve.give(response, Request(response.url, callback=callback)) is response
    assert (response.flags, "neardup" in response.meta, sieve.stat("page_count")) == ([], False, before)


def test_a_verdict_does_not_travel_with_copied_meta(sieve: Sieve) -> None:
    """A spider that passes `meta=response.meta` on does not pass the old page's verdict on."""
    request = Request("https://example.org/x.json", meta={"neardup": {"verdict": "duplicate"}, "neardup_page": "old"})
    response = sieve.give(TextResponse(request.url, body=b"{}"), request)
    assert not {"neardup", "neardup_page"} & set(response.meta)


def test_an_address_that_is_none_of_the_web_passes_and_is_counted(sieve: Sieve) -> None:
    """A page read from a file has no canonical URL: it is kept, without a verdict."""
    response = HtmlResponse("file:///tmp/page.html", body=FLOOD)
    assert sieve.give(response) is response
    assert sieve.stat("error_count/page") == 1


def test_an_empty_page_is_undecided_and_kept(sieve: Sieve) -> None:
    """Nothing to judge is no reason to drop."""
    assert sieve.give(page("empty", b"")).meta["neardup"]["verdict"] == "undecided"


def test_drop_takes_the_response_of_a_duplicate_away() -> None:
    """IgnoreRequest names the kept page; other pages pass."""
    sieve = Sieve(NEARDUP_ACTION="drop")
    try:
        sieve.give(page("ferry", FERRY))
        with pytest.raises(IgnoreRequest, match=r"https://example\.org/ferry"):
            sieve.give(page("again", FERRY_AGAIN))
        assert sieve.stat("dropped_count") == 1
        assert len(sieve.judged) == 2
    finally:
        sieve.close()


def test_pass_leaves_the_response_as_it_came() -> None:
    """The verdict is known all the same, and no flag is set."""
    sieve = Sieve(NEARDUP_ACTION="pass")
    try:
        sieve.give(page("ferry", FERRY))
        copy = sieve.give(page("again", FERRY_AGAIN))
        assert (copy.flags, copy.meta["neardup"]["verdict"]) == ([], "duplicate")
    finally:
        sieve.close()


def test_a_state_that_fails_keeps_the_page_and_closes_the_crawl(tmp_path: Path) -> None:
    """Pages that cannot be remembered pass; a crawl that would keep every copy does not go on."""
    sieve = Sieve(NEARDUP_STATE=str(tmp_path / "state"))
    try:
        sieve.middleware._filter.close()
        for path in ("ferry", "again"):
            assert sieve.give(page(path, FERRY)).flags == []
        assert sieve.stat("error_count/state") == 2
        assert sieve.crawler.engine.reasons == ["neardup_state_failed"]
    finally:
        sieve.close()


def test_a_state_in_use_keeps_the_crawl_from_starting(tmp_path: Path) -> None:
    """A second crawl on the same state fails at once, and does not run unfiltered."""
    sieve = Sieve(NEARDUP_STATE=str(tmp_path / "state"))
    try:
        with pytest.raises(StateInUseError, match="state"):
            Sieve(NEARDUP_STATE=str(tmp_path / "state"))
    finally:
        sieve.close()


def test_a_crawl_that_publishes_extracts_and_judges_nothing() -> None:
    """The page is left for the spider; there is no verdict, no flag and no state."""
    sieve = Sieve(NEARDUP_KAFKA_BOOTSTRAP="a:9092", NEARDUP_KEEP_PAGE=True)
    try:
        response = sieve.give(page("ferry", FERRY))
        assert response.meta["neardup_page"].title == STORIES["en-ferry"].title
        assert ("neardup" in response.meta, response.flags, sieve.judged) == (False, [], [])
        assert sieve.stat("page_count") == 1
        assert "neardup_page" not in sieve.give(page("empty", b"")).meta
    finally:
        sieve.close()


def test_a_crawl_that_publishes_documents_has_no_workers() -> None:
    """Where no spider asks for the extracted page, the service extracts, and this process does nothing."""
    sieve = Sieve(NEARDUP_KAFKA_BOOTSTRAP="a:9092")
    try:
        response = page("ferry", FERRY)
        assert sieve.give(response) is response
        assert ("neardup_page" in response.meta, sieve.stat("page_count")) == (False, None)
        assert sieve.middleware._workers is None
    finally:
        sieve.close()
