"""Claim: memory of crawl and service is bounded over a million pages, and while the broker is frozen.

    python -m benchmarks.memory [--pages 1000000] [--frozen 60] [--processes 1] [--plot PNG] [--json FILE]

A crawl publishes generated pages (benchmarks.service.feed_crawl) while one service answers them. After half
of the pages the only broker is frozen (SIGSTOP) for a minute and then resumed. Resident memory of the crawl
and of the service with its workers is sampled every second. Bounds on the growth, checked at the end:

    crawl     CRAWL_MB above its memory after the first tenth of the pages
    service   SERVICE_MB, WORKER_MB for a worker's replacement, which starts beside it, and BYTES_A_PAGE for each
              page kept since then, above its memory after the first tenth of the pages
    both      FROZEN_MB during the freeze

The exit code is 1 if a bound is exceeded.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka.errors import KafkaError
from rich.console import Console
from rich.table import Table

from benchmarks.service.contenders import TwinsieveContender
from benchmarks.service.usage import resident_bytes
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.topics import Topics, create
from deploy.kafka import Cluster
from deploy.kafka.die_with_parent import start_dying_with_parent
from tests.chaos.processes import descendants
from tests.chaos.reading import reader

CRAWL_MB, SERVICE_MB, WORKER_MB, FROZEN_MB = 96, 192, 300, 96
BYTES_A_PAGE = 1000
MB = 1 << 20
PATIENCE_S = 7200.0


@dataclass(frozen=True, slots=True)
class Sample:
    """Pages so far, resident bytes of crawl and service, and the broker's state, after `at_s` seconds."""

    at_s: float
    published: int
    answered: int
    kept: int
    crawl: int
    service: int
    frozen: bool


class MemoryRun:
    """A crawl and a service on one broker, and samples of their memory."""

    def __init__(self, cluster: Cluster, folder: Path, pages: int, processes: int) -> None:
        self._cluster = cluster
        self._pages = pages
        self._topics = Topics("memory.")
        create(Connection(cluster.bootstrap), self._topics)
        self._reader = reader(cluster.bootstrap, [self._topics.pages])
        self._service = TwinsieveContender(processes)
        self._service.start(cluster.bootstrap, self._topics, folder)
        command = [sys.executable, "-m", "benchmarks.service.feed_crawl", cluster.bootstrap, self._topics.prefix]
        self._log = folder / "crawl.log"
        with self._log.open("wb") as log:
            self._crawl = start_dying_with_parent([*command, str(pages)], log)
        self.samples: list[Sample] = []
        self._began = time.monotonic()
        self._frozen = False

    def run(self, frozen_s: float) -> None:
        """Sample until all pages are answered; freeze the broker after half of them are published."""
        freeze_at = thaw_at = None
        while not self.samples or self.samples[-1].answered < self._pages:
            time.sleep(1.0)
            sample = self._sample()
            self.samples.append(sample)
            if sample.at_s > PATIENCE_S or (self._crawl.poll() or 0) != 0:
                raise RuntimeError(f"{sample}, the crawl ended with {self._crawl.poll()}: {self._log.read_text()}")
            if freeze_at is None and sample.published >= self._pages // 2:
                freeze_at, thaw_at = sample.at_s, sample.at_s + frozen_s
                self._cluster.pause(0)
                self._frozen = True
            if self._frozen and thaw_at is not None and sample.at_s >= thaw_at:
                self._cluster.resume(0)
                self._frozen = False
        self._crawl.wait(60)
        self._service.stop()
        print(self._log.read_text().strip())

    def _sample(self) -> Sample:
        last = self.samples[-1] if self.samples else None
        pid = self._service.pid
        service = [] if pid is None else [pid, *descendants(pid)]
        try:
            answered = int(self._service.value("twinsieve_records_total", step="decide"))
            kept = int(self._service.value("twinsieve_entries"))
        except OSError:  # the service does not listen yet
            answered, kept = 0, 0
        return Sample(
            at_s=time.monotonic() - self._began,
            published=self._published() if not self._frozen else last.published if last else 0,
            answered=answered,
            kept=kept,
            crawl=resident_bytes([self._crawl.pid, *descendants(self._crawl.pid)]),
            service=resident_bytes(service),
            frozen=self._frozen,
        )

    def _published(self) -> int:
        try:
            return sum(self._reader.end_offsets(list(self._reader.assignment()), timeout_ms=5000).values())
        except KafkaError:
            return self.samples[-1].published if self.samples else 0


def exceeded_bounds(samples: Sequence[Sample]) -> list[str]:
    """Return a sentence for each bound that was exceeded."""
    total = samples[-1].published
    running = [sample for sample in samples if sample.published >= total // 10]
    crawl, service = running[0].crawl, running[0].service
    found = []
    maximum = max((sample for sample in running if sample.crawl), key=lambda sample: sample.crawl)
    if maximum.crawl > crawl + CRAWL_MB * MB:
        found.append(f"crawl: {maximum.crawl / MB:.0f} MB after {maximum.at_s:.0f} s, {crawl / MB:.0f} MB at a tenth")
    for sample in running:
        allowed = service + (SERVICE_MB + WORKER_MB) * MB + BYTES_A_PAGE * (sample.kept - running[0].kept)
        if sample.service > allowed:
            found.append(
                f"service: {sample.service / MB:.0f} MB with {sample.kept} kept, {allowed / MB:.0f} MB allowed"
            )
            break
    frozen = [sample for sample in samples if sample.frozen]
    for name in ("crawl", "service"):
        grown = max(getattr(sample, name) for sample in frozen) - getattr(frozen[0], name)
        if grown > FROZEN_MB * MB:
            found.append(f"{name}: grew by {grown / MB:.0f} MB while the broker was frozen")
    return found


def report(samples: Sequence[Sample]) -> None:
    """Print a table of eleven moments."""
    table = Table(title=f"{samples[-1].published} pages, {samples[-1].kept} kept")
    for heading in ("s", "published", "answered", "kept", "crawl MB", "service MB", "broker"):
        table.add_column(heading, justify="right")
    for place in range(11):
        sample = samples[place * (len(samples) - 1) // 10]
        counts = (sample.published, sample.answered, sample.kept, sample.crawl // MB, sample.service // MB)
        table.add_row(f"{sample.at_s:.0f}", *(f"{count:,}" for count in counts), "frozen" if sample.frozen else "")
    Console(width=120).print(table)


def main() -> None:
    """Run the benchmark and print its figures; exit with 1 if a bound was exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_000_000, help="pages to publish (default: 1,000,000)")
    parser.add_argument(
        "--frozen", type=float, default=60.0, metavar="SECONDS", help="how long the broker is frozen (default: 60)"
    )
    parser.add_argument("--processes", type=int, default=1, help="workers of the service (default: 1)")
    arguments = parser.parse_args()
    with Cluster() as cluster, tempfile.TemporaryDirectory() as folder:
        run = MemoryRun(cluster, Path(folder), arguments.pages, arguments.processes)
        run.run(arguments.frozen)
    report(run.samples)
    problems = exceeded_bounds(run.samples)
    print(*(problems or ["all bounds held"]), sep="\n")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
