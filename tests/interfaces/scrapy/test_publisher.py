"""The item pipeline and its spider middleware, without a broker."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse, TextResponse
from scrapy.utils.test import get_crawler

from dedup_service.core.page import Page
from dedup_service.interfaces.scrapy import KafkaPublisher, PageOfItemsMiddleware
from tests.crawler.running import environment
from tests.hangs import HANG_S

URL = "https://a.example/x"


class RecordingPublisher(KafkaPublisher):
    """Records the fields that it is given to publish."""

    def __init__(self) -> None:
        self.publishing = self
        self.published: list[dict[str, Any]] = []

    async def publish(self, fields: dict[str, Any]) -> bool:
        self.published.append(fields)
        return True


def response(url: str = URL, page: Page | None = None) -> HtmlResponse:
    meta = {} if page is None else {"twinsieve_page": page}
    return HtmlResponse(url, body=b"<p>the document", request=Request(url, meta=meta))


def after(page: Any, *outputs: Any, failing: bool = False) -> tuple[list[Any], list[dict[str, Any]]]:
    """What passed and what was published, if a callback on the response `page` yields `outputs`."""
    crawler, publisher = get_crawler(Spider, {"TWINSIEVE_KAFKA_BOOTSTRAP": "a:9092"}), RecordingPublisher()
    crawler.get_item_pipeline = lambda kind: publisher if isinstance(publisher, kind) else None
    middleware = PageOfItemsMiddleware.from_crawler(crawler)

    async def callback() -> AsyncIterator[Any]:
        for output in outputs:
            yield output
        if failing:
            raise ValueError("callback")

    async def collect() -> list[Any]:
        return [output async for output in middleware.process_spider_output(page, callback())]

    if not failing:
        return asyncio.run(collect()), publisher.published
    with pytest.raises(ValueError, match="callback"):
        asyncio.run(collect())
    return [], publisher.published


def test_the_page_of_plain_items_is_published_once() -> None:
    """Two items without text publish their document once; items and links pass unchanged."""
    items = [{"title": "one"}, Request(URL), {"title": "two"}]
    passed, published = after(response(), *items)
    assert passed == items
    assert published == [{"url": URL, "html": "<p>the document"}]


def test_an_extracted_page_is_published_as_text() -> None:
    """With TWINSIEVE_KEEP_PAGE nothing is extracted twice."""
    page = Page(id=URL, url=URL, canonical_url=URL, title="T", text="extracted")
    _, [published] = after(response(page=page), {"title": "one"})
    assert (published["text"], "html" in published) == ("extracted", False)


@pytest.mark.parametrize(
    ("given", "outputs"),
    [
        (response(), [{"url": URL, "text": "t"}, {"title": "beside it"}]),
        (response(), [Request(URL)]),
        (response(), []),
        (TextResponse(URL, body=b"{}", request=Request(URL)), [{"title": "from an API"}]),
    ],
)
def test_nothing_is_published_beside_a_page_or_without_items(given: Any, outputs: list[Any]) -> None:
    """The pipeline publishes items that are pages; links alone, and items of other types, publish nothing."""
    assert after(given, *outputs) == (outputs, [])


def test_a_callback_that_fails_half_way_has_its_page_published() -> None:
    """The items that it yielded went to the feeds; the spider's error is passed on."""
    assert len(after(response(), {"title": "one"}, failing=True)[1]) == 1


def test_without_a_broker_both_raise_not_configured() -> None:
    """A project that names them itself, but no broker, gets neither."""
    for part in (KafkaPublisher, PageOfItemsMiddleware):
        with pytest.raises(NotConfigured, match="TWINSIEVE_KAFKA_BOOTSTRAP"):
            part.from_crawler(get_crawler(Spider, {}))


MISSING = """
import sys
sys.modules["kafka"] = None
import asyncio
from scrapy import Spider
from scrapy.utils.test import get_crawler
from dedup_service.core.errors import ConfigurationError
from dedup_service.scrapy import KafkaPublisher

async def start():
    KafkaPublisher.from_crawler(get_crawler(Spider, {"TWINSIEVE_KAFKA_BOOTSTRAP": "a:9092"}))

try:
    asyncio.run(start())
except ConfigurationError as error:
    print(error)
"""


def test_the_add_on_needs_no_client_library_until_it_publishes() -> None:
    """Without the extra everything can be imported; a crawl that publishes says what to install."""
    done = subprocess.run(
        [sys.executable, "-c", MISSING], env=environment(), capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert "pip install 'twinsieve[scrapy,kafka]'" in done.stdout, done.stderr
