"""What the feed has as Prometheus metrics, put together when somebody scrapes: it costs the stream nothing.

Names, units and labels: docs/metrics.md. Labels are bounded: channels, reasons and bounds are the code's own words.
"""

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from dedup_service.core.scoring import Share
from dedup_service.runtime.feed import Feed

__all__ = ["FeedCollector"]

PREFIX = "neardup"
DISTANCES = (0, 1, 2, 3, 4, 5, 6, 7, 10, 13, 16, 24, 32, 48, 64)


class FeedCollector(Collector):
    """The metrics of `feed`."""

    def __init__(self, feed: Feed) -> None:
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
