"""Facts as Prometheus metrics: of the service, a crawl, the filter.

How: an observer counts in a registry of its own; what is a state rather than an event is asked for when somebody
scrapes. Names, units and labels: docs/metrics.md, which a test holds against this module.
Invariant: labels are bounded: verdicts, steps, parts of a step and kinds of problems are the code's own words, and
partitions are those assigned here. A URL or an error's text is never one.

What the feed has as Prometheus metrics, put together when somebody scrapes: it costs the stream nothing.

Names, units and labels: docs/metrics.md. Labels are bounded: channels, reasons and bounds are the code's own words.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from dedup_service.core.evaluation.scoring import Share
from dedup_service.core.verdict import VerdictKind
from dedup_service.interfaces.http.probes import Health
from dedup_service.runtime.events import BatchEvent, NullObserver, ProblemEvent
from dedup_service.runtime.kafka.status import ServiceStatus
from dedup_service.runtime.live_stats import LiveStats

__all__ = ["LiveStatsCollector", "Metrics"]

PREFIX = "twinsieve"
BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics(NullObserver):
    """An observer, and the registry that it fills. status, health: of a service. feed: of a dashboard."""

    def __init__(
        self,
        status: Callable[[], ServiceStatus] | None = None,
        health: Health | None = None,
        feed: LiveStats | None = None,
    ) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # a second series for each counter, asked for by nobody
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_Build())
        if status is not None and health is not None:
            registry.register(_Now(status, health))
        if feed is not None:
            registry.register(LiveStatsCollector(feed))
        self._lag_shown: dict[str, set[str]] = {}
        self._pages = Counter("pages", "Pages by verdict.", ["verdict"], PREFIX, registry=registry)
        self._records = Counter("records", "Input records done, by step.", ["step"], PREFIX, registry=registry)
        self._rejected = Counter("rejected_records", "No pages: dead letters.", ["step"], PREFIX, registry=registry)
        self._repeated = Counter("repeated_records", "Met again, and skipped.", ["step"], PREFIX, registry=registry)
        self._expired = Counter(
            "expired_records", "Deleted before they were read.", namespace=PREFIX, registry=registry
        )
        self._lost = Counter("lost_transactions", "Done again.", ["step"], PREFIX, registry=registry)
        self._problems = Counter("problems", "Survived, by kind.", ["step", "kind"], PREFIX, registry=registry)
        self._seconds = Histogram(
            "batch_seconds", "A batch's time by part.", ["step", "part"], PREFIX, registry=registry, buckets=BUCKETS_S
        )
        self._lag = Gauge(
            "lag_records", "Not done yet, by partition.", ["step", "partition"], PREFIX, registry=registry
        )
        self._entries = Gauge("entries", "Kept pages in the index.", namespace=PREFIX, registry=registry)
        self._sequence = Gauge("log_sequence", "Last record of the log.", ["step"], PREFIX, registry=registry)
        self._begin()

    def batch(self, fact: BatchEvent) -> None:
        """Count a batch."""
        for kind, count in fact.verdicts.items():
            self._pages.labels(kind).inc(count)
        self._records.labels(fact.step).inc(fact.records)
        self._rejected.labels(fact.step).inc(fact.rejected)
        self._repeated.labels(fact.step).inc(fact.repeated)
        for part, seconds in fact.seconds.items():
            self._seconds.labels(fact.step, part).observe(seconds)
        if fact.sequence is not None:
            self._sequence.labels(fact.step).set(fact.sequence)
        if fact.entries is not None:
            self._entries.set(fact.entries)
        self._show_lag(fact)

    def problem(self, fact: ProblemEvent) -> None:
        """Count a problem; those that operators ask for have a name of their own, too."""
        self._problems.labels(fact.step, fact.kind).inc()
        if fact.kind == "transaction_lost":
            self._lost.labels(fact.step).inc()
        if fact.kind == "expired":
            self._expired.inc(fact.count)

    def _begin(self) -> None:
        """Series that are there from the start, so that the first increase is seen as one."""
        for kind in VerdictKind:
            self._pages.labels(kind.value)

    def _show_lag(self, fact: BatchEvent) -> None:
        """Set the lag of the partitions assigned here, and forget those that are no longer."""
        for partition, lag in fact.lag.items():
            self._lag.labels(fact.step, partition).set(lag)
        for gone in self._lag_shown.get(fact.step, set()) - fact.lag.keys():
            self._lag.remove(fact.step, gone)
        self._lag_shown[fact.step] = set(fact.lag)


class _Build(Collector):
    """Which program it is."""

    def collect(self) -> Iterator[Metric]:
        """Say it."""
        yield InfoMetricFamily(f"{PREFIX}_build", "The program.", {"version": version("twinsieve")})


class _Now(Collector):
    """What holds at the time of the scrape."""

    def __init__(self, status: Callable[[], ServiceStatus], health: Health) -> None:
        self._status = status
        self._health = health

    def describe(self) -> Iterable[Metric]:
        """The names alone: at registration there may be no status yet."""
        return self._gauges()

    def collect(self) -> Iterator[Metric]:
        """Ask, and say."""
        status, gauges = self._status(), self._gauges()
        live, ready, idle, assigned, restored, to_restore, seconds = gauges
        live.add_metric([], self._health.live().good)
        ready.add_metric([], self._health.ready().good)
        for step in status.steps:
            idle.add_metric([step.step], max(0.0, time.monotonic() - step.ticked_at))
            assigned.add_metric([step.step], len(step.assigned))
        if status.restore is not None:
            restored.add_metric([], status.restore.records)
            to_restore.add_metric([], status.restore.total)
            seconds.add_metric([], status.restore.seconds)
        yield from gauges

    def _gauges(self) -> list[GaugeMetricFamily]:
        return [
            GaugeMetricFamily(f"{PREFIX}_live", "1 while every step takes turns."),
            GaugeMetricFamily(f"{PREFIX}_ready", "1 while pages go through."),
            GaugeMetricFamily(f"{PREFIX}_idle_seconds", "Since a step's last turn.", labels=["step"]),
            GaugeMetricFamily(f"{PREFIX}_assigned_partitions", "Of pages, by step.", labels=["step"]),
            GaugeMetricFamily(f"{PREFIX}_restored_records", "Applied so far by the restore."),
            GaugeMetricFamily(f"{PREFIX}_restore_records", "That the restore has to apply."),
            GaugeMetricFamily(f"{PREFIX}_restore_seconds", "Since the restore began, or that it took."),
        ]


DISTANCES = (0, 1, 2, 3, 4, 5, 6, 7, 10, 13, 16, 24, 32, 48, 64)


class LiveStatsCollector(Collector):
    """The metrics of `feed`."""

    def __init__(self, feed: LiveStats) -> None:
        self._feed = feed

    def describe(self) -> Iterable[Metric]:
        """Nothing to say at registration."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Ask the feed."""
        self._feed.refresh_index()
        pool = self._feed.pool()
        connected, dropped = self._feed.watchers()
        with self._feed.lock:
            found = [self._guarded(), self._distances(), *self._index(), *self._checked()]
        if pool is not None:
            found += [
                _gauge("pool_processes", "Worker processes that there should be.", pool.processes),
                _gauge("pool_ready_processes", "Worker processes that could take a page.", pool.ready),
                _gauge("pool_busy_processes", "Worker processes that have a page.", pool.busy),
                _gauge("pool_waiting_pages", "Pages that no process has yet.", pool.waiting),
                _counter("pool_deaths", "Worker processes that ended over a page.", pool.deaths),
            ]
        yield from found
        yield _gauge("feed_watchers", "Open event streams.", connected)
        yield _counter("feed_dropped_watchers", "Cut off because they did not read.", dropped)

    def _guarded(self) -> Metric:
        family = CounterMetricFamily(f"{PREFIX}_guarded_pages", "Undecided because of a guard.", labels=["guard"])
        for guard, count in self._feed.guarded.items():
            family.add_metric([guard.value], count)
        return family

    def _distances(self) -> Metric:
        family = HistogramMetricFamily(
            f"{PREFIX}_duplicate_distance_bits", "Differing bits of duplicates, by channel.", labels=["channel"]
        )
        for channel, bits in self._feed.distances.items():
            total = sum(bit * count for bit, count in enumerate(bits))
            family.add_metric([channel], _cumulative(bits), total)
        return family

    def _index(self) -> Iterator[Metric]:
        removed = CounterMetricFamily(f"{PREFIX}_removed_entries", "Kept pages that left the index.", labels=["reason"])
        for reason, count in {**self._feed.removals, "updated": self._feed.updated}.items():
            removed.add_metric([reason], count)
        yield removed
        fact = self._feed.indexes
        if fact is None:
            return
        yield _gauge("index_bytes", "Memory of all indexes.", fact.size_bytes)
        families = [
            GaugeMetricFamily(f"{PREFIX}_index_{name}", text, labels=["channel"])
            for name, text in (
                ("fingerprints", "Distinct fingerprints."),
                ("largest_bucket_entries", "Entries that one probe of a table may scan."),
                ("split_buckets", "Buckets with a second level."),
            )
        ]
        for channel, sizes in fact.channels.items():
            values = (sizes.fingerprints, sizes.largest_bucket, sizes.split_buckets)
            for family, value in zip(families, values, strict=True):
                family.add_metric([channel], value)
        yield from families

    def _checked(self) -> Iterator[Metric]:
        feed = self._feed
        yield _counter("checked_duplicates", "Duplicates compared again by their full texts.", feed.checked)
        yield _counter("false_duplicates", "Of these, those that their texts do not bear out.", feed.wrong)
        yield _counter("unchecked_duplicates", "Drawn, but a text was gone.", feed.unchecked)
        if feed.checked:
            share = Share(feed.wrong, feed.checked)
            low, high = share.interval
            family = GaugeMetricFamily(
                f"{PREFIX}_false_drop_ratio", "Share of duplicates that are none, estimated.", labels=["bound"]
            )
            for bound, value in (("estimate", share.value), ("low", low), ("high", high)):
                family.add_metric([bound], value)
            yield family


def _cumulative(bits: Sequence[int]) -> list[tuple[str, float]]:
    buckets = [(f"{float(bound)}", float(sum(bits[: bound + 1]))) for bound in DISTANCES]
    return [*buckets, ("+Inf", float(sum(bits)))]


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"{PREFIX}_{name}", text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"{PREFIX}_{name}", text, value=value)
