"""Traffic of the brokers: sums over topics, by hand and as laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.capacity.traffic import topic_traffic
from dedup_service.core.capacity.workload import Workload
from tests.core.capacity.cases import COSTS, TEN_BILLION, workloads


def test_ten_billion_pages_by_hand() -> None:
    """700 bytes a page of log to 64 processes of shards and 2 resolvers; answers of both replicas are written."""
    pages, log, candidates, outcomes, outputs = topic_traffic(TEN_BILLION, 32, 2, COSTS)
    assert (log.in_bytes, log.readers, log.stored_bytes) == (7e6, 66, 7e12)
    assert log.out_bytes == pytest.approx(462e6)
    assert (candidates.in_bytes, candidates.out_bytes, candidates.stored_bytes) == (2.4e6, 4.8e6, 86_400 * 2.4e6)
    assert (outcomes.in_bytes, outcomes.readers, outcomes.stored_bytes) == (20_000, 64, 2e10)
    assert pages.in_bytes == pytest.approx(10_000 * 700 * 1.5)
    assert outputs.in_bytes == pytest.approx(10_000 * (700 * 1.5 + 300))
    assert pages.stored_bytes == pytest.approx(7 * 86_400 * pages.in_bytes)


def test_a_short_crawl_is_all_that_is_stored() -> None:
    """A topic with a retention keeps no more than the pages that there are."""
    pages, *_ = topic_traffic(Workload(pages=1_000, rate=10), 1, 1, COSTS)
    assert pages.stored_bytes == pytest.approx(1_000 * 700 * 1.5)


@given(workloads, st.sampled_from([1, 2, 4, 8, 16, 32]), st.integers(1, 4))
def test_more_shards_read_more_and_write_the_same(workload: Workload, shards: int, replicas: int) -> None:
    """Twice the shards double what leaves the log, without the resolvers, and change nothing that comes in."""
    few, many = (topic_traffic(workload, number, replicas, COSTS) for number in (shards, 2 * shards))
    assert [topic.in_bytes for topic in few] == [topic.in_bytes for topic in many]
    assert [topic.stored_bytes for topic in few] == [topic.stored_bytes for topic in many]
    assert many[1].readers - 2 == 2 * (few[1].readers - 2)
    assert many[1].out_bytes > few[1].out_bytes
