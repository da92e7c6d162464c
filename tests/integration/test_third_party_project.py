"""A project made with `scrapy startproject`, with one line of ours in its settings."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.crawler.running import environment
from tests.hangs import HANG_S
from twinsieve_crawler.demo.server import serve
from twinsieve_crawler.demo.site import build_site
from twinsieve_crawler.demo.truth import Relation

PAGES = build_site()
LINE = 'ADDONS = {"dedup_service.scrapy.NearDuplicateAddon": 500}\n'
SPIDER = """
import scrapy


class NewsSpider(scrapy.Spider):
    name = "news"

    def __init__(self, url, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [url]

    def parse(self, response):
        yield {"url": response.url, "title": response.css("h1::text").get()}
        yield from response.follow_all(css="a")
"""

pytestmark = pytest.mark.slow


def scrapy(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scrapy", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=HANG_S, check=True
    )


def crawled(tmp_path: Path, *, with_addon: bool) -> list[str]:
    """Create the project, crawl the demo site with it, and return the paths in its feed."""
    scrapy("startproject", "thirdparty", str(tmp_path), cwd=tmp_path)
    settings = tmp_path / "thirdparty" / "settings.py"
    text = settings.read_text("utf-8").replace("DOWNLOAD_DELAY = 1", "DOWNLOAD_DELAY = 0")  # no delay for localhost
    assert "ADDONS = {}\n" in text
    settings.write_text(text.replace("ADDONS = {}\n", LINE) if with_addon else text, "utf-8")
    (tmp_path / "thirdparty" / "spiders" / "news.py").write_text(SPIDER, "utf-8")
    with serve(PAGES) as server:
        done = scrapy("crawl", "news", "-a", f"url={server.url}", "-O", "feed.json", "-L", "INFO", cwd=tmp_path)
    assert "ERROR" not in done.stderr, done.stderr
    return [urlsplit(item["url"]).path for item in json.loads((tmp_path / "feed.json").read_text("utf-8"))]


def families(paths: list[str]) -> list[str]:
    """Return the story of each path; a page with half a story counts as a separate one."""
    truths = [PAGES[path].truth for path in paths]
    return [f"half of {t.family}" if t.relation is Relation.PARTLY else t.family for t in truths]


def test_one_line_keeps_every_copy_out_of_the_feed(tmp_path: Path) -> None:
    """No story is in the feed twice but as a visit of its page, and pages that only resemble a copy are kept."""
    paths = crawled(tmp_path, with_addon=True)
    stories = families([path for path in paths if PAGES[path].truth.relation is not Relation.SAME_PAGE])
    assert len(stories) == len(set(stories))
    originals = {p.truth.family for p in PAGES.values() if p.truth.relation in (Relation.ORIGINAL, Relation.OWN)}
    assert originals <= {story.removeprefix("half of ") for story in families(paths)}


@pytest.mark.long
def test_without_the_line_the_feed_holds_copies(tmp_path: Path) -> None:
    """The same project without the line shows that the line makes the difference."""
    stories = families(crawled(tmp_path, with_addon=False))
    assert len(stories) > len(set(stories)) + 15
