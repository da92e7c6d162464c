"""What `twinsieve plan` predicts, beside what was measured: its constants, and its simulation of queues.

- store: memory, disk and processor time of one decider that keeps `--pages` pages (`benchmarks.store`, which generates
  them; the last 200,000 are decided), measured here. Memory and disk are predicted by the constants of the plan;
  processor time by what a decider took here with a fifth of the pages, and 5 µs more with each tenfold number, as it
  grew from 10^6 to 10^7 in docs/performance.md.
- recorded: the same for the sizes in docs/performance.md, without running them. Memory was fitted to the first two.
- queue: pages come at random times to a real decider, which takes those that wait, at most 512. Its work is real and
  its waiting is computed from the processor time of each batch, so what else runs on the machine counts little. The
  simulation gets the mean cost of a batch and of a page, and how much it varies, from batches of 16 to 512 in
  between, since the speed of the machine changes. Commits have no part in either.
- service: latency of `serve` in docs/performance.md, simulated with the constants of the plan. At 831 pages/s the time
  of a hop was fitted to p50.

Shards and resolver are not measured here. Differences are of the prediction, in per cent of the measurement.

    python -m benchmarks.plan [--pages 1000000] [--kept 200000] [--folder DIR]
"""

import argparse
import math
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from benchmarks.store import BATCH, PREPARED, StoreOptions, Subject, in_process, warm_up
from benchmarks.store_pages import COPIES, StreamPages
from dedup_service.core.capacity.pipeline import Pipeline, PipelineStage, simulate
from dedup_service.core.capacity.shard_bounds import shard_memory
from dedup_service.core.capacity.unit_costs import UnitCosts
from dedup_service.core.page import PreparedPage

SIZES = (16, 32, 64, 128, 256, 512)
QUEUED, CALIBRATE_EVERY, SIMULATED = 200_000, 4_000, 500_000
HIGHEST = 50_000
DECIDED, TENFOLD_US = 200_000, 5.0
LOADS = (0.3, 0.5, 0.7)
SEED = 7

RECORDED = ((10**6, 225, 752), (10**7, 146, 723))
"""Kept pages, bytes of memory and of disk a page: docs/performance.md, The store."""

RECORDED_MEMORY_LARGE = (10**8, 137)
"""There the disk had a part of the evidence only."""

SERVICE = ((831, 96, 171), (1_662, 95, 225), (3_325, 127, 287))
"""Pages/s, p50 and p99 in ms: docs/performance.md, Kafka: latency."""


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """A prediction and a measurement in the same unit."""

    what: str
    predicted: float
    measured: float
    unit: str

    @property
    def difference(self) -> float:
        """How far the prediction is off, as a share of the measurement."""
        return self.predicted / self.measured - 1


def store_figures(pages: int, folder: Path, costs: UnitCosts) -> Iterator[PlanCheck]:
    """Measure a decider here, and compare."""
    options = StoreOptions(folder, decided=DECIDED)
    small, large = (in_process(kept, options) for kept in (pages // 5, pages))
    yield PlanCheck(f"memory, {pages:,} kept", memory_page(pages, costs), large.anonymous_bytes / large.kept, "bytes")
    disk = sum(large.disk.values()) / large.kept
    yield PlanCheck(f"disk, {pages:,} kept", costs.disk_page.value, disk, "bytes")
    few, many = (1e6 / one.pages_a_processor_second for one in (small, large))
    yield PlanCheck(f"processor, {pages:,} kept", few + TENFOLD_US * math.log10(5), many, "µs/page")


def recorded_figures(costs: UnitCosts) -> Iterator[PlanCheck]:
    """Compare with docs/performance.md."""
    for pages, memory, disk in RECORDED:
        yield PlanCheck(f"memory, {pages:,} kept", memory_page(pages, costs), memory, "bytes")
        yield PlanCheck(f"disk, {pages:,} kept", costs.disk_page.value, disk, "bytes")
    pages, memory = RECORDED_MEMORY_LARGE
    yield PlanCheck(f"memory, {pages:,} kept", memory_page(pages, costs), memory, "bytes")


def memory_page(kept: int, costs: UnitCosts) -> float:
    """Return the bytes that a plan expects of each page, without the process."""
    return (shard_memory(kept, costs) - costs.memory_process.value) / kept


class MeasuredDecider:
    """A decider with kept pages, which tells the processor time of each batch."""

    def __init__(self, kept: int, folder: Path) -> None:
        options = StoreOptions(folder)
        warm_up(options, folder / "warm")
        self._stream = StreamPages((kept + HIGHEST + 2 * len(LOADS) * QUEUED + PREPARED) * COPIES // (COPIES - 1))
        self._subject = Subject(options, folder / "measured", self._stream, kept // COPIES * COPIES)
        self._next = kept // COPIES * COPIES // (COPIES - 1) // COPIES * COPIES
        self._ready: list[tuple[int, PreparedPage]] = []

    def decide(self, count: int) -> float:
        """Decide the next pages, and return the seconds of processor that it took."""
        while len(self._ready) < count:
            first, self._next = self._next, self._next + PREPARED
            self._ready += enumerate(self._stream.prepared(first, self._next), first + 1)
        batch, self._ready = self._ready[:count], self._ready[count:]
        began = time.thread_time()
        for _ in self._subject.decider.decide_all(batch):
            pass
        spent = time.thread_time() - began
        self._subject.after_batch(batch[-1][0])
        return spent

    def close(self) -> None:
        """Close the store."""
        self._subject.close()


def queued(decider: MeasuredDecider, rate: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Let pages come at random times to the decider.

    Returns:
        How long each page took, and the times of batches of SIZES (a row each time), which were decided in between and
        have no part in the first ones. All are in seconds.
    """
    arrival = np.cumsum(np.random.default_rng(SEED).exponential(1 / rate, QUEUED))
    now, start, latency = 0.0, 0, []
    calibrated: list[list[float]] = []
    while start < QUEUED:
        if start >= len(calibrated) * CALIBRATE_EVERY:
            calibrated.append([decider.decide(size) for size in SIZES])
        now = max(now, float(arrival[start]))
        size = min(BATCH, int(np.searchsorted(arrival, now, side="right")) - start)
        now += decider.decide(size)
        latency.append(now - arrival[start : start + size])
        start += size
    return np.concatenate(latency)[QUEUED // 5 :], np.array(calibrated)


def fitted_pipeline(times: npt.NDArray[np.float64]) -> Pipeline:
    """Return a pipeline of one decider that takes such times for batches of SIZES, float64[n, sizes] in seconds.

    A batch and a page cost what a line through the means says. Jitter is that of which times have the distance of their
    quartiles, ln 3 times their mean if all of a time were exponential.
    """
    means = times.mean(axis=0)
    page_s, batch_s = np.polyfit(SIZES, means, 1, w=1 / means)
    low, high = np.quantile(times, (0.25, 0.75), axis=0)
    free = PipelineStage(0.0)
    return Pipeline(
        fingerprinter=PipelineStage(float(page_s), max(0.0, float(batch_s))),
        shard=free,
        resolver=free,
        batch_pages=BATCH,
        work_jitter=float(np.mean((high - low) / means) / np.log(3)),
    )


def queue_figures(kept: int, folder: Path) -> Iterator[PlanCheck]:
    """Compare a real decider behind a queue with the simulation."""
    decider = MeasuredDecider(kept, folder)
    spent = [decider.decide(BATCH) for _ in range(HIGHEST // BATCH)]
    most = BATCH / float(np.mean(spent))
    for load in LOADS:
        measured, times = queued(decider, load * most)
        run = simulate(fitted_pipeline(times), load * most, SIMULATED)
        at = f"at {load * most:,.0f} pages/s"
        yield PlanCheck(f"p50 {at}", run.p50_s * 1e3, float(np.median(measured)) * 1e3, "ms")
        yield PlanCheck(f"p99 {at}", run.p99_s * 1e3, float(np.quantile(measured, 0.99)) * 1e3, "ms")
    decider.close()


def service_figures(costs: UnitCosts) -> Iterator[PlanCheck]:
    """Compare the simulated service, one process with both steps, with docs/performance.md."""
    worker = costs.text_letter.value * 700
    pipeline = Pipeline(
        fingerprinter=PipelineStage(worker + costs.text_client.value, costs.append_s.value),
        shard=PipelineStage(costs.text_client.value / 2),
        resolver=PipelineStage(0.0),
        batch_pages=BATCH,
        hop_s=costs.hop_s.value,
    )
    for rate, p50, p99 in SERVICE:
        run = simulate(pipeline, rate, 40_000)
        yield PlanCheck(f"p50 at {rate:,} pages/s", run.p50_s * 1e3, p50, "ms")
        yield PlanCheck(f"p99 at {rate:,} pages/s", run.p99_s * 1e3, p99, "ms")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_000_000, help="kept pages of the store")
    parser.add_argument("--kept", type=int, default=200_000, help="kept pages of the decider behind a queue")
    parser.add_argument("--queue-only", action="store_true", help="do not measure the store")
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure")
    arguments = parser.parse_args()
    costs = UnitCosts()
    table = Table("", "what", "predicted", "measured", "unit", "difference", title="Plan and measurement")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        parts = {
            "recorded": recorded_figures(costs),
            "service, recorded": service_figures(costs),
            "queue, here": queue_figures(arguments.kept, Path(name)),
        }
        if not arguments.queue_only:
            parts["store, here"] = store_figures(arguments.pages, Path(name), costs)
        for part, checks in parts.items():
            for one in checks:
                values = (f"{one.predicted:,.4g}", f"{one.measured:,.4g}", one.unit, f"{one.difference:+.0%}")
                table.add_row(part, one.what, *values)
    table.caption = f"load {os.getloadavg()[0]:.1f}"
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
