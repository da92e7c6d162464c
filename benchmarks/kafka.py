"""Claim: `serve` answers 5 times as many pages a second as a plain consumer, and 99% of them within 500 ms.

The first half of the claim is about Chinese text with one worker, the second about half of the highest rate.
Measured on two cores that broker, service and load share (docs/performance.md):

    throughput   15.3 times the plain consumer
    latency      p99 of 286 ms at half of the highest rate, 218 ms at a quarter, 186 ms at an eighth

    python -m benchmarks.kafka [--repeats 3] [--text 24000] [--html 1500] [--seconds 20]

Throughput: the contender is started; when it has answered a tenth of the pages, the others are published at once.
Its rate is that of their answers from the first tenth to the last hundredth, by the timestamps of their messages, so
that start-up does not count. The contenders take turns on fresh topics, `repeats` times; the medians and their ratio
are printed.
Latency (benchmarks.service.latency): with one worker at a half, a quarter and an eighth of its highest rate,
with the cores that each program kept busy.

Also printed: processor time a page of the main process (both steps and their clients), of the workers
(extraction, segmentation, fingerprints) and of the broker.

Data: generated Chinese text of 2 KB, a tenth of it copies, or HTML of 60 KB (benchmarks.service.load), seed
2026. Peer: benchmarks.service.plain_consumer (kafka-python, jieba, PyPI simhash and its index, at least
once).
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.service.contenders import Contender, PlainConsumer, TwinsieveContender
from benchmarks.service.latency import Latency, measure
from benchmarks.service.load import html_pages, text_pages
from benchmarks.service.usage import brokers, cpu_s
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from deploy.kafka import Cluster
from tests.chaos.publishing import PacedPublisher
from tests.chaos.reading import Tail
from tests.crawls.stream import Sent

PATIENCE_S = 600.0
FIRST_LOAD = 4000
"""Pages before latency is measured: until broker and workers are warm."""

LATENCY_PARTS = (2, 4, 8)
"""Latency is measured at the highest rate divided by each of these."""

SEED = 2026


@dataclass(frozen=True, slots=True)
class Load:
    """Pages, and the contenders that answer them."""

    name: str
    pages: Sequence[Sent]
    contenders: dict[str, Callable[[], Contender]]


@dataclass
class Figures:
    """Figures of one contender on one load, for each repeat. used_s: processor seconds a page, by process."""

    pages_per_s: list[float] = field(default_factory=list)
    used_s: list[dict[str, float]] = field(default_factory=list)

    def used(self, name: str) -> float:
        """Return the median processor time a page of a process, in milliseconds."""
        return statistics.median(used.get(name, 0.0) for used in self.used_s) * 1e3


class Bench:
    """Measurements on a broker, each on fresh topics."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._bootstrap = cluster.bootstrap
        self._folder = folder
        self._count = 0

    def topics(self) -> tuple[Topics, Path]:
        """Return fresh topics and a folder for one run."""
        self._count += 1
        topics = Topics(f"bench{self._count}.")
        create(Connection(self._bootstrap), topics, Layout(partitions=4))
        return topics, self._folder / f"run{self._count}"

    def rate(self, contender: Contender, pages: Sequence[Sent], figures: Figures) -> None:
        """Measure how fast `contender`, once it runs, answers pages that are published at once; add it to `figures`."""
        topics, folder = self.topics()
        warm = len(pages) // 10
        self.publish(topics, pages[:warm], None)
        answers = _Answers(self._bootstrap, topics)
        contender.start(self._bootstrap, topics, folder)
        try:
            # A service that starts decides later than it fingerprints: what it has by then would be answered at once.
            answers.wait_for(warm, contender)
            self.publish(topics, pages[warm:], None)
            first = answers.wait_for(warm + (len(pages) - warm) // 10, contender)
            last = answers.wait_for(len(pages), contender)
        finally:
            contender.stop()
            answers.close()
        times = sorted(answers.times_ms)[warm:]
        start, stop = len(times) // 10, len(times) - 1 - len(times) // 100
        figures.pages_per_s.append((stop - start) / max(0.001, (times[stop] - times[start]) / 1000))
        done = last.answers - first.answers
        figures.used_s.append({name: (last.used[name] - first.used[name]) / max(1, done) for name in last.used})

    def publish(self, topics: Topics, pages: Iterable[Sent], rate: float | None) -> None:
        """Publish pages, `rate` a second (None: unlimited)."""
        publisher = PacedPublisher(self._bootstrap, topics.pages)
        publisher.publish(pages, rate=rate)
        publisher.close()

    def latency(self, first_load: Sequence[Sent], pages: Sequence[Sent], rate: float) -> Latency:
        """Measure publish → verdict for `pages` at `rate`, after `first_load`."""
        topics, folder = self.topics()
        return measure(self._bootstrap, topics, folder, first_load, pages, rate)


@dataclass(frozen=True, slots=True)
class _Moment:
    answers: int
    used: dict[str, float]


class _Answers:
    """Reads verdicts as they arrive, and keeps their timestamps."""

    def __init__(self, bootstrap: str, topics: Topics) -> None:
        self._tail = Tail(bootstrap, [topics.verdicts])
        self.times_ms: list[int] = []

    def wait_for(self, count: int, contender: Contender) -> _Moment:
        """Wait for `count` answers and return the figures of that moment."""
        deadline = time.monotonic() + PATIENCE_S
        while len(self.times_ms) < count:
            self.times_ms += [record.timestamp for record in self._tail.poll()]
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self.times_ms)} of {count} answers of {contender} within {PATIENCE_S:g} s")
        used = {**contender.used_s, "broker": cpu_s(brokers())}
        return _Moment(len(self.times_ms), used)

    def close(self) -> None:
        """Close the consumer."""
        self._tail.close()


def loads(arguments: argparse.Namespace) -> list[Load]:
    """Return the loads with their contenders; none of HTML if no HTML pages are asked for."""
    services: dict[str, Callable[[], Contender]] = {
        "serve, 1 worker": lambda: TwinsieveContender(1),
        "serve, 2 workers": lambda: TwinsieveContender(2),
    }
    text = list(text_pages(SEED, arguments.text))
    work = [Load("Chinese text, 2 KB", text, {"plain consumer": PlainConsumer, **services})]
    if arguments.html:
        work.append(Load("HTML, 60 KB", list(html_pages(SEED, arguments.html)), services))
    return work


def report(load: Load, figures: dict[str, Figures]) -> None:
    """Print one table."""
    table = Table(title=f"{load.name}: {len(load.pages)} pages")
    for heading in ("contender", "pages/s, median", "all repeats", "ms main", "ms workers", "ms broker"):
        table.add_column(heading, justify="left" if heading == "contender" else "right")
    for name, one in figures.items():
        rates = " ".join(f"{rate:,.0f}" for rate in one.pages_per_s)
        used = [f"{one.used(part):.2f}" for part in ("main", "workers", "broker")]
        table.add_row(name, f"{statistics.median(one.pages_per_s):,.0f}", rates, *used)
    Console(width=120).print(table)


def report_latency(latencies: Sequence[Latency]) -> None:
    """Print the latencies at each rate."""
    table = Table(title=f"publish → verdict, 1 worker; cores busy, of {os.cpu_count()}")
    for heading in ("pages/s", "p50 ms", "p99 ms", *latencies[0].cores, "total"):
        table.add_column(heading, justify="right")
    for one in latencies:
        busy = [f"{cores:.2f}" for cores in (*one.cores.values(), sum(one.cores.values()))]
        table.add_row(f"{one.rate:,.0f}", f"{one.quantile(0.5) * 1e3:,.0f}", f"{one.quantile(0.99) * 1e3:,.0f}", *busy)
    Console(width=120).print(table)


def main() -> None:
    """Measure throughput, then latency, and print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="throughput runs of each contender (default: 3)")
    parser.add_argument("--text", type=int, default=24_000, help="text pages of a repeat (default: 24,000)")
    parser.add_argument("--html", type=int, default=1500, help="HTML pages of a repeat; 0: none (default: 1,500)")
    parser.add_argument("--seconds", type=float, default=20.0, help="duration of each latency run (default: 20)")
    arguments = parser.parse_args()
    work = loads(arguments)
    measured = {load.name: {name: Figures() for name in load.contenders} for load in work}
    with Cluster() as cluster, tempfile.TemporaryDirectory() as folder:
        bench = Bench(cluster, Path(folder))
        for _ in range(arguments.repeats):
            for load in work:
                for name, make in load.contenders.items():
                    bench.rate(make(), load.pages, measured[load.name][name])
        for load in work:
            report(load, measured[load.name])
        text = measured[work[0].name]
        highest = {name: statistics.median(one.pages_per_s) for name, one in text.items()}
        print(f"serve, 1 worker : plain consumer = {highest['serve, 1 worker'] / highest['plain consumer']:.1f}")
        rates = [highest["serve, 1 worker"] / part for part in LATENCY_PARTS]
        pages = list(text_pages(SEED + 1, FIRST_LOAD + int(rates[0] * arguments.seconds)))
        first_load, pages = pages[:FIRST_LOAD], pages[FIRST_LOAD:]
        latencies = [bench.latency(first_load, pages[: int(rate * arguments.seconds)], rate) for rate in rates]
    report_latency(latencies)


if __name__ == "__main__":
    main()
