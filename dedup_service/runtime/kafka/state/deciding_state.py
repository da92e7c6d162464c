"""The rest of the deciding state as bytes: what a snapshot has beside the settled entries and the page names.

`DecidingState` is the replica's state, the pending outcomes, and the offsets known to be written, as MessagePack with
a version. The fields on disk are those of the values. Bytes that do not fit make the snapshot unreadable, and the log
rebuilds the state.
"""

from dataclasses import dataclass, field, replace

import msgspec

from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.decision.replica import ReplicaState
from dedup_service.core.log_records import Source
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes
from dedup_service.runtime.store.decider_state import decode_versioned, encode_versioned

_VERSION = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingState:
    """State of the deciding step without settled entries and page names, at the replica's sequence.

    pending: outcomes that are not yet written. written: (topic, partition) → offset below which all outputs
    are known to be written.
    """

    replica: ReplicaState
    pending: tuple[tuple[Source, PendingOutcome], ...] = ()
    written: dict[tuple[str, int], int] = field(default_factory=dict)


class _Stored(msgspec.Struct):
    """decider: that of the replica, which alone would have a default: without it, other verdicts are given."""

    state: DecidingState
    decider: DeciderState


def encode_deciding_state(replica: ReplicaState, outcomes: PendingOutcomes) -> bytes:
    """Return the replica's state and the pending outcomes as bytes."""
    without = replace(replica, decider=DeciderState())
    state = DecidingState(replica=without, pending=tuple(outcomes.items()), written=dict(outcomes.written))
    return encode_versioned(_VERSION, _Stored(state, replica.decider))


def decode_deciding_state(value: bytes) -> DecidingState:
    """Return the encoded state; UnreadableStateError for other bytes or another version."""
    stored = decode_versioned(value, _VERSION, _Stored)
    return replace(stored.state, replica=replace(stored.state.replica, decider=stored.decider))


def pending_outcomes_of(state: DecidingState, topic: str | None = None) -> PendingOutcomes:
    """Return the pending outcomes of a decoded state; topic: see PendingOutcomes."""
    return PendingOutcomes(dict(state.pending), state.written, topic)
