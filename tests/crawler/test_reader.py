"""The worker process that reads pages for the spider."""

import asyncio
import logging

import pytest
from scrapy.http import HtmlResponse

from twinsieve_crawler.reader import Reader
from twinsieve_crawler.reading import Reading

HOME = "https://example.org/"


def test_a_page_that_takes_too_long_costs_only_its_own_links(caplog: pytest.LogCaptureFixture) -> None:
    """Pages that wait behind it are read, and the log names it."""
    slow = HtmlResponse(f"{HOME}slow", body=b"<a href='https://example.com/'>a</a>" * 300_000)
    quick = HtmlResponse(f"{HOME}quick", body=b"<a href='/b'>b</a>")
    reader = Reader(("example.org",), timeout_s=0.3)

    async def read() -> list[Reading]:
        pages = (reader.read(response, whole_text=False) for response in (slow, quick))
        return await asyncio.gather(*pages)

    try:
        with caplog.at_level(logging.WARNING):
            readings = asyncio.run(read())
    finally:
        reader.close()
    assert [reading.links for reading in readings] == [(), (f"{HOME}b",)]
    assert f"{HOME}slow>: not all links are followed" in caplog.text
