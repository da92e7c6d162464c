"""Facts as Prometheus metrics: of the service, a crawl, the filter.

How: an observer counts in a registry of its own; what is a state rather than an event is asked for when somebody
scrapes. Names, units and labels: docs/metrics.md, which a test holds against this module.
Invariant: labels are bounded: verdicts, steps, parts of a step and kinds of problems are the code's own words, and
partitions are those assigned here. A URL or an error's text is never one.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from dedup_service.core.verdict import VerdictKind
from dedup_service.faces.http.feed_metrics import FeedCollector
from dedup_service.faces.http.health import Health
from dedup_service.runtime.facts import BatchFact, Bystander, Problem
from dedup_service.runtime.feed import Feed
from dedup_service.runtime.kafka.facts import ServiceStatus

__all__ = ["Metrics"]

PREFIX = "neardup"
BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics(Bystander):
    """An observer, and the registry that it fills. status, health: of a service. feed: of a dashboard."""

    def __init__(
        self,
        status: Callable[[], ServiceStatus] | None = None,
        health: Health | None = None,
        feed: Feed | None = None,
    ) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # a second series for each counter, asked for by nobody
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_Build())
        if status is not None and health is not None:
            registry.register(_Now(status, health))
        if feed is not None:
            registry.register(FeedCollector(feed))
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

    def batch(self, fact: BatchFact) -> None:
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

    def problem(self, fact: Problem) -> None:
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

    def _show_lag(self, fact: BatchFact) -> None:
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
