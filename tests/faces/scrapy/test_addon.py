"""One line in ADDONS switches everything on, and nothing that a project said itself is overruled."""

import pytest
from scrapy.exceptions import NotConfigured
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from dedup_service.faces.scrapy import NearDuplicateDownloaderMiddleware, NearDuplicateSpiderMiddleware


def switched_on(**values: object) -> Settings:
    settings = Settings(values)
    load_object("dedup_service.scrapy.NearDuplicateAddon")().update_settings(settings)
    return settings


def test_both_middlewares_are_added_below_retries_and_redirects() -> None:
    """At 545 a page comes whole, once, and only when Scrapy has settled for it."""
    settings = switched_on()
    downloader = settings.getdict("DOWNLOADER_MIDDLEWARES_BASE")
    order = settings["DOWNLOADER_MIDDLEWARES"][NearDuplicateDownloaderMiddleware]
    assert order < min(value for name, value in downloader.items() if "retry" in name or "redirect" in name)
    assert settings["SPIDER_MIDDLEWARES"][NearDuplicateSpiderMiddleware] == 545


def test_a_project_may_place_the_middleware_itself() -> None:
    """A middleware that a project names keeps the project's order."""
    name = "dedup_service.scrapy.NearDuplicateDownloaderMiddleware"
    settings = switched_on(DOWNLOADER_MIDDLEWARES={name: 100})
    assert settings["DOWNLOADER_MIDDLEWARES"].copy_to_dict() == {name: 100}


def test_a_project_may_switch_it_off() -> None:
    """NEARDUP_ENABLED = False leaves the project as it was."""
    with pytest.raises(NotConfigured):
        switched_on(NEARDUP_ENABLED=False)
