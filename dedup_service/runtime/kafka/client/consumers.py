"""Consumers with bounded memory that show committed records only.

Memory: a broker sends at most `fetch_bytes` at a time (more only where one batch alone is larger), and one answer a
broker may wait while another is read: `2 x fetch_bytes x brokers` as compressed on the wire, and one unpacked batch.
"""

from typing import Any

from kafka import KafkaConsumer

from dedup_service.runtime.kafka.client.connecting import connect
from dedup_service.runtime.kafka.client.records import read_any_header
from dedup_service.runtime.kafka.client.settings import Connection

__all__ = ["consumer"]


def consumer(connection: Connection, fetch_bytes: int, **configs: Any) -> KafkaConsumer:
    """Return a connected consumer that commits nothing and resets nothing by itself; errors as `connect` has them."""
    made = connect(
        KafkaConsumer,
        connection,
        isolation_level="read_committed",  # and offsets of open transactions are waited for (require_stable)
        enable_auto_commit=False,
        auto_offset_reset="none",  # a position that is gone is our decision
        allow_auto_create_topics=False,
        fetch_max_bytes=fetch_bytes,
        max_partition_fetch_bytes=fetch_bytes,
        metrics_enabled=False,
        **configs,
    )
    return read_any_header(made)
