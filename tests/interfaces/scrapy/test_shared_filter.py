"""Two spiders of one process on one state folder."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from dedup_service.core.errors import ConfigurationError
from dedup_service.interfaces.scrapy.settings import NearDuplicateSettings
from dedup_service.interfaces.scrapy.shared_filter import SharedFilter
from dedup_service.runtime.workers.html_workers import Html, prepare_html
from tests.crawler.running import environment
from tests.hangs import HANG_S, wait_until
from tests.interfaces.scrapy.test_downloader import FERRY, FERRY_AGAIN, RunningMiddleware, page

TWO_SPIDERS = """
import json, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import scrapy
from scrapy.crawler import CrawlerProcess

PAGES = json.load(sys.stdin)

class Site(BaseHTTPRequestHandler):
    def do_GET(self):
        body = PAGES[self.path].encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
threading.Thread(target=server.serve_forever, daemon=True).start()
verdicts = {}

class One(scrapy.Spider):
    name = "one"
    paths = ["/one"]
    async def start(self):
        for path in self.paths:
            yield scrapy.Request(f"http://127.0.0.1:{server.server_port}{path}")
    def parse(self, response):
        verdicts[self.name] = response.meta["twinsieve"]["verdict"]

class Two(One):
    name = "two"
    paths = ["/two"]

process = CrawlerProcess({
    "ADDONS": {"dedup_service.scrapy.NearDuplicateAddon": 500}, "TWINSIEVE_STATE": sys.argv[1],
    "TWINSIEVE_PROCESSES": 1, "LOG_LEVEL": "WARNING", "TELNETCONSOLE_ENABLED": False,
})
for spider in (One, Two):
    process.crawl(spider)
process.start()
print(json.dumps(verdicts))
"""


def test_two_spiders_of_one_process_share_a_state(tmp_path: Path) -> None:
    """Of a page and its copy, one each, one is unique and the other a duplicate; the folder is free afterwards."""
    pages = {"/one": FERRY.decode(), "/two": FERRY_AGAIN.decode()}
    done = subprocess.run(
        [sys.executable, "-c", TWO_SPIDERS, str(tmp_path / "state")],
        input=json.dumps(pages),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "in use by process" not in done.stderr
    assert sorted(json.loads(done.stdout).values()) == ["duplicate", "unique"], done.stderr
    shared = RunningMiddleware(TWINSIEVE_STATE=str(tmp_path / "state"))
    shared.close()


@pytest.mark.parametrize(
    ("name", "one", "two"),
    [
        ("TWINSIEVE_ACTION", "flag", "drop"),
        ("TWINSIEVE_PROFILE", "balanced", "precise"),
        ("TWINSIEVE_KEEP", "5 pages", "all"),
    ],
)
def test_crawls_that_do_not_agree_are_refused(tmp_path: Path, name: str, one: Any, two: Any) -> None:
    """The message names the setting and both values; the first crawl continues."""
    running = RunningMiddleware(TWINSIEVE_STATE=str(tmp_path), **{name: one})
    try:
        with pytest.raises(ConfigurationError, match=rf"{name}.* at .*, this one at .*, and both share") as refused:
            RunningMiddleware(TWINSIEVE_STATE=str(tmp_path), **{name: two})
        for value in (one, two):
            assert name == "TWINSIEVE_PROFILE" or str(value) in str(refused.value)
        running.give(page("1", FERRY))
        assert [verdict["verdict"] for verdict in running.decided] == ["unique"]
    finally:
        running.close()


def test_crawls_without_a_folder_share_nothing() -> None:
    """The same page is unique in each of them."""
    crawls = [RunningMiddleware(), RunningMiddleware()]
    for crawl in crawls:
        crawl.give(page("1", FERRY))
    for crawl in crawls:
        crawl.close()
        assert [verdict["verdict"] for verdict in crawl.decided] == ["unique"]


def test_a_crawl_opens_its_state_while_another_is_closed(tmp_path: Path) -> None:
    """Closing waits for a slow disk here; a crawl that opens the same folder waits for it, any other does not."""
    settings = [
        NearDuplicateSettings.from_settings(Settings({"TWINSIEVE_STATE": str(tmp_path / name)})) for name in "ab"
    ]
    first = SharedFilter.open(settings[0])
    with ThreadPoolExecutor() as threads:
        with first.dedup._turn:
            judging = first.submit(prepare_html(Html(html=FERRY, url="https://example.org/1")))
            wait_until(judging.running)
            closing = threads.submit(first.close)
            wait_until(lambda: first._closed)
            again = threads.submit(SharedFilter.open, settings[0])
            threads.submit(SharedFilter.open, settings[1]).result(HANG_S).close()
            assert not closing.done()
            assert not again.done()
        again.result(HANG_S).close()
    assert judging.result().kind == "unique"
