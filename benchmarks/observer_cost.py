"""Cost of observers: the filter with and without live stats and metrics, and with 200 open event streams.

    python -m benchmarks.observer_cost [--pages FILE] [--turn PAGES]

Observers: texts become verdicts in two filters, one with live stats and metrics as observers, one without
observers. Each chunk of pages goes through both, alternately one and the other first, so that a slower
machine slows both. Shown: the ratio of processor times with its 95% interval by bootstrap over the chunks,
and the observers' own time, measured by replaying the events of such a run.

Streams: prepared pages (a third of them copies) go through the filter's `decide_many`, alternately without
clients and with 180 clients that read and 20 that do not, all in another process. The state is in memory, so
that no disk hides processor time. The first runs are at 2,000 pages/s, the others at full speed. Shown:
pages per second of wall-clock time, their ratio with its interval over the turns, the processor time of the
server's thread (the most that it can take from a filter with one core), and the memory of the process.

Data: FILE has JSON lines of pages (`title`, `text`); without it, generated ones. Seed 7.
"""

import argparse
import json
import os
import random
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from dedup_service.core.evidence.packed import pack_evidence
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.text.normalise import letters
from dedup_service.interfaces.http.dashboard import serve_dashboard
from dedup_service.interfaces.http.explain_backends import DashboardSources
from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.server import Address
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.events import NullObserver, Observer
from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.resources import build_fingerprinter

SEED = 7
CHUNK = 256
READERS, IDLERS = 180, 20
PACE = 2000
WORDS = ("harbour", "council", "storm", "repair", "engineer", "winter", "ferry", "library", "moon", "school")

Ratio = tuple[float, float, float]


def texts(path: Path | None, limit: int) -> list[Page]:
    """Return at most `limit` pages; every fourth one repeats an earlier one at another URL."""
    rng = random.Random(SEED)
    if path is None:
        bodies = [" ".join(f"{rng.choice(WORDS)}{rng.randrange(2000)}" for _ in range(350)) for _ in range(limit)]
        rows = [("A headline of ten or so words, as they are", body) for body in bodies]
    else:
        with path.open(encoding="utf-8") as lines:
            parsed = (json.loads(line) for _, line in zip(range(limit), lines, strict=False))
            rows = [(row.get("title") or "", row["text"]) for row in parsed if row.get("text")]
    for at in range(40, len(rows), 4):
        rows[at] = rows[rng.randrange(at)]
    return [_page(f"https://h{at % 211}.example/{at}", title, text) for at, (title, text) in enumerate(rows)]


def prepared_pages() -> Iterator[PreparedPage]:
    """Yield prepared pages without end; a third are copies at a distance of 0 or 1 bits in each channel."""
    rng = random.Random(SEED)
    stories: list[tuple[int, bytes, str]] = []
    for at in count():
        if not stories or rng.random() > 1 / 3:
            text = "".join(map(chr, rng.choices(range(0x4E00, 0x9000), k=300)))
            stories.append((rng.getrandbits(64), pack_evidence("", text, letters(text), b""), text))
            story, version = stories[-1], 0
        else:
            story, version = stories[rng.randrange(max(0, len(stories) - 5000), len(stories))], 1 << rng.randrange(64)
        value = story[0] ^ version
        page = _page(f"https://h{at % 997}.example/{at}", f"Story {story[0] % 1000}", story[2])
        yield PreparedPage(page, Fingerprint(value, value), rng.getrandbits(64), evidence=story[1])


def observed_cost(pages: Sequence[Page]) -> tuple[Ratio, float, float]:
    """Return (time with / without observers, µs a page without them, µs a page of the observers alone)."""
    recorder = _EventRecorder()
    feed = LiveStats("filter")
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        bare = stack.enter_context(NearDuplicateFilter.open(folders[0]))
        observed = stack.enter_context(NearDuplicateFilter.open(folders[1], observers=[feed, Metrics(live_stats=feed)]))
        prepare = build_fingerprinter().prepare
        for page in pages[:2000]:
            prepare(page)
        spent: list[tuple[float, float]] = []
        for number, start in enumerate(track(range(0, len(pages), CHUNK), "text → verdict", transient=True)):
            chunk = pages[start : start + CHUNK]
            filters = [(0, bare), (1, observed)]
            took = [0.0, 0.0]
            for place, dedup in filters if number % 2 else filters[::-1]:
                began = time.process_time()
                dedup.check_many(chunk)
                took[place] = time.process_time() - began
            spent.append((took[1], took[0]))
        recorded = stack.enter_context(NearDuplicateFilter.open(None, observers=[recorder]))
        for start in range(0, len(pages), CHUNK):
            recorded.check_many(pages[start : start + CHUNK])
    bare_us = sum(without for _, without in spent) / len(pages) * 1e6
    return _ratio(spent), bare_us, recorder.replay_s() / len(pages) * 1e6


def streamed(turn_pages: int, turns: int) -> Iterator[tuple[str, Any]]:
    """Yield the figures of both paces, then those of memory."""
    pages = prepared_pages()
    feed = LiveStats("filter")
    observers: list[Observer] = [feed, Metrics(live_stats=feed)]
    with (
        NearDuplicateFilter.open(None, observers=observers) as dedup,
        serve_dashboard(
            DashboardSources(live_stats=feed, dedup=dedup),
            Metrics(live_stats=feed).registry,
            Address("127.0.0.1", 0),
            None,
        ) as server,
    ):
        before = resident_mib()
        for name, pace in (("2,000 pages/s", PACE), ("full speed", None)):
            rates: list[tuple[float, float]] = []
            read, server_s, watched_s = 0, 0.0, 0.0
            for turn in track(range(turns), name, transient=True):
                pair = [0.0, 0.0]
                for watched in (True, False) if turn % 2 else (False, True):
                    batches = [list(islice(pages, 100)) for _ in range(turn_pages // 100)]
                    with crowd(server.address, feed) if watched else _no_clients() as figures:
                        spent, began = _server_s(), time.perf_counter()
                        pair[watched] = _rate(dedup, batches, pace)
                    if watched:
                        server_s, watched_s = server_s + _server_s() - spent, watched_s + time.perf_counter() - began
                    read += figures()["read"] if watched else 0
                rates.append((pair[1], pair[0]))
            yield (
                name,
                {"rates": rates, "ratio": _ratio(rates), "read_mib": read / 2**20, "server": server_s / watched_s},
            )
        yield "memory", {"before_mib": before, "after_mib": resident_mib(), "dropped": feed.watchers()[1]}


@contextmanager
def crowd(address: Address, feed: LiveStats) -> Iterator[Callable[[], dict[str, Any]]]:
    """Keep clients connected, in another process; yields a function that returns their figures later."""
    figures: dict[str, Any] = {}
    command = [sys.executable, "-m", "benchmarks.observer_cost", "--crowd", str(address.port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        _until(lambda: feed.watchers()[0] == READERS + IDLERS)
        yield lambda: figures
        process.stdin.close()
        figures.update(json.loads(process.stdout.read()))
    _until(lambda: feed.watchers()[0] == 0)


def be_a_crowd(port: int) -> None:
    """Read event streams until standard input is closed, then print how many bytes were read."""
    streams = [_open_stream(port) for _ in range(READERS + IDLERS)]
    read = 0
    with selectors.DefaultSelector() as selector:
        for stream in streams[:READERS]:
            selector.register(stream, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        print("watching", flush=True)
        while True:
            for key, _ in selector.select():
                if key.fileobj is sys.stdin:
                    print(json.dumps({"read": read}))
                    return
                read += len(key.fileobj.recv(1 << 16))  # type: ignore[union-attr]


def _open_stream(port: int) -> socket.socket:
    """Open an event stream; retry while the rate limit (300 requests, then 50 a second) refuses it."""
    while True:
        stream = socket.create_connection(("127.0.0.1", port))
        stream.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        if stream.recv(1024).startswith(b"HTTP/1.1 200"):
            return stream
        stream.close()
        time.sleep(0.1)


def _rate(dedup: NearDuplicateFilter, batches: Sequence[Sequence[PreparedPage]], pace: int | None) -> float:
    """Decide all batches, no faster than `pace` pages a second; return pages a second."""
    began, done = time.perf_counter(), 0
    for batch in batches:
        if pace is not None and (early := done / pace - (time.perf_counter() - began)) > 0:
            time.sleep(early)
        done += len(dedup.decide_many(batch))
    return done / (time.perf_counter() - began)


def _server_s() -> float:
    """Return the processor time of the server's thread so far."""
    thread = next(thread for thread in threading.enumerate() if thread.name == "twinsieve-http")
    scheduled = Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text(encoding="ascii")
    return int(scheduled.split()[0]) / 1e9


def _ratio(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """Return the ratio of the sums, and its 95% interval by bootstrap over the pairs."""
    values = np.array(pairs)
    drawn = np.random.default_rng(SEED).integers(0, len(values), (2000, len(values)))
    sums = values[drawn].sum(axis=1)
    low, high = np.percentile(sums[:, 0] / sums[:, 1], (2.5, 97.5))
    return float(values[:, 0].sum() / values[:, 1].sum()), float(low), float(high)


class _EventRecorder(NullObserver):
    """Keeps the events of a run, to replay them into other observers."""

    def __init__(self) -> None:
        self._events: list[Callable[[Observer], None]] = []

    def batch(self, fact: Any) -> None:
        self._events.append(lambda observer: observer.batch(fact))

    def decided(self, pages: Any) -> None:
        self._events.append(lambda observer: observer.decided(pages))

    def replay_s(self) -> float:
        """Return the processor seconds that live stats and metrics need for all events, the best of five."""
        found = []
        for _ in range(5):
            feed = LiveStats("filter")
            observers = (feed, Metrics(live_stats=feed))
            began = time.process_time()
            for event in self._events:
                for observer in observers:
                    event(observer)
            found.append(time.process_time() - began)
        return min(found)


def _page(url: str, title: str, text: str) -> Page:
    return Page(url=url, canonical_url=url, id=url, title=title, text=text)


@contextmanager
def _no_clients() -> Iterator[Callable[[], dict[str, Any]]]:
    yield lambda: {"read": 0}


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the clients did not connect, or disconnect, within a minute")
        time.sleep(0.02)


def resident_mib() -> float:
    """Return the resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Run both measurements and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, help="JSON lines of pages")
    parser.add_argument("--count", type=int, default=20_000, help="texts; 0 skips this part (default: 20,000)")
    parser.add_argument("--turn", type=int, default=10_000, help="prepared pages in each turn (default: 10,000)")
    parser.add_argument(
        "--turns", type=int, default=10, help="turns with and without clients; 0 skips this part (default: 10)"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--crowd", type=int, metavar="PORT", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.crowd is not None:
        be_a_crowd(arguments.crowd)
        return
    console = Console(width=120)
    figures: dict[str, Any] = {}
    if arguments.count:
        pages = texts(arguments.pages, arguments.count)
        ratio, bare_us, own_us = observed_cost(pages)
        figures["observed"] = {"ratio": ratio, "bare_us": bare_us, "own_us": own_us, "pages": len(pages)}
        table = Table(title=f"Text → verdict, {len(pages):,} pages, processor time")
        for heading in (
            "with / without observers",
            "95% interval",
            "µs a page without",
            "observers alone, µs",
            "share",
        ):
            table.add_column(heading, justify="right")
        table.add_row(
            f"{ratio[0]:.4f}",
            f"{ratio[1]:.4f} to {ratio[2]:.4f}",
            f"{bare_us:,.0f}",
            f"{own_us:.2f}",
            f"{own_us / bare_us:.2%}",
        )
        console.print(table)
    if arguments.turns:
        table = Table(title=f"decide_many with {READERS} clients that read and {IDLERS} that do not, and with none")
        for heading in (
            "pace",
            "pages/s, none",
            "pages/s, clients",
            "ratio",
            "95% interval",
            "MiB read",
            "server, ms/s",
        ):
            table.add_column(heading, justify="right")
        for name, found in streamed(arguments.turn, arguments.turns):
            figures[name] = found
            if name != "memory":
                watched, none = (sum(rates) / len(rates) for rates in zip(*found["rates"], strict=True))
                ratio = found["ratio"]
                interval = f"{ratio[1]:.4f} to {ratio[2]:.4f}"
                rest = (f"{ratio[0]:.4f}", interval, f"{found['read_mib']:.1f}", f"{found['server'] * 1e3:.1f}")
                table.add_row(name, f"{none:,.0f}", f"{watched:,.0f}", *rest)
        console.print(table)
        memory = figures["memory"]
        console.print(
            f"Memory of the process: {memory['before_mib']:.0f} MiB before, {memory['after_mib']:.0f} MiB after, "
            f"including the index of all pages; {memory['dropped']} streams were disconnected"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
