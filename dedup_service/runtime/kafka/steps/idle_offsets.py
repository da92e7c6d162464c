"""How far a step is in partitions where it has nothing to do: past offsets that hold no record.

Markers of transactions and aborted records take offsets, and no reader gets them. A step whose offset stayed
before them would look, once retention has deleted them, as if it had missed records. So the positions of the
consumer are committed too, for partitions where every record that was read is done: with the step's next
offsets, or alone after some seconds without any.

Invariants: an offset never moves over a record that is not done, which the caller vouches for; a position that was
committed is not committed again.
"""

import time
from collections.abc import Collection, Mapping

from dedup_service.runtime.kafka.client.connect import TopicPartition

IDLE_COMMIT_S = 5.0
"""A crawler that publishes in transactions and pauses costs one commit of the step in so many seconds."""


class IdleOffsets:
    """The committed offsets of a step's partitions, and which of them to move."""

    def __init__(self) -> None:
        self._committed: dict[TopicPartition, int] = {}
        self._committed_at = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether the step has committed nothing for `IDLE_COMMIT_S`."""
        return time.monotonic() >= self._committed_at + IDLE_COMMIT_S

    def at(self, partition: TopicPartition) -> int:
        """Return the offset that was last committed for a partition, or where it began."""
        return self._committed.get(partition, 0)

    def begin(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Take it that these partitions start, or start again, at their offsets."""
        self._committed.update(offsets)

    def end(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions that are lost."""
        for partition in partitions:
            self._committed.pop(partition, None)

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note that these offsets were committed."""
        self._committed.update(offsets)
        self._committed_at = time.monotonic()

    def moved(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return those of `positions`, of partitions without a record that is not done, that are to be committed."""
        return {
            partition: position
            for partition, position in positions.items()
            if position > self._committed.get(partition, position)
        }
