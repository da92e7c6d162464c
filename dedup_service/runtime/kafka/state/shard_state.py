"""The state of a shard as that of a replica, so that the deciding store keeps it: what a snapshot has beside entries.

Pages that wait for their outcome are in it, with their evidence: some thousands, divided among the shards.
"""

import msgspec

from dedup_service.core.decision.decider import CandidateSizes, DeciderState
from dedup_service.core.decision.replica import ReplicaState
from dedup_service.core.errors import StateError, TwinsieveError
from dedup_service.core.log_records import sequence_at
from dedup_service.core.shards.shard import Shard, ShardNumber, ShardState
from dedup_service.runtime.store.decider_state import decode_with_entries, encode_with_entries


class _Stored(msgspec.Struct, tag_field="of", tag="shard"):
    number: ShardNumber
    state: ShardState


class ShardReplica:
    """A shard as the deciding store sees a replica."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard

    @property
    def sequence(self) -> int:
        """Sequence of the latest message."""
        return sequence_at(self._shard.offset)

    @property
    def log(self) -> str | None:
        """Identity of the log."""
        return self._shard.log

    @property
    def expired_up_to(self) -> int:
        """Sequence up to which no entry is live, -1 if that is not known."""
        first = self._shard.first_sequence
        return -1 if first is None else first - 1

    def sizes(self) -> CandidateSizes | None:
        """Return the sizes of tables and waiting pages, None before there are any."""
        return self._shard.sizes()

    def state(self) -> ReplicaState:
        """Return the state for a snapshot."""
        return replica_state(self._shard.state(), self._shard.number)


def replica_state(state: ShardState, number: ShardNumber) -> ReplicaState:
    """Return the state of a shard as that of a replica."""
    stored = encode_with_entries(_Stored(number, state))
    return ReplicaState(
        sequence=sequence_at(state.offset),
        log=state.log,
        policy=state.policy,
        decider=DeciderState(ordinal=state.ordinal, candidates=stored),
    )


def number_in(state: ReplicaState) -> ShardNumber | None:
    """Return which shard a state is of, None if it is of no shard."""
    try:
        return _stored(state).number
    except StateError:
        return None


def shard_state(state: ReplicaState) -> ShardState:
    """Return the state of a shard that `replica_state` returned; StateError for that of anything else."""
    return _stored(state).state


def _stored(state: ReplicaState) -> _Stored:
    try:
        return decode_with_entries(state.decider.candidates, _Stored)
    except (ValueError, TwinsieveError) as error:
        raise StateError(f"the snapshot is of no shard: {error}") from error
