"""What is kept of a transactional id while the coordinators' log is read: its last state, and decisions on partitions.

A partition's transaction is ended by the next decision that includes the partition, whoever's marker was lost before.
So of each producer and partition only the last decision matters, and memory does not grow with the log.
"""

from enum import Enum

from dedup_service.runtime.kafka.settling.states import Phase, Place, State

__all__ = ["History", "Outcome"]


class Outcome(Enum):
    """What was decided."""

    COMMIT = "commit"
    ABORT = "abort"


_DECIDED = {Phase.PREPARE_COMMIT: Outcome.COMMIT, Phase.PREPARE_ABORT: Outcome.ABORT}
_AT_WORK = {Phase.ONGOING, Phase.PREPARE_COMMIT, Phase.PREPARE_ABORT, Phase.PREPARE_EPOCH_FENCE}


class History:
    """Of one transactional id, whose first noted state is `first`. topics: all it has written into."""

    def __init__(self, first: State) -> None:
        self.last = first
        self.topics: set[str] = set()
        self._decisions: dict[tuple[Place, int, int], Outcome] = {}
        self.note(first)

    def note(self, state: State) -> None:
        """Take in its next state."""
        self.last = state
        self.topics.update(topic for topic, _ in state.places)
        if decided := _DECIDED.get(state.phase):
            self._decisions |= {(place, state.producer_id, state.epoch): decided for place in state.places}

    def is_at_work(self, place: Place) -> bool:
        """Whether the coordinator will still end the transaction on `place`."""
        return self.last.phase in _AT_WORK and place in self.last.places

    def outcome(self, place: Place, producer_id: int, epoch: int) -> tuple[Outcome, int] | None:
        """Return what was decided of this producer's transaction on `place`, and its marker's epoch; None if unknown.

        A decision has the epoch of the records, or the next one: the coordinator raises it to keep a former self of the
        producer out, and with each transaction in version 2 of the protocol.
        """
        for marked in (epoch + 1, epoch):
            if decided := self._decisions.get((place, producer_id, marked)):
                return decided, marked
        return None
