"""Runs a spider of a project of its own against a local server, in a process as a user would."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.crawler.running import environment, json_lines
from tests.hangs import HANG_S

Site = Mapping[str, tuple[str, bytes]]
"""Path → Content-Type and body."""

SPIDER = """
import dataclasses
import attrs
import scrapy

class Spider(scrapy.Spider):
    name = "spider"
    custom_settings = {settings!r}

    async def start(self):
        for path in {paths!r}:
            yield scrapy.Request({url!r} + path, callback=self.parse, dont_filter=True)

{parse}
"""


@dataclass(frozen=True)
class Crawled:
    """What a crawl left. feed: its items. stats: those of the add-on, without the prefix. log: lines."""

    feed: list[dict[str, Any]]
    stats: dict[str, Any]
    log: list[str]

    def said(self, text: str) -> list[str]:
        """Return the lines of the log with `text`."""
        return [line for line in self.log if text in line]


@contextmanager
def serving(site: Site) -> Iterator[str]:
    """Serve a site; the value is its address, without a slash at its end."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content_type, body = site[self.path]
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def crawl(folder: Path, site: Site, parse: str, *, paths: list[str] | None = None, **settings: Any) -> Crawled:
    """Crawl the paths of a site, one after the other. parse: the spider's methods, indented."""
    chosen = {
        "ADDONS": {"dedup_service.scrapy.NearDuplicateAddon": 500},
        "TWINSIEVE_PROCESSES": 1,
        "CONCURRENT_REQUESTS": 1,
        "TELNETCONSOLE_ENABLED": False,
        "FEEDS": {"feed.jsonl": {"format": "jsonlines", "overwrite": True}},
        **settings,
    }
    folder.mkdir(exist_ok=True)
    with serving(site) as url:
        source = SPIDER.format(settings=chosen, paths=paths or list(site), url=url, parse=parse)
        (folder / "spider.py").write_text(source)
        done = subprocess.run(
            [sys.executable, "-m", "scrapy", "runspider", "spider.py"],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    lines = done.stderr.replace(url, "http://site").splitlines()
    stats = dict(line.strip(" {,}").split(": ", 1) for line in lines if line.strip(" {").startswith("'twinsieve/"))
    counts = {name.strip("'").removeprefix("twinsieve/"): json.loads(value) for name, value in stats.items()}
    feed = (folder / "feed.jsonl").read_text("utf-8") if (folder / "feed.jsonl").exists() else ""
    return Crawled(json_lines(feed.replace(url, "http://site")), counts, lines)
