"""Prometheus metrics of the service, a crawl or the filter.

How: `Metrics` is an observer that counts events in a separate registry. States, as opposed to events, are
collected when Prometheus scrapes: those of a service by `_StatusCollector`, those of live stats by
`LiveStatsCollector`. So they cost the stream nothing, and they do not stop when it does. docs/metrics.md has
names, units and labels; a test compares it with this module.
Invariant: labels are bounded. Verdicts, steps, parts of a step, kinds of problems, channels, reasons and
bounds are words of the code, and partitions are those of `pages`. Only a transaction that stays open is a label of its
own, while it does. A URL or the text of an error is never a label.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from dedup_service.core.decision.expiry import ExpiryReason
from dedup_service.core.evaluation.share import Share
from dedup_service.core.verdict import VerdictKind
from dedup_service.interfaces.http.probes import Health
from dedup_service.runtime.events import BatchEvent, Observer, ProblemEvent
from dedup_service.runtime.kafka.status import ServiceStatus, StepStatus
from dedup_service.runtime.live_stats import LiveStats

PREFIX = "twinsieve"
DISTANCES = (0, 1, 2, 3, 4, 5, 6, 7, 10, 13, 16, 24, 32, 48, 64)
"""Upper bounds of the histogram of distances, in bits."""

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics(Observer):
    """An observer and the registry that it fills. status, health: of a service. live_stats: of a dashboard."""

    def __init__(
        self,
        status: Callable[[], ServiceStatus] | None = None,
        health: Health | None = None,
        live_stats: LiveStats | None = None,
    ) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # else a second, unused series for each counter
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_BuildCollector())
        if status is not None and health is not None:
            registry.register(_StatusCollector(status, health))
        if live_stats is not None:
            registry.register(LiveStatsCollector(live_stats))
        counter = partial(Counter, namespace=PREFIX, registry=registry)
        gauge = partial(Gauge, namespace=PREFIX, registry=registry)
        self._pages = counter("pages", "Pages by verdict.", ["verdict"])
        self._records = counter("records", "Input records done, by step.", ["step"])
        self._rejected = counter("rejected_records", "Records that are not pages.", ["step"])
        self._repeated = counter("repeated_records", "Records read again and skipped.", ["step"])
        self._expired = counter("expired_records", "Records deleted before they were read.")
        self._entries_expired = counter("entries_expired", "Kept pages that expired, by reason.", ["reason"])
        self._lost = counter("lost_transactions", "Transactions that were repeated.", ["step"])
        self._problems = counter("problems", "Problems survived, by kind.", ["step", "kind"])
        self._seconds = Histogram(
            "batch_seconds", "Time of a batch, by part.", ["step", "part"], PREFIX, registry=registry, buckets=BUCKETS_S
        )
        self._entries = gauge("entries", "Kept pages in the index.")
        self._sequence = gauge("log_sequence", "Last record of the log.", ["step"])
        self._create_series()

    def batch(self, event: BatchEvent) -> None:
        """Count a batch."""
        for kind, count in event.verdicts.items():
            self._pages.labels(kind).inc(count)
        self._records.labels(event.step).inc(event.records)
        self._rejected.labels(event.step).inc(event.rejected)
        self._repeated.labels(event.step).inc(event.repeated)
        for part, seconds in event.seconds.items():
            self._seconds.labels(event.step, part).observe(seconds)
        for reason, count in event.expired.items():
            self._entries_expired.labels(reason).inc(count)
        if event.sequence is not None:
            self._sequence.labels(event.step).set(event.sequence)
        if event.entries is not None:
            self._entries.set(event.entries)

    def problem(self, event: ProblemEvent) -> None:
        """Count a problem, once for each record it is about; two kinds that operators watch have metrics as well."""
        self._problems.labels(event.step, event.kind).inc(event.count)
        if event.kind == "transaction_lost":
            self._lost.labels(event.step).inc(event.count)
        if event.kind == "expired":
            self._expired.inc(event.count)

    def _create_series(self) -> None:
        """Create the series of all verdicts and reasons, so that the first increase of each is seen as one."""
        for kind in VerdictKind:
            self._pages.labels(kind.value)
        for reason in ExpiryReason:
            self._entries_expired.labels(reason.value)


class _BuildCollector(Collector):
    """The version of the program."""

    def collect(self) -> Iterator[Metric]:
        """Return the version as a label."""
        yield InfoMetricFamily(f"{PREFIX}_build", "The program.", {"version": version("twinsieve")})


class _StatusCollector(Collector):
    """The state of a service at the time of the scrape."""

    def __init__(self, status: Callable[[], ServiceStatus], health: Health) -> None:
        self._status = status
        self._health = health

    def describe(self) -> Iterable[Metric]:
        """Return the names alone: at registration there may be no status yet."""
        return self._gauges().values()

    def collect(self) -> Iterator[Metric]:
        """Return the gauges with the current values."""
        status, gauges = self._status(), self._gauges()
        gauges["live"].add_metric([], self._health.live().good)
        gauges["ready"].add_metric([], self._health.ready().good)
        now = time.monotonic()
        for step in status.steps:
            _add_step(gauges, step, now)
        for row in status.backlog.partitions:
            labels = [row.step, row.partition]
            gauges["lag_records"].add_metric(labels, row.lag)
            gauges["oldest_waiting_page_seconds"].add_metric(labels, row.oldest_s)
            gauges["stalled_seconds"].add_metric(labels, row.stalled_s)
            gauges["deleted_records"].add_metric(labels, row.deleted)
        for one in status.backlog.transactions:
            labels = [one.topic, f"{one.partition}", one.transactional_id, f"{one.producer_id}"]
            gauges["open_transaction_seconds"].add_metric(labels, max(0.0, time.time() - one.since_ms / 1000))
        if status.backlog.measured_at is not None:
            gauges["monitor_age_seconds"].add_metric([], max(0.0, now - status.backlog.measured_at))
        if status.restore is not None:
            gauges["restored_messages"].add_metric([], status.restore.messages)
            gauges["restore_messages"].add_metric([], status.restore.total)
            gauges["restore_seconds"].add_metric([], status.restore.seconds)
        yield from gauges.values()

    def _gauges(self) -> dict[str, GaugeMetricFamily]:
        step, partition = ["step"], ["step", "partition"]
        rows: list[tuple[str, str, list[str]]] = [
            ("live", "1 while every step's loop is running, else 0.", []),
            ("ready", "1 while it can process pages, and does, else 0.", []),
            ("idle_seconds", "Time since the last turn of a step.", step),
            ("assigned_partitions", "Partitions of pages, by step.", step),
            ("buffered_pages", "Records of pages that a step has read and not done.", step),
            ("buffered_bytes", "Memory of the records that a step has read and not done.", step),
            ("waiting_outcomes", "Outcomes of the log that are not written yet.", step),
            ("waiting_outcomes_limit", "Outcomes at which the log is no longer read.", step),
            ("step_waiting_seconds", "Time for which a step has waited for a shard or a resolver, else 0.", step),
            ("lag_records", "Records of pages that a step has not done, by partition.", partition),
            ("oldest_waiting_page_seconds", "Age of the oldest of them, 0 if none waits.", partition),
            ("stalled_seconds", "Time without progress while records wait, else 0.", partition),
            ("deleted_records", "Records that were deleted before the step passed them.", partition),
            (
                "open_transaction_seconds",
                "Time since the last write of an open transaction that keeps a topic from being read.",
                ["topic", "partition", "transactional_id", "producer_id"],
            ),
            ("monitor_age_seconds", "Time since these four were measured.", []),
            ("restored_messages", "Messages of the log applied so far by the restore.", []),
            ("restore_messages", "Messages of the log that the restore applies in total.", []),
            ("restore_seconds", "Time since the restore began, or its duration.", []),
        ]
        return {name: GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=labels) for name, text, labels in rows}


def _add_step(gauges: dict[str, GaugeMetricFamily], step: StepStatus, now: float) -> None:
    """Add what a step reports of itself."""
    labels = [step.step]
    gauges["idle_seconds"].add_metric(labels, max(0.0, now - step.ticked_at))
    gauges["assigned_partitions"].add_metric(labels, len(step.assigned))
    gauges["buffered_pages"].add_metric(labels, step.buffered_pages)
    gauges["buffered_bytes"].add_metric(labels, step.buffered_bytes)
    gauges["step_waiting_seconds"].add_metric(labels, step.waits_s)
    if step.waiting_outcomes is not None and step.waiting_outcomes_limit is not None:
        gauges["waiting_outcomes"].add_metric(labels, step.waiting_outcomes)
        gauges["waiting_outcomes_limit"].add_metric(labels, step.waiting_outcomes_limit)


class LiveStatsCollector(Collector):
    """The metrics of `live_stats`, collected at the scrape."""

    def __init__(self, live_stats: LiveStats) -> None:
        self._stats = live_stats

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the families depend on the state."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Return the metrics as of now."""
        self._stats.refresh_index()
        pool = self._stats.pool()
        connected, dropped = self._stats.watchers()
        with self._stats.lock:
            metrics = [self._guarded(), self._claims(), self._distances(), *self._index(), *self._checked()]
        if pool is not None:
            metrics += [
                _gauge("pool_processes", "Configured workers.", pool.processes),
                _gauge("pool_ready_processes", "Workers that have started.", pool.ready),
                _gauge("pool_busy_processes", "Workers that have a page.", pool.busy),
                _gauge("pool_waiting_pages", "Pages that no worker has taken yet.", pool.waiting),
                _counter("pool_deaths", "Worker processes that ended while they had pages.", pool.deaths),
            ]
        yield from metrics
        yield _gauge("feed_watchers", "Open event streams.", connected)
        yield _counter("feed_dropped_watchers", "Event streams cut off because nobody read them.", dropped)

    def _guarded(self) -> Metric:
        family = CounterMetricFamily(f"{PREFIX}_guarded_pages", "Pages undecided because of a guard.", labels=["guard"])
        for guard, count in self._stats.guarded.items():
            family.add_metric([guard.value], count)
        return family

    def _claims(self) -> Metric:
        help_text = "Pages whose canonical link names a kept page of another text."
        return _counter("refused_claims", help_text, self._stats.claim_refused)

    def _distances(self) -> Metric:
        family = HistogramMetricFamily(
            f"{PREFIX}_duplicate_distance_bits", "Differing bits of duplicates, by channel.", labels=["channel"]
        )
        for channel, bits in self._stats.distances.items():
            total = sum(bit * count for bit, count in enumerate(bits))
            family.add_metric([channel], _cumulative(bits), total)
        return family

    def _index(self) -> Iterator[Metric]:
        removed = CounterMetricFamily(
            f"{PREFIX}_removed_entries", "Kept pages that left the index before they expired.", labels=["reason"]
        )
        for reason, count in {**self._stats.removals, "updated": self._stats.updated}.items():
            removed.add_metric([reason], count)
        yield removed
        index = self._stats.indexes
        if index is None:
            return
        yield _gauge("index_bytes", "Memory of indexes, rows and hosts' own text.", index.size_bytes)
        memory = GaugeMetricFamily(f"{PREFIX}_memory_bytes", "The same by structure.", labels=["structure"])
        for structure, size_bytes in index.memory.items():
            memory.add_metric([structure], size_bytes)
        yield memory
        families = [
            GaugeMetricFamily(f"{PREFIX}_index_{name}", text, labels=["channel"])
            for name, text in (
                ("fingerprints", "Distinct fingerprints."),
                ("largest_bucket_entries", "Entries that one probe of a table may scan."),
                ("split_buckets", "Buckets with a second level."),
            )
        ]
        for channel, sizes in index.channels.items():
            values = (sizes.fingerprints, sizes.largest_bucket, sizes.split_buckets)
            for family, value in zip(families, values, strict=True):
                family.add_metric([channel], value)
        yield from families

    def _checked(self) -> Iterator[Metric]:
        yield _counter("checked_duplicates", "Sampled duplicates compared again by full text.", self._stats.checked)
        yield _counter("false_duplicates", "Of these, those that their texts do not confirm.", self._stats.wrong)
        yield _counter(
            "unchecked_duplicates", "Sampled duplicates of which a text was no longer kept.", self._stats.unchecked
        )
        if self._stats.checked:
            share = Share(self._stats.wrong, self._stats.checked)
            low, high = share.interval
            family = GaugeMetricFamily(
                f"{PREFIX}_false_drop_ratio", "Estimated share of duplicates that are false.", labels=["bound"]
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
