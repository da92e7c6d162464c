"""`TWINSIEVE_DASHBOARD`: a crawl with a live dashboard."""

import json
import logging
import urllib.request

import pytest

from dedup_service.core.errors import ConfigurationError
from tests.hangs import HANG_S
from tests.interfaces.scrapy.test_downloader import FERRY, FERRY_AGAIN, RunningMiddleware, page


def test_a_crawl_shows_what_it_finds(caplog: pytest.LogCaptureFixture) -> None:
    """It serves verdicts, times and workers, until the spider closes."""
    with caplog.at_level(logging.WARNING):
        running = RunningMiddleware(TWINSIEVE_DASHBOARD="0")
    address = next(record.args for record in caplog.records if "Dashboard" in record.message)
    try:
        running.give(page("1", FERRY))
        running.give(page("2", FERRY_AGAIN))
        with urllib.request.urlopen(f"http://{address[0]}/api/stats?history=none", timeout=HANG_S) as answer:
            values = json.load(answer)
    finally:
        running.close()
    assert values["summary"]["mode"] == "crawl"
    assert values["summary"]["verdicts"]["duplicate"] == 1
    assert values["summary"]["pool"]["processes"] == 1
    assert {(row["step"], row["part"]) for row in values["latency"]} == {
        ("fingerprint", "wait"), ("fingerprint", "prepare"), ("decide", "decide"), ("decide", "commit"),
    }  # fmt: skip
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://{address[0]}/api/stats", timeout=HANG_S)


def test_a_crawl_that_publishes_has_no_verdicts_to_show() -> None:
    """The message says where the verdicts are shown instead."""
    with pytest.raises(ConfigurationError, match="twinsieve serve"):
        RunningMiddleware(TWINSIEVE_DASHBOARD="0", TWINSIEVE_KAFKA_BOOTSTRAP="a:9092")
