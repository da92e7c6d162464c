"""Late pages: their work goes on, and downloads wait while there are too many."""

import asyncio

import pytest

from dedup_service.interfaces.scrapy.downloader import LatePages

MAX_PAGES, MAX_BYTES = 2, 100


@pytest.mark.parametrize("sizes", [(1, 1), (MAX_BYTES,)])
def test_downloads_wait_while_late_pages_fill_a_limit(sizes: tuple[int, ...]) -> None:
    """Of pages or of bytes; the first late verdict lets them continue."""

    async def crawl() -> None:
        late, go_on = LatePages(0.001, MAX_PAGES, MAX_BYTES), asyncio.Event()

        async def judge() -> None:
            await go_on.wait()

        for size in sizes:
            await asyncio.wait_for(late.room(), 10)
            assert not await late.in_time(judge(), size)
        download = asyncio.create_task(late.room())
        await asyncio.sleep(0)
        assert (download.done(), late.pending, late.peak_pages) == (False, len(sizes), len(sizes))
        go_on.set()
        await asyncio.wait_for(download, 10)
        await late.finished()
        assert late.pending == 0

    asyncio.run(crawl())


def test_work_of_a_response_that_is_cancelled_is_done_before_the_end() -> None:
    """Scrapy may give a response up; its page is still judged, and counts as late."""

    async def crawl() -> None:
        late, done, go_on = LatePages(60, MAX_PAGES, MAX_BYTES), asyncio.Event(), asyncio.Event()

        async def judge() -> None:
            await go_on.wait()
            done.set()

        response = asyncio.create_task(late.in_time(judge(), 1))
        await asyncio.sleep(0)
        response.cancel()
        with pytest.raises(asyncio.CancelledError):
            await response
        assert late.pending == 1
        go_on.set()
        await late.finished()
        assert done.is_set()

    asyncio.run(crawl())


def test_an_error_in_time_is_raised() -> None:
    """Nothing is swallowed on the way."""

    async def judge() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(LatePages(60, MAX_PAGES, MAX_BYTES).in_time(judge(), 1))
