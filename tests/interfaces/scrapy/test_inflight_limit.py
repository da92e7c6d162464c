"""Room for so many messages and bytes; whoever comes later waits."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.interfaces.scrapy.inflight_limit import InflightLimit, NoRoomError


@given(st.lists(st.integers(0, 120), max_size=40), st.integers(1, 5), st.integers(1, 100))
def test_the_bounds_hold_and_everybody_has_a_turn(sizes: list[int], messages: int, size_bytes: int) -> None:
    """Only a message larger than all bytes exceeds them, and it goes alone; turns come in the order of coming."""
    places, served = InflightLimit(messages, size_bytes), []

    async def hold(number: int, size: int) -> None:
        await places.take(size)
        served.append(number)
        assert places.held == 1 or (places.held <= messages and places.held_bytes <= size_bytes)
        await asyncio.sleep(0)
        places.give_back(size)

    async def all_of_them() -> None:
        await asyncio.gather(*(hold(number, size) for number, size in enumerate(sizes)))
        await places.emptied()

    asyncio.run(all_of_them())
    assert served == list(range(len(sizes)))
    assert (places.held, places.held_bytes, places.waiting) == (0, 0, 0)


def test_a_large_message_is_not_overtaken() -> None:
    """Small ones that would fit wait behind it, or it might wait for ever."""

    async def scenario() -> list[str]:
        places, order = InflightLimit(10, 100), []

        async def go(name: str, size: int) -> None:
            await places.take(size)
            order.append(name)

        await places.take(50)
        tasks = [asyncio.create_task(go("large", 100)), asyncio.create_task(go("small", 1))]
        await asyncio.sleep(0)
        assert (order, places.waiting) == ([], 2)
        places.give_back(50)
        await tasks[0]
        places.give_back(100)
        await tasks[1]
        return order

    assert asyncio.run(scenario()) == ["large", "small"]


def test_who_gives_up_waiting_takes_no_place() -> None:
    """A cancelled wait is passed over, also when it is cancelled in the moment of its turn."""

    async def scenario() -> tuple[int, int]:
        places = InflightLimit(1, 10)
        await places.take(1)
        first, second = asyncio.create_task(places.take(1)), asyncio.create_task(places.take(1))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        places.give_back(1)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        return places.held, places.held_bytes

    assert asyncio.run(scenario()) == (0, 0)


def test_after_the_end_nobody_waits() -> None:
    """Whoever waits, and whoever comes, is told."""

    async def scenario() -> None:
        places = InflightLimit(1, 10)
        await places.take(1)
        waiting = asyncio.create_task(places.take(1))
        await asyncio.sleep(0)
        places.close()
        for late in (waiting, places.take(1)):
            with pytest.raises(NoRoomError):
                await late
        places.give_back(1)
        await places.emptied()

    asyncio.run(scenario())


def test_a_crawl_goes_on_once_few_wait() -> None:
    """While one of sixteen waits nothing more should come; the end lets everybody go on, too."""

    async def run() -> None:
        places = InflightLimit(32, 1000)
        tasks = [asyncio.create_task(places.take(1)) for _ in range(35)]
        await asyncio.sleep(0)
        crawl = asyncio.create_task(places.few_waiting())
        await asyncio.sleep(0)
        assert (places.held, places.waiting, crawl.done()) == (32, 3, False)
        places.give_back(1)
        await crawl
        assert places.waiting == 2
        tasks.append(asyncio.create_task(places.take(1)))
        await asyncio.sleep(0)
        crawl = asyncio.create_task(places.few_waiting())
        await asyncio.sleep(0)
        assert not crawl.done()
        places.close()
        await crawl
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())
