"""The downloader middleware on single responses, with real workers and a real state."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.test import get_crawler

from dedup_service.core.rules.keep import Keep
from dedup_service.interfaces.scrapy import NearDuplicateDownloaderMiddleware, page_judged
from dedup_service.interfaces.scrapy.page_values import page_of_item
from dedup_service.interfaces.scrapy.settings import ItemFields
from dedup_service.runtime.embedded.database import StateInUseError
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.freed_memory import return_freed_memory
from dedup_service.runtime.memory_limit import process_memory
from twinsieve_crawler.demo.articles import load_articles
from twinsieve_crawler.demo.templates import article_page

STORIES = load_articles()
FERRY = article_page("courier", STORIES["en-ferry"], ())
FERRY_AGAIN = article_page("wire", STORIES["en-ferry"], ())
FLOOD = article_page("courier", STORIES["en-flood"], ())


class Engine:
    """A stand-in for Scrapy's engine that records why it was asked to close."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    async def close_spider_async(self, *, reason: str) -> None:
        self.reasons.append(reason)


class RunningMiddleware:
    """A middleware on its own event loop."""

    def __init__(self, **settings: Any) -> None:
        self.crawler = get_crawler(Spider, {"TWINSIEVE_PROCESSES": 1, **settings})
        self.crawler.engine = Engine()
        self.decided: list[dict[str, Any]] = []
        self.items: list[Any] = []
        self.late: list[bool] = []
        self.crawler.signals.connect(self.record, signal=page_judged)
        self.runner = asyncio.Runner()
        try:
            self.middleware = self.runner.run(self._from_crawler())
        except BaseException:
            self.runner.close()
            raise

    async def _from_crawler(self) -> NearDuplicateDownloaderMiddleware:
        return NearDuplicateDownloaderMiddleware.from_crawler(self.crawler)

    def record(self, verdict: dict[str, Any], item: Any, late: bool) -> None:
        self.decided.append(verdict)
        self.items.append(item)
        self.late.append(late)

    def give(self, response: Response, request: Request | None = None) -> Response:
        response.request = request or Request(response.url)
        return self.runner.run(self.middleware.process_response(response.request, response))

    def judge(self, item: dict[str, Any], response: Response | None = None) -> dict[str, Any] | None:
        page = page_of_item(item, ItemFields("body"), response, iter(()))
        return self.runner.run(self.middleware.judge_item(item, page, response))

    @contextmanager
    def busy_state(self) -> Iterator[None]:
        """Let no verdict be given inside, as if the disk were slow."""
        with self.middleware._filter.dedup._turn:
            yield

    def judge_late_pages(self) -> None:
        self.runner.run(self.middleware._late.finished())

    def stat(self, name: str) -> Any:
        return self.crawler.stats.get_value(f"twinsieve/{name}")

    def close(self) -> None:
        self.runner.run(self.middleware.spider_closed())
        self.runner.close()


def page(path: str, body: bytes) -> HtmlResponse:
    return HtmlResponse(f"https://example.org/{path}", body=body, headers={"Content-Type": "text/html"})


@pytest.fixture(scope="module")
def running() -> Iterator[RunningMiddleware]:
    middleware = RunningMiddleware(TWINSIEVE_KEEP_PAGE=True)
    yield middleware
    middleware.close()


def test_a_copy_is_flagged_and_names_the_page_that_it_repeats(running: RunningMiddleware) -> None:
    """The verdict is in request.meta, on the response, in the stats and in the signal; the response passes."""
    first, copy = page("ferry", FERRY), page("again", FERRY_AGAIN)
    assert running.give(first) is first
    assert running.give(copy) is copy
    verdict = copy.meta["twinsieve"]
    assert (verdict["verdict"], verdict["duplicate_of_url"]) == ("duplicate", "https://example.org/ferry")
    assert first.flags == ["twinsieve-unique"]
    assert copy.flags == ["twinsieve-duplicate"]
    assert [v["verdict"] for v in running.decided] == ["unique", "duplicate"]
    assert (running.stat("page_count"), running.stat("verdict_count/duplicate")) == (2, 1)
    assert copy.meta["twinsieve_page"].title == STORIES["en-ferry"].title


@pytest.mark.parametrize(
    ("response", "callback"),
    [
        (page("robots.txt", FLOOD), NO_CALLBACK),
        (TextResponse("https://example.org/data.json", body=b"{}"), None),
        (Response("https://example.org/image.png", body=b"\x89PNG"), None),
        (HtmlResponse("https://example.org/missing", status=404, body=FLOOD), None),
    ],
)
def test_a_response_that_is_no_page_passes_unchanged(
    running: RunningMiddleware, response: Response, callback: Any
) -> None:
    """Robots.txt and media requests, other types and other statuses get no verdict and no flag."""
    before = running.stat("page_count")
    assert running.give(response, Request(response.url, callback=callback)) is response
    assert (response.flags, "twinsieve" in response.meta, running.stat("page_count")) == ([], False, before)


def test_a_verdict_does_not_travel_with_copied_meta(running: RunningMiddleware) -> None:
    """A spider that passes `meta=response.meta` on does not pass the old page's verdict on."""
    request = Request(
        "https://example.org/x.json", meta={"twinsieve": {"verdict": "duplicate"}, "twinsieve_page": "old"}
    )
    response = running.give(TextResponse(request.url, body=b"{}"), request)
    assert not {"twinsieve", "twinsieve_page"} & set(response.meta)


def test_a_page_without_a_web_address_passes_and_is_counted(running: RunningMiddleware) -> None:
    """A page read from a file has no canonical URL, so it is kept without a verdict."""
    response = HtmlResponse("file:///tmp/page.html", body=FLOOD)
    assert running.give(response) is response
    assert running.stat("error_count/page") == 1


def test_a_page_that_its_spider_skips_passes_unchanged(running: RunningMiddleware) -> None:
    """`request.meta["twinsieve"] = False` is no old verdict: it stays, and the page is neither judged nor extracted."""
    before = running.stat("page_count")
    request = Request("https://example.org/skipped", meta={"twinsieve": False})
    response = running.give(page("skipped", FERRY), request)
    assert (response.meta["twinsieve"], "twinsieve_page" in response.meta) == (False, False)
    assert (response.flags, running.stat("page_count")) == ([], before)


def test_where_items_are_judged_a_page_is_only_extracted() -> None:
    """The item has the verdict of its address and text; its response has none, and no copies of it."""
    running = RunningMiddleware(TWINSIEVE_ITEM_TEXT="body", TWINSIEVE_KEEP_PAGE=True)
    try:
        response = running.give(page("ferry", FERRY))
        text = response.meta["twinsieve_page"].text
        assert ("twinsieve" in response.meta, running.decided) == (False, [])
        assert running.judge({"url": "https://example.org/1", "body": text}, response)["verdict"] == "unique"
        assert running.judge({"url": "https://example.org/2", "body": text}, response)["verdict"] == "duplicate"
        assert [item["url"] for item in running.items] == [verdict["url"] for verdict in running.decided]
    finally:
        running.close()


def test_an_item_passes_before_a_late_verdict_too() -> None:
    """It is counted, and its verdict is given all the same."""
    running = RunningMiddleware(TWINSIEVE_ITEM_TEXT="body", TWINSIEVE_DEADLINE_S=0.05)
    try:
        with running.busy_state():
            assert running.judge({"url": "https://example.org/1", "body": "A short text."}) is None
        running.judge_late_pages()
        assert (running.stat("late_count"), len(running.decided), running.late) == (1, 1, [True])
    finally:
        running.close()


def test_drop_removes_the_response_of_a_duplicate() -> None:
    """IgnoreRequest names the kept page; other pages pass."""
    running = RunningMiddleware(TWINSIEVE_ACTION="drop")
    try:
        running.give(page("ferry", FERRY))
        with pytest.raises(IgnoreRequest, match=r"https://example\.org/ferry"):
            running.give(page("again", FERRY_AGAIN))
        assert running.stat("dropped_count") == 1
        assert len(running.decided) == 2
    finally:
        running.close()


def test_a_state_that_fails_keeps_the_page_and_closes_the_crawl(tmp_path: Path) -> None:
    """The pages pass, and the crawl is closed because it would keep every copy."""
    running = RunningMiddleware(TWINSIEVE_STATE=str(tmp_path / "state"))
    try:
        running.middleware._filter.dedup.close()
        for path in ("ferry", "again"):
            assert running.give(page(path, FERRY)).flags == []
        assert running.stat("error_count/state") == 2
        assert running.crawler.engine.reasons == ["twinsieve_state_failed"]
    finally:
        running.close()


def test_a_crawl_that_reaches_its_limit_on_memory_is_closed(tmp_path: Path) -> None:
    """The page passes, and the reason is another than that of a full disk."""
    return_freed_memory()
    limit = process_memory() + (64 << 20)
    running = RunningMiddleware(TWINSIEVE_STATE=str(tmp_path / "state"), TWINSIEVE_MAX_MEMORY=limit)
    taken = b"x" * (256 << 20)
    try:
        assert taken
        assert running.give(page("ferry", FERRY)).flags == []
        assert running.stat("error_count/state") == 1
        assert running.crawler.engine.reasons == ["twinsieve_memory_limit"]
    finally:
        running.close()


def test_bounds_that_a_state_keeps_are_said_at_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """They were given to an earlier crawl, and this one does not name any."""
    NearDuplicateFilter.open(tmp_path / "state", keep=Keep.parse("90 pages")).close()
    caplog.set_level("INFO")
    RunningMiddleware(TWINSIEVE_STATE=str(tmp_path / "state")).close()
    assert "The state keeps 90 pages, as it was told before: TWINSIEVE_KEEP changes it" in caplog.messages


def test_a_state_in_use_keeps_the_crawl_from_starting(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A crawl on a state that is not its own fails at once instead of running unfiltered, and a line says why."""
    with NearDuplicateFilter.open(tmp_path / "state"), pytest.raises(StateInUseError, match="which is this one"):
        RunningMiddleware(TWINSIEVE_STATE=str(tmp_path / "state"))
    assert caplog.messages[-1].startswith("The crawl does not start: ")


def test_a_crawl_that_publishes_extracts_and_judges_nothing() -> None:
    """The page is extracted for the spider; there is no verdict, no flag and no state."""
    running = RunningMiddleware(TWINSIEVE_KAFKA_BOOTSTRAP="a:9092", TWINSIEVE_KEEP_PAGE=True)
    try:
        response = running.give(page("ferry", FERRY))
        assert response.meta["twinsieve_page"].title == STORIES["en-ferry"].title
        assert ("twinsieve" in response.meta, response.flags, running.decided) == (False, [], [])
        assert running.stat("page_count") == 1
        assert "twinsieve_page" not in running.give(page("empty", b"")).meta
    finally:
        running.close()


def test_a_crawl_that_publishes_documents_has_no_workers() -> None:
    """Unless the extracted page is wanted here, the service extracts and this process does no work."""
    running = RunningMiddleware(TWINSIEVE_KAFKA_BOOTSTRAP="a:9092")
    try:
        response = page("ferry", FERRY)
        assert running.give(response) is response
        assert ("twinsieve_page" in response.meta, running.stat("page_count")) == (False, None)
        assert running.middleware._workers is None
    finally:
        running.close()


def test_a_late_verdict_passes_the_page_and_is_durable_all_the_same(tmp_path: Path) -> None:
    """The page is flagged and counted; its verdict changes nothing of it, and the next copy finds it in the state."""
    running = RunningMiddleware(
        TWINSIEVE_STATE=str(tmp_path / "state"), TWINSIEVE_DEADLINE_S=0.05, TWINSIEVE_ACTION="drop"
    )
    first, copy = page("ferry", FERRY), page("again", FERRY_AGAIN)
    with running.busy_state():
        assert running.give(first) is first
        assert running.give(copy) is copy  # a duplicate, but nobody knows yet
    assert running.decided == []
    running.close()
    assert (running.stat("late_count"), running.stat("late_max_pages")) == (2, 2)
    assert (running.stat("late_verdict_count/unique"), running.stat("verdict_count/unique")) == (1, 1)
    assert (running.stat("late_verdict_count/duplicate"), running.stat("verdict_count/duplicate")) == (1, 1)
    assert (running.late, running.stat("dropped_count")) == ([True, True], None)
    for response in (first, copy):
        assert (response.meta["twinsieve_late"], response.flags) == (True, ["twinsieve-late"])
        assert "twinsieve" not in response.meta
    with NearDuplicateFilter.open(tmp_path / "state") as dedup:
        assert dedup.check_html(FERRY, "https://example.org/third").duplicate_of_url == "https://example.org/ferry"


def test_an_error_of_a_late_verdict_is_logged_and_closes_the_crawl(tmp_path: Path) -> None:
    """The page has passed; a state that cannot be written is a reason to close the crawl whenever it is found."""
    running = RunningMiddleware(TWINSIEVE_STATE=str(tmp_path / "state"), TWINSIEVE_DEADLINE_S=0.05)
    try:
        with running.busy_state():
            running.give(page("ferry", FERRY))
            running.middleware._filter.dedup._state.close()
        running.judge_late_pages()
        assert (running.stat("late_count"), running.stat("error_count/state"), running.decided) == (1, 1, [])
        assert running.crawler.engine.reasons == ["twinsieve_state_failed"]
    finally:
        running.close()
