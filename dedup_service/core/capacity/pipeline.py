"""A simulation of the pipeline: how many pages a second go through it, and how long a page takes.

    pages ─▶ fingerprinters ─▶ log ─▶ shards (S of them, R replicas each) ─▶ answers ─▶ resolver ─▶ outcomes
                                        ▲                                                           │
                                        └────────────── not more than W pages ahead of ─────────────┘

Every stage takes what comes in the order of the log, so no calendar of events is needed: the time at which a stage is
done with a batch follows from the times of that batch at the stages before it, of the batch before at the same stage,
and, for a shard, of the outcome of the page W before. These recurrences are the whole simulation (max-plus algebra).

- Pages come at random times (a Poisson process) or, to find the highest rate, all at once.
- A fingerprinter that becomes free takes the pages that wait, up to a batch: batches grow with the load.
- A message takes `hop_s` from its producer to its readers, and never passes an earlier one. From `pages` it is the same
  for each page; later it varies.
- Of the replicas of a shard the first answer counts; the resolver waits for the last shard.
- Times vary: each is a mean times (1 - j + j·E), with E exponential of mean 1, and j `work_jitter` or `hop_jitter`.
- A process pauses each so many pages, as for a commit; those of shards and replicas are at different pages.

All randomness comes from SplitMix64 and a seed, so a run can be repeated.

Units: seconds, pages.
Source: Baccelli, Cohen, Olsder, Quadrat, "Synchronization and Linearity", Wiley 1992, chapter 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heapreplace

import numpy as np
import numpy.typing as npt

from dedup_service.core.splitmix import mix64

Times = npt.NDArray[np.float64]

_GOLDEN = (5**0.5 - 1) / 2
WARM_UP = 0.2
"""Share of the pages at the beginning that do not count: the pipeline is empty then."""


@dataclass(frozen=True, slots=True)
class PipelineStage:
    """What a batch costs in a stage.

    Attributes:
        page_s: Seconds for each page.
        batch_s: Seconds for each batch, whatever it has.
        pause_s: Seconds of a pause, as for a commit.
        pause_pages: Pages from one pause to the next; 0 if there are none.
    """

    page_s: float
    batch_s: float = 0.0
    pause_s: float = 0.0
    pause_pages: int = 0

    def batch(self, pages: int) -> float:
        """Return the mean seconds of a batch of so many pages."""
        return self.batch_s + self.page_s * pages

    def pauses(self, end: int, pages: int, shift: Times) -> Times:
        """Return the seconds of pauses in a batch of `pages` pages, of which the last is number `end`.

        shift: of each process, by which share of `pause_pages` its pauses come later, of any shape.
        """
        if not self.pause_pages:
            return np.zeros_like(shift)
        shifted = shift * self.pause_pages
        passed = np.floor((end - shifted) / self.pause_pages) - np.floor((end - pages - shifted) / self.pause_pages)
        return self.pause_s * passed


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A pipeline to simulate.

    Attributes:
        fingerprinter: Cost of a batch in a fingerprinter.
        shard: The same in a shard.
        resolver: The same in the resolver.
        fingerprinters: Threads that fingerprint.
        shards: Shards S.
        replicas: Replicas of each.
        window: Pages W by which shards may be ahead of outcomes, at least `batch_pages`.
        batch_pages: Pages of a batch at most.
        hop_s: Seconds from an append until readers have it.
        answer_hop_s: The same from a shard to the resolver; 0 if both are one process.
        work_jitter: Share of the time of a batch that is random, 0 to 1.
        hop_jitter: The same of a hop.
    """

    fingerprinter: PipelineStage
    shard: PipelineStage
    resolver: PipelineStage
    fingerprinters: int = 1
    shards: int = 1
    replicas: int = 1
    window: int = 4096
    batch_pages: int = 100
    hop_s: float = 0.0
    answer_hop_s: float = 0.0
    work_jitter: float = 0.12
    hop_jitter: float = 0.5


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """What a simulated run gave.

    Attributes:
        pages_s: Pages a second that left the pipeline.
        p50_s: Median time from the append of a page to `pages` until a reader has its outcome, seconds.
        p99_s: 99th percentile of that time, seconds.
        window_share: Share of batches that a shard began only when an outcome came.
    """

    pages_s: float
    p50_s: float
    p99_s: float
    window_share: float


class _Jitter:
    """Random factors with mean 1, from SplitMix64."""

    def __init__(self, seed: int) -> None:
        self._next = np.uint64(seed) << np.uint64(40)

    def exponential(self, count: int) -> Times:
        """Return `count` exponential values of mean 1."""
        numbers = np.arange(count, dtype=np.uint64) + self._next
        self._next = self._next + np.uint64(count)
        uniform = (mix64(mix64(numbers + np.uint64(0x9E3779B97F4A7C15))) >> np.uint64(11)).astype(np.float64)
        return -np.log((uniform + 0.5) / (1 << 53))

    def factors(self, share: float, count: int) -> Times:
        """Return `count` factors of which `share` is random."""
        return 1 - share + share * self.exponential(count)


def simulate(pipeline: Pipeline, rate: float | None, pages: int, seed: int = 1) -> PipelineRun:
    """Simulate `pages` pages.

    Args:
        pipeline: What they go through.
        rate: Pages a second that come; None: all are there at the beginning.
        pages: How many, 1 or more.
        seed: Of the random times.

    Returns:
        Throughput and latency, without the first fifth of the pages.
    """
    jitter = _Jitter(seed)
    arrival = np.zeros(pages) if rate is None else np.cumsum(jitter.exponential(pages) / rate)
    ends, ready = _fingerprint(pipeline, arrival, jitter)
    outcome, held = _decide(pipeline, ends, ready, jitter)
    sizes = np.diff(ends, prepend=0)
    first = min(int(np.searchsorted(ends, pages * WARM_UP)), len(ends) - 1)
    # Batches are in the order of the log, their pages in that of arrival: close enough, as fingerprinters are alike.
    latency = np.repeat(outcome, sizes) - arrival
    late = latency[int(ends[first]) - int(sizes[first]) :]
    begun, done = float(outcome[first]), float(outcome[-1])
    through = (pages - int(ends[first])) / (done - begun) if done > begun else pages / done
    return PipelineRun(through, float(np.median(late)), float(np.quantile(late, 0.99)), held / len(ends))


def highest_rate(pipeline: Pipeline, pages: int, seed: int = 1) -> float:
    """Return the pages a second that go through if more wait at any time."""
    return simulate(pipeline, None, pages, seed).pages_s


def _fingerprint(pipeline: Pipeline, arrival: Times, jitter: _Jitter) -> tuple[npt.NDArray[np.int64], Times]:
    """Return of each batch of the log the number of pages up to its end, and when readers have it."""
    pages = len(arrival)
    at_reader = arrival + pipeline.hop_s
    free = [0.0] * pipeline.fingerprinters
    heapify(free)
    factors = _endless(jitter, pipeline.work_jitter)
    batches: list[tuple[float, int]] = []
    stage, together = pipeline.fingerprinter, np.array(0.0)
    start = 0
    while start < pages:
        begin = max(free[0], float(at_reader[start]))
        waiting = int(np.searchsorted(at_reader, begin, side="right")) - start
        size = max(1, min(waiting, pipeline.batch_pages))
        pauses = float(stage.pauses(start + size, size, together))
        done = begin + stage.batch(size) * next(factors) + pauses
        heapreplace(free, done)
        batches.append((done, size))
        start += size
    batches.sort()
    ends = np.cumsum([size for _, size in batches])
    ready = np.array([done for done, _ in batches]) + _delays(pipeline, len(batches), jitter, pipeline.hop_s)
    return ends, np.maximum.accumulate(ready)


def _decide(pipeline: Pipeline, ends: npt.NDArray[np.int64], ready: Times, jitter: _Jitter) -> tuple[Times, int]:
    """Return of each batch when readers have its outcomes, and how many batches waited for an outcome."""
    count, shape = len(ends), (pipeline.shards, pipeline.replicas)
    sizes = np.diff(ends, prepend=0)
    # The batch whose outcome the last page of a batch needs: that of the page W before it.
    needed = np.searchsorted(ends, ends - pipeline.window, side="left")
    outcome, free = np.zeros(count), np.zeros(shape)
    cells = pipeline.shards * pipeline.replicas
    shift: Times = np.arange(1, cells + 1, dtype=np.float64) * _GOLDEN % 1.0
    resolver_free, answered, held = 0.0, 0.0, 0
    decided_at = 0.0
    resolving = jitter.factors(pipeline.work_jitter, count)
    hops = _delays(pipeline, count, jitter, pipeline.hop_s)
    for batch in range(count):
        size = int(sizes[batch])
        may_begin = float(ready[batch])
        if ends[batch] > pipeline.window:
            outcome_at = float(outcome[int(needed[batch])])
            held += outcome_at > max(may_begin, float(free.min()))
            may_begin = max(may_begin, outcome_at)
        work = pipeline.shard.batch(size) * jitter.factors(pipeline.work_jitter, cells)
        pauses = pipeline.shard.pauses(int(ends[batch]), size, shift)
        free = np.maximum(free, may_begin) + (work + pauses).reshape(shape)
        answers = free + _delays(pipeline, cells, jitter, pipeline.answer_hop_s).reshape(shape)
        answered = max(answered, float(answers.min(axis=1).max()))
        resolver_free = max(resolver_free, answered) + pipeline.resolver.batch(size) * float(resolving[batch])
        decided_at = max(decided_at, resolver_free + float(hops[batch]))
        outcome[batch] = decided_at
    return outcome, held


def _delays(pipeline: Pipeline, count: int, jitter: _Jitter, mean_s: float) -> Times:
    return mean_s * jitter.factors(pipeline.hop_jitter, count)


def _endless(jitter: _Jitter, share: float) -> Iterator[float]:
    """Yield random factors for ever."""
    while True:
        yield from jitter.factors(share, 1024).tolist()
