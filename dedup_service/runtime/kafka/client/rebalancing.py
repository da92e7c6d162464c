"""What a rebalance changed, kept until the reader's own thread asks for it.

The library calls a listener on its network thread, where a blocking call (`commit`, `position`) would raise, and a
slow one would stop the heartbeat. So the listener only takes notes.
"""

from collections import deque
from dataclasses import dataclass

from kafka import AsyncConsumerRebalanceListener
from kafka.structs import TopicPartition

__all__ = ["Change", "Changes"]


@dataclass(frozen=True, slots=True)
class Change:
    """gained: partitions that are ours from now on; otherwise no longer (given away, or lost with the membership)."""

    gained: bool
    partitions: frozenset[TopicPartition]


class Changes(AsyncConsumerRebalanceListener):  # type: ignore[misc]
    """The notes, in order; `take` empties them."""

    def __init__(self) -> None:
        self._notes: deque[Change] = deque()

    def take(self) -> list[Change]:
        """Return what has changed since the last call."""
        return [self._notes.popleft() for _ in range(len(self._notes))]

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Take note."""
        self._notes.append(Change(gained=False, partitions=frozenset(revoked)))

    async def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        """Take note: others may have them already."""
        self._notes.append(Change(gained=False, partitions=frozenset(lost)))

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Take note."""
        self._notes.append(Change(gained=True, partitions=frozenset(assigned)))
