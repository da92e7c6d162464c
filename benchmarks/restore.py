"""Time and memory of a restore from the log alone, and from a snapshot and the rest of the log.

    python -m benchmarks.restore [--entries 1000000] [--bootstrap ADDRESS]

A real broker has a log of N page records in which every verdict is known (`known_log`). Each step runs in a
separate process, so that its peak of resident memory can be told apart:

    fill     append N - N / 20 records, 2,000 in a transaction
    log      restore with an empty folder, then write a snapshot
    fill     append a tail of N / 20 records
    both     restore from the snapshot and the tail

Verified after each restore: the counts by verdict and the number of entries; the verdicts on the last 4,000
records, as they would be written; and the verdicts on copies of 4,000 pages from anywhere in the log
(original and distance).
"""

import argparse
import multiprocessing
import random
import resource
import shutil
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from dedup_service.core.decision.replica import Replica
from dedup_service.core.verdict import Distance, VerdictKind
from dedup_service.runtime.events import RestoreEvent
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.messages.log_record import log_message, log_messages
from dedup_service.runtime.kafka.messages.verdict import read_verdict
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.restore import RestoredReplica, restore
from dedup_service.runtime.kafka.topics import Topics, create
from deploy.kafka import Cluster
from tests import known_log

SEED = 2026
SAMPLE = 4000
TRANSACTION = 2000
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class RestoreRun:
    """The settings that all steps share."""

    bootstrap: str
    prefix: str
    folder: Path

    @property
    def connection(self) -> Connection:
        """The connection to the broker."""
        return Connection(self.bootstrap)

    @property
    def log(self) -> str:
        """The name of the log's topic."""
        return Topics(self.prefix).fingerprints


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the table. peak_bytes: peak resident memory of the step's process."""

    step: str
    records: int
    seconds: float
    peak_bytes: int
    note: str


def fill(run: RestoreRun, start: int, stop: int) -> Figure:
    """Append pages `start` to `stop`; the policy precedes page 0."""
    producer = TransactionalProducer(run.connection, f"{run.prefix}fill", max_bytes=8 * MEGABYTE)
    producer.open()
    began = time.monotonic()
    if start == 0:
        producer.commit([log_message(run.log, known_log.policy(uuid.uuid4().hex))])
    with bar("fill", stop - start) as show:
        for first in range(start, stop, TRANSACTION):
            last = min(stop, first + TRANSACTION)
            records = known_log.pages(first, last)
            producer.commit([message for message, _ in log_messages(run.log, records)])
            show(last - start)
    producer.close()
    return Figure("fill", stop - start, time.monotonic() - began, peak_bytes(), "")


def restored(run: RestoreRun, entries: int, records: int, step: str) -> Figure:
    """Restore all `entries` records, `records` of them from the log; verify the state, and write a snapshot."""
    log = LogConsumer(run.connection, run.log)
    below = (entries - SAMPLE) // known_log.PARTITIONS
    written = {(known_log.TOPIC, partition): below for partition in range(known_log.PARTITIONS)}
    facts: list[RestoreEvent] = []
    with LocalState.open(run.folder) as local, bar(step, None) as show:
        began = time.monotonic()

        def progress(fact: RestoreEvent) -> None:
            facts.append(fact)
            show(fact.messages, fact.total)

        state = restore(local, log, written, progress=progress)
        seconds = time.monotonic() - began
        assert state is not None
        began = time.monotonic()
        local.take_snapshot(state.replica, state.pending_outcomes, state.tail)
        stopped = time.monotonic() - began
        local.pages.wait()
        wrote = time.monotonic() - began
        peak = peak_bytes()
        verify(state, entries)
    log.close()
    size = sum(path.stat().st_size for path in local.pages.folder.iterdir())
    note = (
        f"kept pages {size / MEGABYTE:,.0f} MB; snapshot: decisions pause for {stopped:.2f} s, written in {wrote:.1f} s"
    )
    return Figure(step, records, seconds, peak, note)


def verify(state: RestoredReplica, entries: int) -> None:
    """Compare counts, pending outcomes and samples with the known verdicts; AssertionError if any differ."""
    kinds = Counter(known_log.role(number) for number in range(entries))
    assert all(state.replica.counts[kind.value] == count for kind, count in kinds.items()), state.replica.counts
    assert len(state.replica) == kinds[VerdictKind.UNIQUE], len(state.replica)
    pending = {
        number_of(source.partition, source.offset): outcome for source, outcome in state.pending_outcomes.items()
    }
    assert len(pending) >= SAMPLE, len(pending)
    for number, outcome in pending.items():
        verdict, _ = read_verdict(outcome.value)
        expect(number, verdict.kind, verdict.duplicate_of_url, verdict.distance)
    verify_copies(state.replica, entries)


def verify_copies(replica: Replica, entries: int) -> None:
    """Decide copies of random pages of the log. They are duplicates, so no entry is added or removed."""
    rng = random.Random(SEED)
    for at in range(SAMPLE):
        original = rng.randrange(entries // 10) * 10 + rng.randrange(7)
        outcome = replica.apply(replica.sequence + 1, known_log.record_of_copy(entries + at, original))
        verdict = None if outcome is None else outcome.verdict
        assert verdict is not None, original
        expected = VerdictKind.DUPLICATE, known_log.url_of(original), Distance(0, 0)
        assert (verdict.kind, verdict.duplicate_of_url, verdict.distance) == expected, (original, verdict)


def expect(number: int, kind: VerdictKind, original_url: str | None, distance: Distance) -> None:
    """Compare a verdict with the known one of page `number`."""
    known = known_log.known(number)
    url = None if known.original is None else known_log.url_of(known.original)
    assert (kind, original_url, distance) == (known.kind, url, known.distance), (number, kind, original_url, known)


def number_of(partition: int, offset: int) -> int:
    """Return the number of the page at this partition and offset."""
    return offset * known_log.PARTITIONS + partition


def peak_bytes() -> int:
    """Return the peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextmanager
def bar(title: str, total: int | None) -> Iterator[Callable[..., None]]:
    """Show a progress bar; yields a function of (done) or (done, total) that updates it."""
    columns = (TextColumn(f"{title:<8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done, total=total: progress.update(task, completed=done, total=total)


def in_process(step: Callable[..., Figure], *arguments: Any) -> Figure:
    """Run a step in a separate process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(step, *arguments).result()


def measure(run: RestoreRun, entries: int) -> list[Figure]:
    """Run the four steps in order."""
    create(run.connection, Topics(run.prefix))
    tail = entries // 20
    figures = [
        in_process(fill, run, 0, entries - tail),
        in_process(restored, run, entries - tail, entries - tail, "log"),
    ]
    figures += [in_process(fill, run, entries - tail, entries), in_process(restored, run, entries, tail, "both")]
    return figures


def report(entries: int, figures: list[Figure]) -> None:
    """Print the table."""
    table = Table("step", "records", "seconds", "records/s", "peak MB", "", title=f"{entries:,} records, verified")
    for figure in figures:
        rate = figure.records / figure.seconds
        cells = f"{figure.records:,}", f"{figure.seconds:,.1f}", f"{rate:,.0f}", f"{figure.peak_bytes / MEGABYTE:,.0f}"
        table.add_row(figure.step, *cells, figure.note)
    Console(width=140).print(table)


def main() -> None:
    """Parse the arguments, start a broker if none is named, and run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1_000_000, help="records of the log; a multiple of 2,000")
    parser.add_argument("--bootstrap", help="a broker to use; without it one is started and removed")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="twinsieve-restore-"))
    prefix = f"restore-{uuid.uuid4().hex[:8]}."
    try:
        if options.bootstrap:
            figures = measure(RestoreRun(options.bootstrap, prefix, folder), options.entries)
        else:
            with Cluster() as cluster:
                figures = measure(RestoreRun(cluster.bootstrap, prefix, folder), options.entries)
    finally:
        shutil.rmtree(folder)
    report(options.entries, figures)


if __name__ == "__main__":
    main()
