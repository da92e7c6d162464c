"""What becomes of items, shown by crawls of spiders that a project might have."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.crawler.running import json_lines
from tests.interfaces.scrapy.crawling import Site, crawl
from tests.interfaces.scrapy.test_downloader import FERRY, FERRY_AGAIN, FLOOD, STORIES

FERRY_TEXT, FLOOD_TEXT, METRO_TEXT = ("\n\n".join(STORIES[n].paragraphs) for n in ("en-ferry", "en-flood", "zh-metro"))
pytestmark = pytest.mark.slow

HTML: Site = {
    path: ("text/html", body) for path, body in (("/ferry", FERRY), ("/flood", FLOOD), ("/again", FERRY_AGAIN))
}

YIELD_PAGE = """
    def parse(self, response):
        yield {"url": response.url, "title": response.css("h1::text").get()}
"""
YIELD_ENTRIES = """
    def parse(self, response):
        yield from response.json()
"""


def api(*entries: dict[str, Any]) -> Site:
    return {"/api": ("application/json", json.dumps(entries).encode())}


def entry(url: str, body: Any, title: str = "A title", **more: Any) -> dict[str, Any]:
    return {"url": url, "title": title, "body": body, **more}


def urls(items: list[dict[str, Any]]) -> list[str]:
    return [item["url"] for item in items]


def test_items_of_an_api_are_judged_by_their_text(tmp_path: Path) -> None:
    """A copy under another address is dropped and the log says of what; addresses may be relative."""
    site = api(
        entry("/a/ferry", FERRY_TEXT, "New ferry"),
        entry("http://b.example/ferry", FERRY_TEXT, "Ferry of the Sound"),
        entry("/a/flood", FLOOD_TEXT, "A flood"),
    )
    crawled = crawl(tmp_path, site, YIELD_ENTRIES, TWINSIEVE_ITEM_TEXT="body")
    assert urls(crawled.feed) == ["/a/ferry", "/a/flood"]
    assert all("twinsieve" not in item for item in crawled.feed)
    [line] = crawled.said("Dropped: ")
    assert "DEBUG: Dropped: http://b.example/ferry, repeats http://site/a/ferry (" in line
    assert (crawled.stats["verdict_count/unique"], crawled.stats["verdict_count/duplicate"]) == (2, 1)
    assert (crawled.stats["page_count"], crawled.stats["item_dropped_count"]) == (3, 1)


def test_items_of_all_types_with_other_names_of_fields(tmp_path: Path) -> None:
    """Dataclasses, attrs and Scrapy's items; one that has a field for its verdict gets it, also before any response."""
    parse = f"""
    @dataclasses.dataclass
    class Plain:
        link: str
        content: str
        twinsieve: dict = None

    @attrs.define
    class Attrs:
        link: str
        content: str

    class Item(scrapy.Item):
        link, content = scrapy.Field(), scrapy.Field()

    async def start(self):
        yield self.Plain("http://a.example/1", {FERRY_TEXT!r})
        yield scrapy.Request("data:,")

    def parse(self, response):
        yield self.Attrs("http://a.example/2", {FERRY_TEXT!r})
        yield self.Item(link="http://a.example/3", content={FERRY_TEXT!r})
        yield self.Plain("http://a.example/4", {FLOOD_TEXT!r})
"""
    names = {"text": "content", "url": "link"}
    crawled = crawl(tmp_path, {}, parse, TWINSIEVE_ITEM_TEXT=names)
    assert [(item["link"], item["twinsieve"]["verdict"]) for item in crawled.feed] == [
        ("http://a.example/1", "unique"),
        ("http://a.example/4", "unique"),
    ]
    assert len(crawled.said(", repeats http://a.example/1 (")) == 2 + 2  # dropped, and as examples


def test_items_that_cannot_be_judged_are_kept_counted_and_named_once(tmp_path: Path) -> None:
    """An item without the field, or without text in it, is nobody's copy; the first of each kind is in the log."""
    site = api(
        {"url": "/1", "title": "no body"},
        {"url": "/2", "title": "no body either"},
        entry("/3", ["a", "list"]),
        {"title": "no address, so that of the response", "body": FERRY_TEXT},
        {"title": "no address, which is taken", "body": FLOOD_TEXT},
        entry("/4", METRO_TEXT),
    )
    crawled = crawl(tmp_path, site, YIELD_ENTRIES, TWINSIEVE_ITEM_TEXT="body")
    assert len(crawled.feed) == 6
    assert (crawled.stats["item_unjudged_count"], crawled.stats["verdict_count/unique"]) == (4, 2)
    warnings = crawled.said("is passed on without a verdict")
    assert [line.rpartition("like it: ")[2].partition(", by which")[0] for line in warnings] == [
        "its field `body` (TWINSIEVE_ITEM_TEXT) is missing",
        "its field `body` (TWINSIEVE_ITEM_TEXT) holds list, not text",
        "its field `url` has no address",
    ]


def test_a_project_that_leaves_the_judge_out_is_told(tmp_path: Path) -> None:
    """Its items pass."""
    without = {"DOWNLOADER_MIDDLEWARES": {"dedup_service.scrapy.NearDuplicateDownloaderMiddleware": None}}
    crawled = crawl(tmp_path, api(entry("/1", FERRY_TEXT)), YIELD_ENTRIES, TWINSIEVE_ITEM_TEXT="body", **without)
    assert (len(crawled.feed), crawled.stats["item_unjudged_count"]) == (1, 1)
    assert crawled.said("the project leaves out NearDuplicateDownloaderMiddleware")


def test_a_request_can_keep_its_page_and_items_from_being_judged(tmp_path: Path) -> None:
    """`request.meta["twinsieve"] = False` is for a page, and for its items where items are judged."""
    parse = f"""
    def parse(self, response):
        if response.url.endswith("/flood"):
            yield response.follow("/again", self.item, meta={{"twinsieve": False}})
        yield from self.item(response)

    def item(self, response):
        yield {{"url": response.url, "body": {FERRY_TEXT!r}, "was": response.meta.get("twinsieve")}}
"""
    for settings in ({}, {"TWINSIEVE_ITEM_TEXT": "body"}):
        crawled = crawl(tmp_path, HTML, parse, paths=["/ferry", "/flood"], **settings)
        assert crawled.feed[-1] == {"url": "http://site/again", "body": FERRY_TEXT, "was": False}
        assert crawled.stats["page_count"] == 2


def test_only_items_of_new_and_updated_pages(tmp_path: Path) -> None:
    """A second crawl on the same state yields what is new or has changed; the log says of the others what they are."""
    old, new = entry("http://a.example/1", FERRY_TEXT), entry("http://a.example/2", FLOOD_TEXT)
    settings = {"TWINSIEVE_STATE": "state", "TWINSIEVE_ITEMS_OF": "unique,updated", "TWINSIEVE_ITEM_TEXT": "body"}
    first = crawl(tmp_path, api(old, new), YIELD_ENTRIES, **settings)
    changed = entry("http://a.example/1", FERRY_TEXT + "\n\nMore is known now.")
    second = crawl(tmp_path, api(changed, new, entry("http://a.example/3", METRO_TEXT)), YIELD_ENTRIES, **settings)
    assert urls(first.feed) == ["http://a.example/1", "http://a.example/2"]
    assert urls(second.feed) == ["http://a.example/1", "http://a.example/3"]
    assert second.said("DEBUG: Dropped: http://a.example/2, unchanged")


@pytest.mark.parametrize("batch", [{}, {"batch_item_count": 1}])
def test_dropped_items_are_in_a_feed_of_their_own(tmp_path: Path, batch: dict[str, int]) -> None:
    """A feed with `DroppedItems` has them, with their verdicts, and no others; other feeds have none of them."""
    dropped = {"format": "jsonlines", "item_filter": "dedup_service.scrapy.DroppedItems", **batch}
    feeds = {"dropped-%(batch_id)d.jsonl": dropped, "feed.jsonl": {"format": "jsonlines"}}
    crawled = crawl(tmp_path, HTML, YIELD_PAGE, FEEDS=feeds)
    [item] = json_lines((tmp_path / "dropped-1.jsonl").read_text("utf-8"))
    assert item["url"].endswith("/again")
    assert item["twinsieve"]["duplicate_of_url"].endswith("/ferry")
    assert urls(crawled.feed) == ["http://site/ferry", "http://site/flood"]


def test_the_end_of_a_crawl_says_who_copies(tmp_path: Path) -> None:
    """Hosts with their numbers, and a few examples with the kept page and the reason."""
    copies = [entry(f"http://b.example/{n}", FERRY_TEXT) for n in range(7)]
    site = api(entry("http://a.example/ferry", FERRY_TEXT), *copies, entry("http://a.example/again", FERRY_TEXT))
    crawled = crawl(tmp_path, site, YIELD_ENTRIES, TWINSIEVE_ITEM_TEXT="body", LOG_LEVEL="INFO")
    assert crawled.said("8 duplicates. Hosts that copy most: b.example from a.example (7), a.example from itself (1)")
    examples = crawled.said("For example: ")
    assert len(examples) == 5
    assert examples[0].endswith("For example: http://b.example/0, repeats http://a.example/ferry (same text)")
