"""`twinsieve crawl` on sites that always name one more address: the crawl ends, within its depth."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.crawler.running import FAST, run

pytestmark = pytest.mark.slow

END = 40
"""After so many addresses the site ends, so that a crawl without a bound fails here instead of hanging."""

Answer = tuple[int, dict[str, str], str]
Site = Callable[[int], Answer]


def article(number: int, head: str = "", body: str = "") -> Answer:
    """Return a page with a text of its own."""
    words = " ".join(f"word{number}x{at}" for at in range(80))
    page = f"<html><head><title>Page {number}</title>{head}</head><body><p>{words}</p>{body}</body></html>"
    return 200, {"Content-Type": "text/html; charset=utf-8"}, page


def canonicals(number: int) -> Answer:
    """Each page names the next one as canonical."""
    return article(number, head=f'<link rel="canonical" href="/{number + 1}">')


def redirects(number: int) -> Answer:
    """Each address redirects to the next one."""
    return 302, {"Location": f"/{number + 1}"}, ""


def refreshes(number: int) -> Answer:
    """Each page refreshes to the next one."""
    return article(number, head=f'<meta http-equiv="refresh" content="0; url=/{number + 1}">')


def sitemaps(number: int) -> Answer:
    """Each sitemap is the index of the next one."""
    address = f"<sitemap><loc>http://HOST/{number + 1}.xml</loc></sitemap>"
    index = f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{address}</sitemapindex>'
    return 200, {"Content-Type": "application/xml"}, f'<?xml version="1.0"?>{index}'


@contextmanager
def serving(site: Site) -> Iterator[tuple[str, list[int]]]:
    """Serve `site` at `/1`, `/2`, …: its URL, and the numbers that are visited."""
    visited: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stem = self.path.strip("/").removesuffix(".xml")
            if stem == "sitemap":
                stem = "1"
            if not stem.isdecimal():
                self.send_error(404)
                return
            number = int(stem)
            visited.append(number)
            status, headers, body = site(number) if number < END else article(number)
            content = body.replace("HOST", self.headers["Host"]).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/1", visited
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("site", "arguments", "expected"),
    [
        (canonicals, ("--depth", 1), [1, 2]),
        pytest.param(canonicals, ("--depth", 0), [1, 2, 3, 4], marks=pytest.mark.long),
        pytest.param(redirects, ("--depth", 1), list(range(1, 22)), marks=pytest.mark.long),
        pytest.param(refreshes, ("--depth", 1), list(range(1, 22)), marks=pytest.mark.long),
        pytest.param(sitemaps, ("--follow", "sitemap"), [1, 2, 3, 4], marks=pytest.mark.long),
    ],
)
def test_crawl_depth_counts(tmp_path: Path, site: Site, arguments: tuple[object, ...], expected: list[int]) -> None:
    """Canonical URLs count as links; chains of them, of redirects, refreshes and sitemaps end."""
    with serving(site) as (url, visited):
        done = run("crawl", url, *FAST, *arguments, "--json", cwd=tmp_path)
    assert sorted(set(visited)) == expected, done.stderr
