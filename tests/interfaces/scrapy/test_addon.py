"""One line in ADDONS switches everything on, and a project's own settings are respected."""

import subprocess
import sys
from pathlib import Path

import pytest
from scrapy.exceptions import NotConfigured
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from dedup_service.core.errors import ConfigurationError
from dedup_service.interfaces.scrapy import (
    KafkaPublisher,
    NearDuplicateDownloaderMiddleware,
    NearDuplicateSpiderMiddleware,
    PageOfItemsMiddleware,
)
from tests.crawler.running import environment
from tests.hangs import HANG_S

SPIDER = """
import scrapy


class Spider(scrapy.Spider):
    name = "spider"
    start_urls = ["data:,"]
    custom_settings = {"ADDONS": {"dedup_service.scrapy.NearDuplicateAddon": 500}}
"""


def switched_on(**values: object) -> Settings:
    settings = Settings(values)
    load_object("dedup_service.scrapy.NearDuplicateAddon")().update_settings(settings)
    return settings


def test_an_unclear_switch_names_its_setting() -> None:
    """Scrapy's own error does not say which setting is neither true nor false."""
    with pytest.raises(ConfigurationError, match="TWINSIEVE_ENABLED must be True or False, got 'maybe'"):
        switched_on(TWINSIEVE_ENABLED="maybe")


def test_both_middlewares_are_added_below_retries_and_redirects() -> None:
    """At 545 a page arrives complete, once, and only when Scrapy has accepted the response."""
    settings = switched_on()
    downloader = settings.getdict("DOWNLOADER_MIDDLEWARES_BASE")
    order = settings["DOWNLOADER_MIDDLEWARES"][NearDuplicateDownloaderMiddleware]
    assert order < min(value for name, value in downloader.items() if "retry" in name or "redirect" in name)
    assert settings["SPIDER_MIDDLEWARES"][NearDuplicateSpiderMiddleware] == 545


def test_a_project_may_choose_the_order_itself() -> None:
    """A middleware that a project names keeps the project's order."""
    name = "dedup_service.scrapy.NearDuplicateDownloaderMiddleware"
    settings = switched_on(DOWNLOADER_MIDDLEWARES={name: 100})
    assert settings["DOWNLOADER_MIDDLEWARES"].copy_to_dict() == {name: 100}


def test_a_project_may_switch_it_off() -> None:
    """TWINSIEVE_ENABLED = False leaves the project unchanged."""
    with pytest.raises(NotConfigured):
        switched_on(TWINSIEVE_ENABLED=False)


def test_with_a_broker_pages_are_published_after_all_other_pipelines() -> None:
    """Items are published as the project's pipelines leave them; no spider middleware looks for verdicts."""
    settings = switched_on(
        TWINSIEVE_KAFKA_BOOTSTRAP="a:9092", ITEM_PIPELINES={"scrapy.pipelines.images.ImagesPipeline": 900}
    )
    pipelines = settings["ITEM_PIPELINES"]
    assert pipelines[KafkaPublisher] > max(order for name, order in pipelines.items() if name is not KafkaPublisher)
    assert PageOfItemsMiddleware in settings["SPIDER_MIDDLEWARES"]
    assert NearDuplicateSpiderMiddleware not in settings["SPIDER_MIDDLEWARES"]


def test_without_a_broker_there_is_no_pipeline() -> None:
    """A project that decides in its own process gets no publishing components."""
    settings = switched_on()
    assert KafkaPublisher not in settings["ITEM_PIPELINES"]
    assert PageOfItemsMiddleware not in settings["SPIDER_MIDDLEWARES"]


@pytest.mark.parametrize(
    "setting",
    [
        "TWINSIEVE_KEEP=90",
        "TWINSIEVE_MAX_MEMORY=1M",
        "TWINSIEVE_STATE=spider.py",
        "TWINSIEVE_BASES=nowhere",
        "TWINSIEVE_DASHBOARD=here",
        "TWINSIEVE_KAFKA_PREFIX=a b",
    ],
)
def test_a_wrong_setting_ends_a_crawl_with_one_line(tmp_path: Path, setting: str) -> None:
    """It names the setting; Scrapy and asyncio add no traceback, and the exit code says that the crawl has failed."""
    (tmp_path / "spider.py").write_text(SPIDER)
    given = [setting, "TWINSIEVE_KAFKA_BOOTSTRAP=127.0.0.1:1"] if "KAFKA" in setting else [setting]
    command = [sys.executable, "-m", "scrapy", "runspider", "spider.py", "-L", "WARNING"]
    command += [word for one in given for word in ("-s", one)]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "The crawl does not start: " in line
    assert setting.partition("=")[0] in line
