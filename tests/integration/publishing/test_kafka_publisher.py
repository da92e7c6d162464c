"""The item pipeline with a real broker that works, refuses, dies and restarts."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Spider
from scrapy.utils.test import get_crawler

from dedup_service.core.errors import TwinsieveError
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from dedup_service.scrapy import KafkaPublisher
from deploy.kafka import Cluster
from tests.chaos.reading import read_all
from tests.hangs import HANG_S
from tests.integration.conftest import Broker

pytestmark = pytest.mark.slow

TEXT = "the harbour council met on Tuesday " * 60


class Crawl:
    """A publisher on an event loop, with a stand-in for the engine that says whether the crawl is closing."""

    def __init__(self, bootstrap: str, topics: Topics, **settings: Any) -> None:
        names = {"TWINSIEVE_KAFKA_BOOTSTRAP": bootstrap, "TWINSIEVE_KAFKA_PREFIX": topics.prefix}
        self.crawler = get_crawler(Spider, {**names, **settings})
        self.slot = SimpleNamespace(closing=None)
        self.crawler.engine = SimpleNamespace(_slot=self.slot)
        self.crawler.crawling = True
        self.publisher = KafkaPublisher.from_crawler(self.crawler)

    def stat(self, name: str) -> Any:
        return self.crawler.stats.get_value(f"twinsieve/{name}", 0)

    async def until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(HANG_S):
            while not reached():  # noqa: ASYNC110 - counters set no event
                await asyncio.sleep(0.02)

    async def give(self, items: list[Any]) -> list[Any]:
        return await asyncio.gather(*map(self.publisher.process_item, items))


@contextmanager
def crawl(bootstrap: str, topics: Topics, **settings: Any) -> Iterator[tuple[Crawl, asyncio.Runner]]:
    with asyncio.Runner() as runner:

        async def start() -> Crawl:
            crawl = Crawl(bootstrap, topics, **settings)
            await crawl.publisher.open_spider()
            return crawl

        running = runner.run(start())
        try:
            yield running, runner
        finally:
            runner.run(running.publisher.close_spider())


def stories(count: int) -> list[dict[str, Any]]:
    return [{"url": f"https://a.example/{number}?utm_source=x", "text": f"{TEXT} {number}"} for number in range(count)]


def published(bootstrap: str, topics: Topics) -> list[str]:
    records = read_all(bootstrap, [topics.pages])[topics.pages]
    return [json.loads(record.value)["url"] for record in records]


def test_an_acknowledged_page_has_value_key_and_headers(broker: Broker, topics: Topics) -> None:
    """The value is input for `filter`, the key is the canonical URL; items are returned unchanged."""
    with crawl(broker.bootstrap, topics) as (running, runner):
        items = [{"url": "https://a.example/x?utm_source=y", "text": TEXT, "price": 3}, {"title": "no page"}]
        back = runner.run(running.give(items))
        assert (running.stat("published_count"), running.stat("item_passed_count")) == (1, 1)
    assert [id(item) for item in back] == [id(item) for item in items]
    [record] = read_all(broker.bootstrap, [topics.pages])[topics.pages]
    assert (json.loads(record.value), record.key) == (items[0], b"https://a.example/x")
    headers = dict(record.headers)
    assert headers["ce_type"] == b"twinsieve.page.v1"
    assert headers["content-type"] == b"application/json"


def test_a_page_too_large_for_the_topic_delays_no_other(broker: Broker) -> None:
    """It is counted and its item continues; the pages around it are published."""
    topics = Topics("large.")
    create(broker.connection, topics, Layout(partitions=1, max_page_bytes=20_000))
    noise = random.Random(5).randbytes(200_000).hex()
    with crawl(broker.bootstrap, topics) as (running, runner):
        items = [*stories(3), {"url": "https://a.example/large", "text": noise}, *stories(3)]
        assert len(runner.run(running.give(items))) == 7
        assert (running.stat("published_count"), running.stat("unpublished_count/too_large")) == (6, 1)
    assert "https://a.example/large" not in published(broker.bootstrap, topics)


def test_a_missing_topic_is_an_error_at_the_start(broker: Broker) -> None:
    """The message names the command that creates it."""

    async def start() -> None:
        Crawl(broker.bootstrap, Topics("nowhere."))

    with pytest.raises(TwinsieveError, match=r"nowhere\.pages.*twinsieve topics create"):
        asyncio.run(start())


def test_a_broker_that_dies_loses_no_page(own_cluster: Callable[..., Cluster]) -> None:
    """It is killed and started again: every page is there, within the limit, and the count is right."""
    cluster, topics = own_cluster(), Topics()
    create(Connection(cluster.bootstrap), topics, Layout(partitions=2))

    async def scenario(running: Crawl) -> list[Any]:
        giving = asyncio.create_task(running.give(stories(400)))
        await running.until(lambda: running.stat("published_count") >= 100)
        await asyncio.to_thread(cluster.kill, 0)
        await running.until(lambda: running.publisher.publishing._limit.held_bytes > 40_000)
        assert not giving.done()
        assert running.stat("published_count") < 400
        await asyncio.to_thread(cluster.start, 0)
        return await giving

    with crawl(cluster.bootstrap, topics, TWINSIEVE_KAFKA_BUFFER_BYTES=50_000) as (running, runner):
        assert len(runner.run(scenario(running))) == 400
        assert running.stat("published_count") == 400
        assert running.stat("publish_max_bytes") <= 50_000
    urls = published(cluster.bootstrap, topics)
    assert set(urls) == {story["url"] for story in stories(400)}
