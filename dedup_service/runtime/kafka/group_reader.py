"""One member of a consumer group, read by one thread."""

from collections.abc import Callable, Iterable, Mapping

from kafka import AsyncConsumerRebalanceListener, KafkaConsumer
from kafka.consumer.fetcher import ConsumerRecord
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.structs import ConsumerGroupMetadata, TopicPartition

from dedup_service.runtime.kafka.settings import Connection

__all__ = ["GroupReader"]


class _Listener(AsyncConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, events: list[tuple[str, frozenset[TopicPartition]]]) -> None:
        self._events = events

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self._events.append(("revoked", frozenset(revoked)))

    async def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        self._events.append(("revoked", frozenset(lost)))

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._events.append(("assigned", frozenset(assigned)))


class GroupReader:
    """Records of one topic as a group hands them out; committed offsets travel in transactions elsewhere."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        group: str,
        instance: str,
        *,
        on_revoked: Callable[[frozenset[TopicPartition]], None],
        on_assigned: Callable[[Mapping[TopicPartition, int]], None] | None = None,
        session_timeout_s: float = 6.0,
        heartbeat_s: float = 0.5,
        fetch_bytes: int = 8 << 20,
    ) -> None:
        self._on_revoked = on_revoked
        self._on_assigned = on_assigned
        self._events: list[tuple[str, frozenset[TopicPartition]]] = []
        self.expired = 0
        self._consumer = KafkaConsumer(
            **connection.configs(
                group_id=group,
                group_instance_id=instance,
                isolation_level="read_committed",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                partition_assignment_strategy=[CooperativeStickyAssignor],
                session_timeout_ms=int(session_timeout_s * 1000),
                heartbeat_interval_ms=int(heartbeat_s * 1000),
                fetch_max_bytes=fetch_bytes,
                max_partition_fetch_bytes=fetch_bytes,
                allow_auto_create_topics=False,
            )
        )
        self._consumer.subscribe([topic], listener=_Listener(self._events))

    def poll(self, timeout_s: float, max_records: int) -> list[ConsumerRecord]:
        """Records in order within each partition; [] while there are none."""
        batches = self._consumer.poll(timeout_ms=int(timeout_s * 1000), max_records=max_records)
        self._deliver()
        return [record for batch in batches.values() for record in batch]

    def _deliver(self) -> None:
        while self._events:
            kind, partitions = self._events.pop(0)
            if kind == "revoked":
                self._on_revoked(partitions)
            elif self._on_assigned:
                self._on_assigned(self.committed(partitions))

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch no more of these."""
        self._consumer.pause(*partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch these again."""
        self._consumer.resume(*partitions)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """What is paused now."""
        return frozenset(self._consumer.paused())

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """What this member reads now."""
        return frozenset(self._consumer.assignment())

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Committed position of each; the beginning where nothing was committed."""
        wanted = list(partitions)
        found = {p: self._consumer.committed(p, timeout_ms=10_000) for p in wanted}
        missing = [p for p in wanted if found[p] is None]
        return {**found, **(self._consumer.beginning_offsets(missing) if missing else {})}

    def rewind(self) -> dict[TopicPartition, int]:
        """Go back to the committed position of every assigned partition."""
        positions = self.committed(self.assigned)
        for partition, offset in positions.items():
            self._consumer.seek(partition, offset)
        return positions

    def group_metadata(self) -> ConsumerGroupMetadata:
        """What fences this member's transactions."""
        return self._consumer.group_metadata()

    def lag(self) -> dict[TopicPartition, int]:
        """Records not yet read of each assigned partition, where known."""
        ends = {p: self._consumer.highwater(p) for p in self.assigned}
        return {p: max(0, end - self._consumer.position(p)) for p, end in ends.items() if end is not None}

    def close(self, leave: bool = False) -> None:
        """Stop; a static member keeps its partitions until it is back or its session ends, unless it leaves."""
        if leave:
            self._consumer.unsubscribe()
        self._consumer.close(autocommit=False, timeout_ms=5_000)
