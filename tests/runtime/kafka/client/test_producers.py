"""A key is sent to the partition that every other client would choose."""

from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as library_murmur2

from dedup_service.runtime.kafka.client.producers import KeyPartitioner, murmur2, partition_for


class Cluster:
    """Partitions of one topic."""

    def partitions_for_topic(self, topic: str) -> set[int]:
        return set(range(7))


@given(st.binary(max_size=70))
def test_the_hash_is_the_librarys(data: bytes) -> None:
    """All bits are equal, for any length."""
    assert murmur2(data) == library_murmur2(data) & 0xFFFFFFFF


@given(st.binary(min_size=1, max_size=70))
def test_a_key_has_one_partition(key: bytes) -> None:
    """It is the positive part of its hash, modulo the partitions."""
    expected = (library_murmur2(key) & 0x7FFFFFFF) % 7
    assert KeyPartitioner().partition("pages", None, key, None, None, Cluster()) == expected
    assert partition_for(key, 7) == expected
