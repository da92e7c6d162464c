"""Events as Prometheus metrics, and docs/metrics.md lists all of them."""

import re
import time
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from dedup_service.core.index import CellStatistics, IndexStatistics
from dedup_service.core.verdict import Guard, guard_reason
from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.probes import Health
from dedup_service.runtime.events import BatchEvent, IndexEvent, ProblemEvent, RemovalEvent
from dedup_service.runtime.kafka.status import Backlog, BlockingTransaction
from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.live_stats.recheck import RecheckResult, Sampler
from dedup_service.runtime.workers.pool import PoolState
from tests.interfaces.http.fake_status import FakeStatus, both_steps, waiting
from tests.runtime.live_stats.decided import copy_of, refused, undecided

DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"


@pytest.fixture
def status() -> FakeStatus:
    """The status of the service."""
    return FakeStatus()


@pytest.fixture
def metrics(status: FakeStatus) -> Metrics:
    """The metrics of the service."""
    return Metrics(status, Health(status))


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    """Return the value of a sample, None if there is none."""
    return registry.get_sample_value(f"twinsieve_{name}", labels)


def test_batches_are_counted(metrics: Metrics) -> None:
    """Counters of two batches add up; gauges have the values of the last."""
    for sequence in (10, 20):
        metrics.batch(
            BatchEvent(
                step="decide",
                records=5,
                seconds={"commit": 0.02},
                verdicts={"unique": 3, "duplicate": 1},
                rejected=1,
                repeated=2,
                sequence=sequence,
                entries=sequence * 2,
            )
        )
    registry = metrics.registry
    assert value(registry, "pages_total", verdict="unique") == 6
    assert value(registry, "pages_total", verdict="undecided") == 0
    assert value(registry, "records_total", step="decide") == 10
    assert value(registry, "rejected_records_total", step="decide") == 2
    assert value(registry, "repeated_records_total", step="decide") == 4
    assert value(registry, "batch_seconds_count", step="decide", part="commit") == 2
    assert value(registry, "batch_seconds_sum", step="decide", part="commit") == pytest.approx(0.04)
    assert value(registry, "log_sequence", step="decide") == 20
    assert value(registry, "entries") == 40


def test_the_backlog_is_collected_at_the_scrape(status: FakeStatus, metrics: Metrics) -> None:
    """It is there without a batch, for all partitions; a partition that is gone leaves."""
    rows = (waiting("decide", 0, 300, 75.0, deleted=4), waiting("fingerprint", 3, 0))
    status.status = both_steps(assigned=(1,), backlog=Backlog(partitions=rows, measured_at=time.monotonic() - 12))
    registry, at = metrics.registry, {"step": "decide", "partition": "pages-0"}
    assert value(registry, "lag_records", **at) == 300
    assert value(registry, "oldest_waiting_page_seconds", **at) == 80
    assert value(registry, "stalled_seconds", **at) == 75
    assert value(registry, "deleted_records", **at) == 4
    assert value(registry, "lag_records", step="fingerprint", partition="pages-3") == 0
    assert 12 <= (value(registry, "monitor_age_seconds") or 0) < 60
    status.status = both_steps()
    assert value(registry, "lag_records", **at) is None
    assert value(registry, "monitor_age_seconds") is None


def test_problems_are_counted_by_kind(metrics: Metrics) -> None:
    """Each by the records that it is about; lost transactions and expired records also have metrics of their own."""
    metrics.problem(ProblemEvent("decide", "transaction_lost", "fenced"))
    metrics.problem(ProblemEvent("fingerprint", "expired", "gone", count=7))
    for kind in ("refused", "passed_over", "unreadable"):
        metrics.problem(ProblemEvent("decide", kind, "text", count=3))
        assert value(metrics.registry, "problems_total", step="decide", kind=kind) == 3
    assert value(metrics.registry, "problems_total", step="fingerprint", kind="expired") == 7
    assert value(metrics.registry, "problems_total", step="decide", kind="transaction_lost") == 1
    assert value(metrics.registry, "lost_transactions_total", step="decide") == 1
    assert value(metrics.registry, "expired_records_total") == 7


def test_live_stats_are_collected_at_the_scrape(status: FakeStatus) -> None:
    """Distances, the estimate with its bounds, removed entries, guarded pages, refused claims, index and pool."""
    live_stats, registry = full_metrics(status)
    assert value(registry, "duplicate_distance_bits_bucket", channel="words", le="1.0") == 0
    assert value(registry, "duplicate_distance_bits_bucket", channel="words", le="2.0") == 1
    assert value(registry, "duplicate_distance_bits_sum", channel="words") == 2
    assert value(registry, "removed_entries_total", reason="retraction") == 1
    assert value(registry, "guarded_pages_total", guard="surge") == 1
    assert value(registry, "refused_claims_total") == 1
    assert value(registry, "index_bytes") == 1700
    assert value(registry, "memory_bytes", structure="cells") == 500
    assert value(registry, "memory_bytes", structure="urls") == 200
    assert value(registry, "false_drop_ratio", bound="estimate") == 1
    assert value(registry, "pool_busy_processes") == 2
    live_stats.pool = lambda: None
    assert value(registry, "pool_busy_processes") is None


def full_metrics(status: FakeStatus) -> tuple[LiveStats, CollectorRegistry]:
    """Return live stats with a value for every metric, and the registry that collects them."""
    live_stats = LiveStats("serve", scope="log", sampler=Sampler(1.0))
    surge = guard_reason(Guard.SURGE, "too many suspicious copies")
    live_stats.decided([copy_of(1), undecided(2, surge), refused(3)])
    live_stats.rechecked(RecheckResult(live_stats.newest.rows()[0], 0.1, 0.1))
    live_stats.removed(RemovalEvent("retraction", "https://a.example/1"))
    sizes = IndexStatistics(entries=9, fingerprints=9, bytes=1000, largest_bucket=2, split_buckets=0)
    live_stats.index(
        IndexEvent(
            entries=9,
            channels={"words": sizes},
            cells=CellStatistics(entries=9, cells=70, overflowed=2, bytes=500),
            memory={"blocks_words": 1000, "cells": 500, "urls": 200},
        )
    )
    live_stats.pool = lambda: PoolState(4, 3, 2, 100, 1)
    return live_stats, Metrics(status, Health(status), live_stats).registry


def test_the_document_lists_every_metric(status: FakeStatus) -> None:
    """Each has its type and its labels, and no other metric is listed."""
    open_one = BlockingTransaction(
        topic="t", partition=0, offset=1, since_ms=0, producer_id=1, transactional_id="a", state="Ongoing"
    )
    backlog = Backlog(partitions=(waiting("decide", 0, 1),), measured_at=0.0, transactions=(open_one,))
    status.status = both_steps(backlog=backlog)
    live_stats, _ = full_metrics(status)
    metrics = Metrics(status, Health(status), live_stats)
    metrics.batch(BatchEvent(step="s", records=1, seconds={"p": 1.0}, sequence=1, entries=1))
    metrics.problem(ProblemEvent("s", "transaction_lost", "text"))
    documented = {}
    for line in DOCS.read_text().splitlines():
        if cells := re.match(r"\| `(twinsieve_\w+)` \| (\w+) \| ([^|]*)\|", line):
            documented[cells[1]] = (cells[2], set(re.findall(r"`(\w+)`", cells[3])))
    assert documented == {
        family.name + ("_total" if family.type == "counter" else "_info" if family.type == "info" else ""): (
            family.type,
            {name for sample in family.samples for name in sample.labels} - {"le"},
        )
        for family in metrics.registry.collect()
        if family.name.startswith("twinsieve_")
    }
