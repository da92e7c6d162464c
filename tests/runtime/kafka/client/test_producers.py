"""A key is sent to the partition that every other client would choose."""

from kafka import KafkaProducer
from kafka.partitioner.default import DefaultPartitioner

from dedup_service.runtime.kafka.client.producers import COMMON, partition_for


class Cluster:
    """Partitions of one topic."""

    def topics(self) -> set[str]:
        return {"pages"}

    def partitions_for_topic(self, topic: str) -> set[int]:
        return set(range(7))

    available_partitions_for_topic = partitions_for_topic


def test_a_key_has_one_partition() -> None:
    """Batches that are encoded here go where the library's producers send single messages."""
    partitioner = {**KafkaProducer.DEFAULT_CONFIG, **COMMON}["partitioner"]
    assert isinstance(partitioner, DefaultPartitioner)
    for key in (b"", b"a", b"https://a.example/1", bytes(range(256))):
        assert partition_for(key, 7) == partitioner.partition("pages", None, key, None, None, Cluster())
