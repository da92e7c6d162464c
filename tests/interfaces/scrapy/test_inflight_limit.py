"""The limit on messages and bytes in flight; later messages wait."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.interfaces.scrapy.inflight_limit import InflightLimit


@given(st.lists(st.integers(0, 120), max_size=40), st.integers(1, 5), st.integers(1, 100))
def test_the_limits_hold_and_every_message_has_its_turn(sizes: list[int], messages: int, max_bytes: int) -> None:
    """Only a message larger than all bytes exceeds them, and it goes alone; turns are first in, first out."""
    limit, served = InflightLimit(messages, max_bytes), []

    async def hold(number: int, size: int) -> None:
        await limit.acquire(size)
        served.append(number)
        assert limit.held == 1 or (limit.held <= messages and limit.held_bytes <= max_bytes)
        await asyncio.sleep(0)
        limit.release(size)

    async def hold_all() -> None:
        await asyncio.gather(*(hold(number, size) for number, size in enumerate(sizes)))
        await limit.emptied()

    asyncio.run(hold_all())
    assert served == list(range(len(sizes)))
    assert (limit.held, limit.held_bytes, limit.waiting) == (0, 0, 0)


def test_a_cancelled_wait_takes_no_room() -> None:
    """It is skipped, even if it is cancelled just as its turn comes."""

    async def scenario() -> tuple[int, int]:
        limit = InflightLimit(1, 10)
        await limit.acquire(1)
        first, second = asyncio.create_task(limit.acquire(1)), asyncio.create_task(limit.acquire(1))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        limit.release(1)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        return limit.held, limit.held_bytes

    assert asyncio.run(scenario()) == (0, 0)


def test_a_crawl_continues_once_the_queue_is_short() -> None:
    """The bound is a sixteenth of the messages; closing the limit lets the crawl continue, too."""

    async def run() -> None:
        limit = InflightLimit(32, 1000)
        tasks = [asyncio.create_task(limit.acquire(1)) for _ in range(35)]
        await asyncio.sleep(0)
        crawl = asyncio.create_task(limit.short_queue())
        await asyncio.sleep(0)
        assert (limit.held, limit.waiting, crawl.done()) == (32, 3, False)
        limit.release(1)
        await crawl
        assert limit.waiting == 2
        tasks.append(asyncio.create_task(limit.acquire(1)))
        await asyncio.sleep(0)
        crawl = asyncio.create_task(limit.short_queue())
        await asyncio.sleep(0)
        assert not crawl.done()
        limit.close()
        await crawl
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())
