"""Claim: extraction limits a crawl of real pages, and the event loop stays free (lag p99 at most 20 ms).

Measured: 7 ms in a crawl without links on a quiet machine, 27 ms with links, 17 to 33 ms beside other work.

    python -m benchmarks.crawl FOLDER [--processes 2] [--links]

Serves the HTML files of FOLDER on localhost from another process and crawls them with the `site` spider at
full speed. The lag of the event loop is measured inside the crawl: a task repeatedly sleeps 5 ms, and the
time that it oversleeps is lag. The time of each step of a worker is measured separately, in this process, on
a sample of the files.

--links: extract and schedule the links of every page as well. robots.txt forbids all URLs outside FOLDER, so
nothing else is fetched. Deterministic except for the machine's load, which is printed.
"""

import argparse
import asyncio
import multiprocessing
import os
import re
import resource
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from twinsieve_crawler.cli.crawl import summary_of

TICK_S = 0.005
PER_INDEX = 100
SAMPLE = 200
ROBOTS = b"User-agent: *\nAllow: /page/\nAllow: /index/\nAllow: /$\nDisallow: /\n"


class LoopLag:
    """Measures the lag of an event loop: connect it to a crawler, read `percentiles_ms` afterwards."""

    def __init__(self) -> None:
        self._lags: list[float] = []
        self._task: asyncio.Task[None] | None = None
        self._pages_before_measuring = 20  # excludes start-up

    def connect(self, crawler: Any) -> None:
        """Start after the spider's first pages, stop when the spider closes."""
        from scrapy import signals

        from dedup_service.scrapy import page_judged

        crawler.signals.connect(self._page, signal=page_judged, weak=False)
        crawler.signals.connect(self._stop, signal=signals.spider_closed, weak=False)

    def percentiles_ms(self) -> dict[str, float]:
        """Return p50, p90, p99 and the maximum of the lag."""
        lags = np.array(self._lags) * 1000
        return {
            name: round(float(np.percentile(lags, q)), 2)
            for name, q in (("p50", 50), ("p90", 90), ("p99", 99), ("max", 100))
        }

    def _page(self) -> None:
        self._pages_before_measuring -= 1
        if self._pages_before_measuring == 0:
            self._task = asyncio.ensure_future(self._measure())

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _measure(self) -> None:
        while True:
            started = perf_counter()
            await asyncio.sleep(TICK_S)
            self._lags.append(max(0.0, perf_counter() - started - TICK_S))


def site(folder: Path) -> dict[str, Path | bytes]:
    """Return the served site by path: index pages that link to the files, and the files."""
    files = sorted(folder.rglob("*.html"))
    pages: dict[str, Path | bytes] = {f"/page/{path.stem}.html": path for path in files}
    starts = range(0, len(files), PER_INDEX)
    pages["/robots.txt"] = ROBOTS
    pages["/"] = _index(f"/index/{start}" for start in starts)
    for start in starts:
        pages[f"/index/{start}"] = _index(f"/page/{path.stem}.html" for path in files[start : start + PER_INDEX])
    return pages


def _index(links: Iterator[str]) -> bytes:
    return (
        "<html><body>" + "".join(f'<p><a href="{link}">{link}</a></p>' for link in links) + "</body></html>"
    ).encode()


def _serve(folder: Path, ready: Connection) -> None:
    pages = site(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found = pages.get(self.path.partition("?")[0])
            body = found.read_bytes() if isinstance(found, Path) else found or b"not found"
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "text/plain" if self.path == "/robots.txt" else "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ready.send(server.server_port)
    server.serve_forever()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the folder from another process; yields the URL of its home page."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(folder, there), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}/"
    finally:
        process.terminate()
        process.join()


def crawl(url: str, processes: int, *, links: bool) -> dict[str, Any]:
    """Crawl the site at full speed; return stats, the loop's lag and this process's processor seconds."""
    from twinsieve_crawler.running import project_settings, run_site

    lag = LoopLag()
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "DOWNLOAD_DELAY": 0,
            "AUTOTHROTTLE_ENABLED": False,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
            "LOG_LEVEL": "ERROR",
            "TWINSIEVE_PROCESSES": processes,
            "TWINSIEVE_STATE": f"{folder}/state",
            "FEEDS": {f"{folder}/pages.jsonl": {"format": "jsonlines"}},
        }
        before = resource.getrusage(resource.RUSAGE_SELF)
        outcome = run_site(project_settings(settings), {"urls": url, "depth": 0 if links else 2}, (lag.connect,))
        after = resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    crawled = summary_of(outcome.stats, outcome.seconds)
    return {**crawled, "loop_lag_ms": lag.percentiles_ms(), "main_process_cpu_s": round(spent, 2)}


def ms_by_step(folder: Path) -> dict[str, float]:
    """Return milliseconds a page for each worker step and the decision, on a sample in this process."""
    from dedup_service.core.extraction import extract, to_page
    from dedup_service.runtime.embedded.filter import NearDuplicateFilter
    from dedup_service.runtime.resources import build_fingerprinter

    files = sorted(folder.rglob("*.html"))
    sample = files[:: max(1, len(files) // SAMPLE)]
    prepare = build_fingerprinter().prepare
    spent = dict.fromkeys(("extraction", "fingerprint", "decision"), 0.0)
    with tempfile.TemporaryDirectory() as state, NearDuplicateFilter.open(state) as dedup:
        for number, path in enumerate([*sample[:5], *sample]):
            html, started = path.read_bytes(), perf_counter()
            page = to_page(extract(html, declared_encoding="text/html"), f"http://localhost/{number}.html")
            extracted = perf_counter()
            prepared = prepare(page)
            fingerprinted = perf_counter()
            dedup.decide_many([prepared])
            if number >= 5:  # the first pages load dictionaries
                times = (extracted - started, fingerprinted - extracted, perf_counter() - fingerprinted)
                spent = {step: spent[step] + time for step, time in zip(spent, times, strict=True)}
    return {step: round(1000 * seconds / len(sample), 3) for step, seconds in spent.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=re.split(r"\n\n", __doc__ or "")[0])
    parser.add_argument("folder", type=Path, help="folder of HTML files")
    parser.add_argument("--processes", type=int, default=2, help="worker processes (default: 2)")
    parser.add_argument("--links", action="store_true", help="extract and schedule links as well")
    options = parser.parse_args(arguments)
    load = os.getloadavg()[0]
    by_step = ms_by_step(options.folder)
    with served(options.folder) as url:
        measured = crawl(url, options.processes, links=options.links)
    measured |= {
        "ms_per_page_by_step": by_step,
        "processes": options.processes,
        "cores": os.cpu_count(),
        "load_before": round(load, 2),
    }
    for name, value in measured.items():
        print(f"{name:22} {value}")


if __name__ == "__main__":
    main()
