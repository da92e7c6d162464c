"""Serves the demo site on localhost during a `with` block.

A threaded server from the standard library. robots.txt keeps crawlers out of `/private/`, and sitemap.xml
lists the stories. `/private/` answers nevertheless, so that a crawler that ignores robots.txt is noticed.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from twinsieve_crawler.demo.page import DemoPage

PRIVATE = "/private/login"


class DemoServer(ThreadingHTTPServer):
    """The site's server. visits: number of requests for each path."""

    daemon_threads = True

    def __init__(self, pages: Mapping[str, DemoPage], host: str, port: int) -> None:
        """Bind to host and port, 0 for a free port; OSError if the port is taken."""
        super().__init__((host, port), _Handler)
        self.pages = pages
        self.visits: Counter[str] = Counter()
        self._counting = threading.Lock()

    @property
    def url(self) -> str:
        """URL of the home page."""
        return f"http://{self.server_address[0]!s}:{self.server_port}/"

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Return status, content type and body for a path, and count the visit."""
        with self._counting:
            self.visits[path] += 1
            visit = self.visits[path]
        if path == "/robots.txt":
            return 200, "text/plain", f"User-agent: *\nDisallow: /private/\nSitemap: {self.url}sitemap.xml\n".encode()
        if path == "/sitemap.xml":
            return 200, "application/xml", self._sitemap()
        if path == PRIVATE:
            return 200, "text/html", b"<html><body>members only</body></html>"
        page = self.pages.get(path)
        if page is None:
            return 404, "text/html", b"<html><body>not found</body></html>"
        return 200, page.content_type, page.bodies[min(visit, len(page.bodies)) - 1]

    def _sitemap(self) -> bytes:
        base = self.url.rstrip("/")
        locations = "".join(f"<url><loc>{base}{p.path}</loc></url>" for p in self.pages.values() if p.in_sitemap)
        return f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locations}</urlset>'.encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: DemoServer

    def do_GET(self) -> None:
        status, content_type, body = self.server.answer(urlsplit(self.path).path)
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Log nothing: the terminal shows the crawl."""


@contextmanager
def serve(pages: Mapping[str, DemoPage], host: str = "127.0.0.1", port: int = 0) -> Iterator[DemoServer]:
    """Serve `pages` in a thread during the block."""
    server = DemoServer(pages, host, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
