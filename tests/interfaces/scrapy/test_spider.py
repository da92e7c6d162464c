"""The spider middleware drops only items, only those of duplicates; requests always pass."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from scrapy import Field, Item, Request, Spider
from scrapy.http import HtmlResponse
from scrapy.utils.test import get_crawler

from dedup_service.interfaces.scrapy import NearDuplicateSpiderMiddleware


@dataclass
class Plain:
    title: str


@dataclass
class WithField:
    title: str
    twinsieve: dict[str, Any] | None = None


@dataclass(frozen=True)
class Frozen:
    title: str
    twinsieve: dict[str, Any] | None = None


class Declared(Item):
    title = Field()
    twinsieve = Field()


class Undeclared(Item):
    title = Field()


def response(verdict: str | None) -> HtmlResponse:
    url, first, reason = "https://example.org/", "https://example.org/first", "nearly \x1b equal"
    found = {"url": url, "verdict": verdict, "duplicate_of_url": first, "reason": reason}
    return HtmlResponse(url, request=Request(url, meta={"twinsieve": found} if verdict else {}))


def middleware(**settings: Any) -> NearDuplicateSpiderMiddleware:
    crawler = get_crawler(Spider, settings)
    crawler.spider = Spider("spider")
    return NearDuplicateSpiderMiddleware.from_crawler(crawler)


def output(spider_middleware: NearDuplicateSpiderMiddleware, page: HtmlResponse, *results: Any) -> list[Any]:
    return list(spider_middleware.process_spider_output(page, results))


def test_items_of_a_duplicate_are_dropped_and_its_links_followed() -> None:
    """The pages that a copy links to may be new."""
    link, other = Request("https://example.org/a"), Request("https://example.org/b")
    spider_middleware = middleware()
    assert output(spider_middleware, response("duplicate"), link, {"title": "x"}, Plain("x"), other) == [link, other]
    assert spider_middleware.crawler.stats.get_value("twinsieve/item_dropped_count") == 2


@pytest.mark.parametrize("verdict", ["unique", "unchanged", "updated", "undecided", None])
def test_items_of_every_other_page_pass(verdict: str | None) -> None:
    """When in doubt, keep, even if the filter failed and there is no verdict."""
    assert output(middleware(), response(verdict), {"title": "x"}) == [{"title": "x"}]


def test_items_of_a_page_that_cannot_be_judged_pass_whatever_is_named() -> None:
    """Only `-undecided` drops them."""
    named = "unique,updated"
    assert output(middleware(TWINSIEVE_ITEMS_OF=named), response("undecided"), {"title": "x"}) == [{"title": "x"}]
    assert output(middleware(TWINSIEVE_ITEMS_OF=f"{named},-undecided"), response("undecided"), {"title": "x"}) == []


def test_asynchronous_callbacks_are_treated_the_same() -> None:
    """Items of an async callback are dropped, its requests pass."""

    async def results() -> AsyncIterator[Any]:
        yield {"title": "x"}
        yield Request("https://example.org/a")

    async def collect() -> list[Any]:
        return [o async for o in middleware().process_spider_output_async(response("duplicate"), results())]

    assert [type(o) for o in asyncio.run(collect())] == [Request]


@pytest.mark.parametrize("verdict", ["unique", "duplicate"])
@pytest.mark.parametrize("item", [{"title": "x", "twinsieve": None}, WithField("x"), Declared(title="x")])
def test_an_item_with_a_field_for_the_verdict_gets_it(item: Any, verdict: str) -> None:
    """The field alone asks for it."""
    [annotated] = output(middleware(TWINSIEVE_ITEMS_OF="unique, duplicate"), response(verdict), item)
    verdict_field = annotated.twinsieve if isinstance(annotated, WithField) else annotated["twinsieve"]
    assert verdict_field["verdict"] == verdict


@pytest.mark.parametrize("item", [{"title": "x"}, Plain("x"), Undeclared(title="x"), object()])
def test_an_item_without_a_field_for_the_verdict_passes_unchanged(item: Any) -> None:
    """Nothing is put into it, and nothing is counted."""
    spider_middleware, before = middleware(TWINSIEVE_ITEMS_OF=["duplicate"]), repr(item)
    [passed] = output(spider_middleware, response("duplicate"), item)
    assert (passed, repr(passed)) == (item, before)
    assert spider_middleware.crawler.stats.get_value("twinsieve/item_unannotated_count") is None


def test_an_item_that_does_not_take_its_verdict_passes_and_is_counted() -> None:
    """It has the field, but is frozen."""
    spider_middleware = middleware()
    assert output(spider_middleware, response("unique"), Frozen("x")) == [Frozen("x")]
    assert spider_middleware.crawler.stats.get_value("twinsieve/item_unannotated_count") == 1


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("duplicate", "Dropped: https://example.org/, repeats https://example.org/first (nearly ␛ equal)"),
        ("undecided", "Dropped: https://example.org/, undecided (nearly ␛ equal)"),
    ],
)
def test_a_dropped_item_has_a_line_at_debug(verdict: str, said: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is the line that Scrapy's log formatter makes, with the reason, safe to show."""
    caplog.set_level("DEBUG")
    assert output(middleware(TWINSIEVE_ITEMS_OF="unique,-undecided"), response(verdict), Plain("x")) == []
    [record] = [record for record in caplog.records if record.getMessage().startswith("Dropped")]
    assert (record.levelname, *record.getMessage().splitlines()) == ("DEBUG", said, "Plain(title='x')")


def test_the_items_of_a_skipped_page_pass() -> None:
    """The spider has said that it wants no verdict there."""
    skipped = HtmlResponse("https://example.org/", request=Request("https://example.org/", meta={"twinsieve": False}))
    assert output(middleware(), skipped, {"title": "x"}) == [{"title": "x"}]
