"""The state of a shard as that of a replica, so that the deciding store keeps it: what a snapshot has beside entries.

Pages that wait for their outcome are in it, with their evidence: some thousands, divided among the shards.
"""

import msgspec

from dedup_service import _native
from dedup_service.core.decision.decider import CandidateSizes, DeciderState
from dedup_service.core.decision.replica import ReplicaState
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import offset_of, sequence_at
from dedup_service.core.shards.outcomes import MessageOutcome
from dedup_service.core.shards.shard import Shard, ShardNumber, ShardState, UndecidedMessage
from dedup_service.runtime.kafka.messages.shard_messages import decode_outcome, encode_outcome


class _Undecided(msgspec.Struct, array_like=True):
    """See `UndecidedMessage`. own: of the native code. outcome: as in `outcomes`, nil if it is not known."""

    offset: int
    first: int
    count: int
    done: int
    own: bytes
    names: list[tuple[str, str]]
    outcome: bytes | None


class _Fields(msgspec.Struct, tag_field="of", tag="shard"):
    shard: int
    shards: int
    lists_oldest: bool
    taken_down: list[int]
    undecided: list[_Undecided]


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
    undecided = [_encoded(message) for message in state.undecided]
    fields = _Fields(number.index, number.of, state.lists_oldest, sorted(state.taken_down), undecided)
    return ReplicaState(
        sequence=sequence_at(state.offset),
        log=state.log,
        policy=state.policy,
        policy_sequence=state.policy_sequence,
        seen=state.seen,
        corrections=state.corrections,
        decider=DeciderState(ordinal=state.ordinal, candidates=msgspec.msgpack.encode(fields)),
    )


def number_in(state: ReplicaState) -> ShardNumber | None:
    """Return which shard a state is of, None if it is of no shard."""
    if not state.decider.candidates:
        return None
    try:
        fields = msgspec.msgpack.decode(state.decider.candidates, type=_Fields)
    except (ValueError, msgspec.MsgspecError):
        return None
    return ShardNumber(fields.shard, fields.shards)


def shard_state(state: ReplicaState) -> ShardState:
    """Return the state of a shard that `replica_state` returned; StateError for that of anything else."""
    try:
        fields = msgspec.msgpack.decode(state.decider.candidates, type=_Fields)
        undecided = tuple(_decoded(message) for message in fields.undecided)
    except (ValueError, msgspec.MsgspecError) as error:
        raise StateError(f"the snapshot is of no shard: {error}") from error
    return ShardState(
        offset=offset_of(state.sequence),
        log=state.log,
        policy=state.policy,
        policy_sequence=state.policy_sequence,
        seen=state.seen,
        corrections=state.corrections,
        ordinal=state.decider.ordinal,
        undecided=undecided,
        lists_oldest=fields.lists_oldest,
        taken_down=frozenset(fields.taken_down),
    )


def _encoded(message: UndecidedMessage) -> _Undecided:
    outcome = None if message.outcome is None else encode_outcome(message.outcome, "")
    own = _native.packed_entries(list(message.own))
    return _Undecided(message.offset, message.first, message.count, message.done, own, list(message.names), outcome)


def _decoded(fields: _Undecided) -> UndecidedMessage:
    outcome: MessageOutcome | None = None
    if fields.outcome is not None:
        _, outcome = decode_outcome(fields.outcome)
    own = _native.unpacked_entries(fields.own)
    return UndecidedMessage(
        fields.offset, fields.first, fields.count, own, fields.names, outcome=outcome, done=fields.done
    )
