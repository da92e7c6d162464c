"""Crawls that publish, run as a user would, with a broker that works, refuses, dies and restarts."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from deploy.kafka import Cluster
from tests.chaos.reading import read_all
from tests.crawler.running import FAST, environment, json_lines, run, twinsieve
from tests.hangs import HANG_S
from tests.integration.conftest import Broker
from twinsieve_crawler.demo.server import serve
from twinsieve_crawler.demo.site import build_site

PAGES = build_site()
NARROW = ("--set", "SCRAPER_SLOT_MAX_ACTIVE_SIZE=40000", "--set", "CONCURRENT_REQUESTS_PER_DOMAIN=4")
"""Makes a crawl of small pages stop as soon as a crawl of large pages would."""

pytestmark = pytest.mark.slow


def published(bootstrap: str, topics: Topics) -> list[dict[str, Any]]:
    return [json.loads(record.value) for record in read_all(bootstrap, [topics.pages])[topics.pages]]


def paths(pages: list[dict[str, Any]]) -> Counter[str]:
    return Counter(urlsplit(page["url"]).path for page in pages)


def fetched(visits: Counter[str]) -> Counter[str]:
    return Counter({path: count for path, count in visits.items() if path in PAGES})


def until(reached: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + HANG_S
    while not reached():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None
        time.sleep(0.05)


def at_rest(count: Callable[[], int], for_s: float = 3.0) -> None:
    """Wait until the count has not changed for `for_s` seconds."""
    last, since, deadline = count(), time.monotonic(), time.monotonic() + HANG_S
    while time.monotonic() - since < for_s:
        assert time.monotonic() < deadline
        time.sleep(0.05)
        if count() != last:
            last, since = count(), time.monotonic()


@contextmanager
def started(*arguments: object, cwd: Path) -> Any:
    command = twinsieve(*arguments)
    with subprocess.Popen(command, cwd=cwd, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_every_fetched_page_is_published(tmp_path: Path, broker: Broker, topics: Topics) -> None:
    """Each visit of a page is one record with the extracted text; the feed has the same pages."""
    with serve(PAGES) as server:
        at = ("--bootstrap", broker.bootstrap, "--prefix", topics.prefix)
        done = run("crawl", server.url, *FAST, *at, "-o", "pages.jsonl", "--json", cwd=tmp_path)
        visits = fetched(server.visits)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    pages, [summary] = published(broker.bootstrap, topics), json_lines(done.stderr)
    assert paths(pages) == visits == Counter(PAGES.keys())
    assert (summary["pages"], summary["unpublished"]) == (len(PAGES), {})
    assert all(page["text"] and "html" not in page and "verdict" not in page for page in pages)
    assert len(json_lines((tmp_path / "pages.jsonl").read_text("utf-8"))) == len(PAGES)
    assert list(tmp_path.iterdir()) == [tmp_path / "pages.jsonl"]


@pytest.mark.long
def test_ctrl_c_without_a_broker_reports_unpublished_pages(tmp_path: Path, own_cluster: Callable[..., Cluster]) -> None:
    """It waits for its timeout, counts the pages that were not published, and exits with 1."""
    cluster, topics = own_cluster(), Topics()
    create(Connection(cluster.bootstrap), topics, Layout(partitions=2))
    at = ("--bootstrap", cluster.bootstrap, "--set", "TWINSIEVE_KAFKA_CLOSE_TIMEOUT_S=1", "--json")
    with serve(PAGES) as server, started("crawl", server.url, *FAST, *NARROW, *at, cwd=tmp_path) as crawl:
        until(lambda: server.visits.total() >= 15, crawl)
        cluster.kill(0)
        at_rest(server.visits.total)
        crawl.send_signal(signal.SIGINT)
        _, stderr = crawl.communicate(timeout=HANG_S)
        visits = fetched(server.visits)
    assert crawl.returncode == 1, stderr
    [summary] = json_lines(stderr)
    left = summary["unpublished"]["broker_away"]
    assert summary["pages"] + left == visits.total()
    assert f"{left} pages were not published" in stderr
    assert stderr.count("is not published") == left


@pytest.mark.long
def test_a_wrong_password_is_an_error_before_the_first_request(
    tmp_path: Path, own_cluster: Callable[..., Cluster]
) -> None:
    """The message mentions the password without showing it; the right one from a file works."""
    cluster, topics = own_cluster(sasl=True), Topics()
    create(Connection(cluster.bootstrap, cluster.client_options), topics, Layout(partitions=2))
    right, wrong = tmp_path / "client.properties", tmp_path / "wrong.properties"
    for file, more in ((right, {}), (wrong, {"sasl_plain_password": "secretive"})):
        file.write_text("".join(f"{name}={value}\n" for name, value in (cluster.client_options | more).items()))
    at = (*FAST, "--bootstrap", cluster.bootstrap, "--properties")
    with serve(PAGES) as server:
        refused = run("crawl", server.url, *at, wrong, cwd=tmp_path)
        visits = server.visits.total()
        done = run("crawl", server.url, *at, right, "--depth", 1, "--json", cwd=tmp_path)
    assert (refused.returncode != 0, visits) == (True, 0)
    assert "password" in refused.stderr.splitlines()[-1]
    assert "secretive" not in refused.stderr
    assert (done.returncode, json_lines(done.stderr)[0]["unpublished"]) == (0, {}), done.stderr


PLAIN = """
import scrapy

class Plain(scrapy.Spider):
    name = "plain"
    start_urls = ["HOME"]
    custom_settings = {"ADDONS": {"dedup_service.scrapy.NearDuplicateAddon": 500}}

    def parse(self, response):
        if response.css("h1"):
            yield {"headline": response.css("h1::text").get()}
            yield {"links": len(response.css("a"))}
        yield from response.follow_all(css="a")
"""


def test_a_project_whose_items_are_no_pages_publishes_html(tmp_path: Path, broker: Broker, topics: Topics) -> None:
    """Each page that yielded items is published once as HTML; pages that yielded none are not."""
    command = [sys.executable, "-m", "scrapy", "runspider", "plain.py", "-O", "items.json", "-L", "INFO"]
    command += ["-s", f"TWINSIEVE_KAFKA_BOOTSTRAP={broker.bootstrap}", "-s", f"TWINSIEVE_KAFKA_PREFIX={topics.prefix}"]
    with serve(PAGES) as server:
        (tmp_path / "plain.py").write_text(PLAIN.replace("HOME", server.url), "utf-8")
        done = subprocess.run(
            command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=HANG_S, check=True
        )
    assert "ERROR" not in done.stderr, done.stderr
    items = json.loads((tmp_path / "items.json").read_text("utf-8"))
    pages = published(broker.bootstrap, topics)
    assert len(pages) == len(items) / 2
    assert set(paths(pages).values()) == {1}
    assert all(page["html"].lstrip().startswith("<") and "text" not in page for page in pages)
