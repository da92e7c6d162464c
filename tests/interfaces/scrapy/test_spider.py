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
    meta = {"twinsieve": {"verdict": verdict, "duplicate_of_url": "https://example.org/first"}} if verdict else {}
    return HtmlResponse("https://example.org/", request=Request("https://example.org/", meta=meta))


def middleware(**settings: Any) -> NearDuplicateSpiderMiddleware:
    return NearDuplicateSpiderMiddleware.from_crawler(get_crawler(Spider, settings))


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


def test_asynchronous_callbacks_are_treated_the_same() -> None:
    """Items of an async callback are dropped, its requests pass."""

    async def results() -> AsyncIterator[Any]:
        yield {"title": "x"}
        yield Request("https://example.org/a")

    async def collect() -> list[Any]:
        return [o async for o in middleware().process_spider_output_async(response("duplicate"), results())]

    assert [type(o) for o in asyncio.run(collect())] == [Request]


@pytest.mark.parametrize("item", [{"title": "x"}, WithField("x"), Declared(title="x")])
def test_annotated_items_carry_the_verdict(item: Any) -> None:
    """With TWINSIEVE_ITEMS = annotate a duplicate's item stays and has the verdict."""
    [annotated] = output(middleware(TWINSIEVE_ITEMS="annotate"), response("duplicate"), item)
    verdict_field = annotated.twinsieve if isinstance(annotated, WithField) else annotated["twinsieve"]
    assert verdict_field["verdict"] == "duplicate"


@pytest.mark.parametrize("item", [Plain("x"), Frozen("x"), Undeclared(title="x"), object()])
def test_an_item_without_a_field_for_the_verdict_passes_unchanged(item: Any) -> None:
    """It is counted, and no error is raised."""
    spider_middleware = middleware(TWINSIEVE_ITEMS="annotate")
    assert output(spider_middleware, response("duplicate"), item) == [item]
    assert spider_middleware.crawler.stats.get_value("twinsieve/item_unannotated_count") == 1
