"""Claim: a backfill adds pages at nearly half of `filter`'s rate or more, and the crawl's p99 stays below two seconds.

The claim is about Chinese text of 2 KB with the default share of 0.5, on two cores that broker, service, crawl and
backfill share (docs/backfill.md has what was measured).

    python -m benchmarks.backfill [--pages 100000] [--crawl 50] [--seconds 20] [--share 0.5 --share 1] [--json FILE]

One file of generated pages, a tenth of them copies (benchmarks.service.load), seed 2026. First `filter` decides it
alone. Then, for each share, on fresh topics: a service with one worker answers a first load; pages of a crawl are
published at `--crawl` a second, for `--seconds` alone, and on while the backfill runs and until what it added is
decided. Latency is from a page's timestamp to its verdict at a consumer (benchmarks.service.latency).

Printed: pages a second of `filter` and of each backfill, by the summaries of the commands; p50 and p99 of the crawl
alone and meanwhile; the load of the machine before and after.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.service.contenders import TwinsieveContender
from benchmarks.service.latency import Arrivals, wait_for
from benchmarks.service.load import text_pages
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.state.pending_outcomes import BACKFILLED
from dedup_service.runtime.kafka.state.step_offsets import BACKFILL_DECIDED, StepOffsets
from dedup_service.runtime.kafka.topics import Layout, Topics, create
from deploy.kafka import Cluster
from tests.chaos.publishing import PacedPublisher
from tests.chaos.reading import read_all

SEED = 2026
FIRST_LOAD = 1000


@dataclass(frozen=True, slots=True)
class BackfillFigures:
    """Of a backfill. pages_per_s: of the command; decided_per_s: until the last page was decided. Latencies in s."""

    share: float
    pages_per_s: float
    decided_per_s: float
    waited_s: float
    alone: tuple[float, float]
    meanwhile: tuple[float, float]
    meanwhile_pages: int


def command(*arguments: object) -> dict[str, Any]:
    """Run `twinsieve` and return its summary."""
    line = [sys.executable, "-m", "dedup_service.interfaces.cli", *map(str, arguments), "--json"]
    done = subprocess.run(line, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    return json.loads(done.stderr.decode().splitlines()[-1])  # type: ignore[no-any-return]


def decided(bootstrap: str, topics: Topics) -> int:
    """Return the sequence below which all pages of files are decided."""
    with closing(StepOffsets(Connection(bootstrap), topics)) as offsets:
        offsets.refresh()
        return max((at for place, at in offsets.of(BACKFILL_DECIDED).items() if place == BACKFILLED), default=0)


def quantiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Return p50 and p99."""
    ordered = sorted(seconds)
    return ordered[len(ordered) // 2], ordered[int(0.99 * len(ordered))]


def backfill(
    bootstrap: str, topics: Topics, folder: Path, file: Path, share: float, crawl: float, alone_s: float
) -> BackfillFigures:
    """Measure one backfill beside a crawl."""
    create(Connection(bootstrap), topics, Layout(partitions=4))
    contender = TwinsieveContender(1)
    contender.start(bootstrap, topics, folder)
    stop = threading.Event()
    try:
        wait_for(lambda: contender.ready, "the service was not ready")
        arrivals = Arrivals(bootstrap, topics, sys.maxsize)
        arrivals.start()
        publisher = PacedPublisher(bootstrap, topics.pages)
        publisher.publish(text_pages(SEED + 1, FIRST_LOAD), rate=None)
        wait_for(lambda: len(arrivals.arrived_at) >= FIRST_LOAD, "the first load was not answered")
        crawling = threading.Thread(
            target=publisher.publish,
            args=(text_pages(SEED + 2, 10**7),),
            kwargs={"rate": crawl, "stopped": stop.is_set},
            daemon=True,
        )
        crawling.start()
        first = time.time()
        time.sleep(alone_s)
        began = time.time()
        where = ("--bootstrap", bootstrap, "--prefix", topics.prefix)
        summary = command("backfill", file, *where, "--share", share)
        position = 0

        def is_decided() -> bool:
            nonlocal position
            before, position = position, decided(bootstrap, topics)
            return 0 < before == position

        if summary["not_decided_yet"]:
            wait_for(is_decided, "the pages were not decided")
        ended = time.time()
        stop.set()
        crawling.join()
        published = publisher.published
        wait_for(lambda: len(arrivals.arrived_at) >= published, "the crawl was not answered")
    finally:
        stop.set()
        contender.stop()
    sent = {
        (one.partition, one.offset): one.timestamp / 1000 for one in read_all(bootstrap, [topics.pages])[topics.pages]
    }
    taken = [(sent[place], at - sent[place]) for place, at in arrivals.arrived_at.items()]
    meanwhile = [took for at, took in taken if began <= at < ended]
    return BackfillFigures(
        share,
        summary["pages"] / summary["seconds"],
        summary["pages"] / (ended - began),
        summary["waited_s"],
        quantiles([took for at, took in taken if first <= at < began]),
        quantiles(meanwhile),
        len(meanwhile),
    )


def main() -> None:
    """Measure `filter`, then a backfill with each share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=100_000, help="pages of the file (default: 100,000)")
    parser.add_argument("--crawl", type=float, default=50.0, help="pages of the crawl a second (default: 50)")
    parser.add_argument("--seconds", type=float, default=20.0, help="duration of the crawl alone (default: 20)")
    parser.add_argument("--share", type=float, action="append", help="repeatable (default: 0.5 and 1)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    before = os.getloadavg()
    with Cluster() as cluster, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "pages.jsonl"
        with file.open("wb") as lines:
            lines.writelines((one.value or b"") + b"\n" for one in text_pages(SEED, arguments.pages))
        command("filter", file, "-o", os.devnull)  # compiled code is there from here on
        alone = command("filter", file, "-o", os.devnull)
        rate = alone["pages"] / alone["seconds"]
        figures = [
            backfill(
                cluster.bootstrap,
                Topics(f"share{number}."),
                folder / f"run{number}",
                file,
                share,
                arguments.crawl,
                arguments.seconds,
            )
            for number, share in enumerate(arguments.share or [0.5, 1.0])
        ]
    table = Table(
        title=f"{arguments.pages:,} pages beside a crawl of {arguments.crawl:g}/s; filter alone: {rate:,.0f}/s"
    )
    for heading in (
        "share",
        "pages/s",
        "of filter",
        "decided/s",
        "waited s",
        "alone p50/p99 ms",
        "meanwhile p50/p99 ms",
    ):
        table.add_column(heading, justify="right")
    for one in figures:
        latencies = [f"{1e3 * p50:,.0f} / {1e3 * p99:,.0f}" for p50, p99 in (one.alone, one.meanwhile)]
        table.add_row(
            f"{one.share:g}",
            f"{one.pages_per_s:,.0f}",
            f"{one.pages_per_s / rate:.2f}",
            f"{one.decided_per_s:,.0f}",
            f"{one.waited_s:.1f}",
            *latencies,
        )
    Console(width=120).print(table)
    print(f"load average before {before}, after {os.getloadavg()}; {os.cpu_count()} cores")
    if arguments.json:
        rows = {"filter_pages_per_s": rate, "backfills": [asdict(one) for one in figures]}
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
