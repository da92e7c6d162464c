"""What the facts become as metrics, and that docs/metrics.md tells of all of them."""

import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from dedup_service.core.index import IndexStatistics
from dedup_service.core.verdict import Guard, guard_reason
from dedup_service.interfaces.http.metrics import Metrics
from dedup_service.interfaces.http.probes import Health
from dedup_service.runtime.events import BatchEvent, IndexEvent, ProblemEvent, RemovalEvent
from dedup_service.runtime.live_stats import LiveStats
from dedup_service.runtime.live_stats.recheck import RecheckResult, Sampler
from dedup_service.runtime.workers.pool import PoolState
from tests.interfaces.http.facts import Told, both_steps
from tests.runtime.live_stats.decided import copy_of, undecided

DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"


@pytest.fixture
def told() -> Told:
    """The service."""
    return Told()


@pytest.fixture
def metrics(told: Told) -> Metrics:
    """Its metrics."""
    return Metrics(told, Health(told))


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    """A sample's value, None where it is not there."""
    return registry.get_sample_value(f"twinsieve_{name}", labels)


def test_batches_are_counted(metrics: Metrics) -> None:
    """Two batches of a step add up; the state is that of the last."""
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


def test_lag_is_shown_of_the_partitions_assigned(metrics: Metrics) -> None:
    """What went to another process is its to show."""
    metrics.batch(BatchEvent(step="decide", records=1, lag={"pages-0": 3, "pages-1": 4}))
    metrics.batch(BatchEvent(step="decide", records=1, lag={"pages-1": 2}))
    assert value(metrics.registry, "lag_records", step="decide", partition="pages-0") is None
    assert value(metrics.registry, "lag_records", step="decide", partition="pages-1") == 2


def test_problems_are_counted_by_kind(metrics: Metrics) -> None:
    """Lost transactions and expired records have names of their own."""
    metrics.problem(ProblemEvent("decide", "transaction_lost", "fenced"))
    metrics.problem(ProblemEvent("fingerprint", "expired", "gone", count=7))
    assert value(metrics.registry, "problems_total", step="decide", kind="transaction_lost") == 1
    assert value(metrics.registry, "lost_transactions_total", step="decide") == 1
    assert value(metrics.registry, "expired_records_total") == 7


def test_states_are_those_of_the_scrape(told: Told, metrics: Metrics) -> None:
    """Nobody has to push them."""
    assert value(metrics.registry, "ready") == 0
    assert value(metrics.registry, "restored_records") is None
    told.status = both_steps(assigned=(0, 1, 2))
    assert value(metrics.registry, "ready") == 1
    assert value(metrics.registry, "live") == 1
    assert value(metrics.registry, "assigned_partitions", step="decide") == 3
    assert value(metrics.registry, "restored_records") == 10


def test_the_feed_is_asked_at_the_scrape(told: Told) -> None:
    """Distances as a histogram, the estimate with its bounds, what left the index, what guards held."""
    feed, registry = watched(told)
    assert value(registry, "duplicate_distance_bits_bucket", channel="words", le="1.0") == 0
    assert value(registry, "duplicate_distance_bits_bucket", channel="words", le="2.0") == 1
    assert value(registry, "duplicate_distance_bits_sum", channel="words") == 2
    assert value(registry, "removed_entries_total", reason="retraction") == 1
    assert value(registry, "guarded_pages_total", guard="surge") == 1
    assert value(registry, "index_bytes") == 1500
    assert value(registry, "false_drop_ratio", bound="estimate") == 1
    assert value(registry, "pool_busy_processes") == 2
    feed.pool = lambda: None
    assert value(registry, "pool_busy_processes") is None


def watched(told: Told) -> tuple[LiveStats, CollectorRegistry]:
    """A feed that has something of everything, and the metrics with it."""
    feed = LiveStats("serve", scope="log", sampler=Sampler(1.0))
    feed.decided([copy_of(1), undecided(2, guard_reason(Guard.SURGE, "too many suspicious copies"))])
    feed.rechecked(RecheckResult(feed.newest.rows()[0], 0.1, 0.1))
    feed.removed(RemovalEvent("retraction", "https://a.example/1"))
    sizes = IndexStatistics(entries=9, fingerprints=9, bytes=1000, largest_bucket=2, split_buckets=0)
    feed.index(IndexEvent(entries=9, channels={"words": sizes}, keys=(9, 500)))
    feed.pool = lambda: PoolState(4, 3, 2, 100, 1)
    return feed, Metrics(told, Health(told), feed).registry


def test_the_page_on_metrics_tells_of_each_one(told: Told) -> None:
    """With its type and its labels, and of none that is not there."""
    feed, _ = watched(told)
    metrics = Metrics(told, Health(told), feed)
    metrics.batch(BatchEvent(step="s", records=1, seconds={"p": 1.0}, sequence=1, entries=1, lag={"pages-0": 1}))
    metrics.problem(ProblemEvent("s", "transaction_lost", "text"))
    documented = {}
    for line in DOCS.read_text().splitlines():
        if cells := re.match(r"\| `(twinsieve_\w+)` \| (\w+) \| ([^|]*)\|", line):
            documented[cells[1]] = (cells[2], set(re.findall(r"`(\w+)`", cells[3])))
    assert documented == {
        family.name + ("_total" if family.type == "counter" else "_info" if family.type == "info" else ""): (
            family.type,
            {name for sample in family.samples for name in sample.labels} - {"le"} or documented_labels(family.name),
        )
        for family in metrics.registry.collect()
        if family.name.startswith("twinsieve_")
    }


def documented_labels(name: str) -> set[str]:
    """The labels of families that have no sample before there is a service."""
    return {"step"} if name in {"twinsieve_idle_seconds", "twinsieve_assigned_partitions"} else set()
