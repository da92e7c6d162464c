"""The spider middleware: only items go, only those of duplicates, and requests always pass."""

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


def output(original: NearDuplicateSpiderMiddleware, page: HtmlResponse, *results: Any) -> list[Any]:
    return list(original.process_spider_output(page, results))


def test_items_of_a_duplicate_are_dropped_and_its_links_followed() -> None:
    """What a copy links to may be new."""
    link, other = Request("https://example.org/a"), Request("https://example.org/b")
    dedup = middleware()
    assert output(dedup, response("duplicate"), link, {"title": "x"}, Plain("x"), other) == [link, other]
    assert dedup.crawler.stats.get_value("twinsieve/item_dropped_count") == 2


@pytest.mark.parametrize("verdict", ["unique", "unchanged", "updated", "undecided", None])
def test_items_of_every_other_page_pass(verdict: str | None) -> None:
    """When in doubt, keep: also where the filter could not be asked."""
    assert output(middleware(), response(verdict), {"title": "x"}) == [{"title": "x"}]


def test_asynchronous_callbacks_are_treated_alike() -> None:
    """An async callback's items go the same way."""

    async def results() -> AsyncIterator[Any]:
        yield {"title": "x"}
        yield Request("https://example.org/a")

    async def collect() -> list[Any]:
        return [o async for o in middleware().process_spider_output_async(response("duplicate"), results())]

    assert [type(o) for o in asyncio.run(collect())] == [Request]


@pytest.mark.parametrize("item", [{"title": "x"}, WithField("x"), Declared(title="x")])
def test_annotated_items_carry_the_verdict(item: Any) -> None:
    """With TWINSIEVE_ITEMS = annotate a duplicate's item stays and says what it is."""
    [annotated] = output(middleware(TWINSIEVE_ITEMS="annotate"), response("duplicate"), item)
    found = annotated.twinsieve if isinstance(annotated, WithField) else annotated["twinsieve"]
    assert found["verdict"] == "duplicate"


@pytest.mark.parametrize("item", [Plain("x"), Frozen("x"), Undeclared(title="x"), object()])
def test_an_item_without_room_for_the_verdict_passes_as_it_is(item: Any) -> None:
    """It is counted, and never a reason to fail."""
    dedup = middleware(TWINSIEVE_ITEMS="annotate")
    assert output(dedup, response("duplicate"), item) == [item]
    assert dedup.crawler.stats.get_value("twinsieve/item_unannotated_count") == 1
