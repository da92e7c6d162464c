"""The rest of the deciding state as bytes: what a snapshot has beside the settled entries and the page names.

`DecidingState` is the replica's state, the pending outcomes, and the offsets known to be written, as MessagePack with
a version. The fields on disk are those of the values. Bytes that do not fit make the snapshot unreadable, and the log
rebuilds the state.
"""

from dataclasses import dataclass, field, replace

import msgspec

from dedup_service.core.decision.replica import ReplicaState
from dedup_service.core.errors import TwinsieveError
from dedup_service.core.log_records import CorrectionRecord, Policy, Source
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes
from dedup_service.runtime.store.decider_state import UnreadableStateError, decode_state, encode_state

DECIDING_STATE_VERSION = 7


class UnreadableDecidingStateError(Exception):
    """The bytes are not a deciding state of a known version. The log rebuilds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingState:
    """State of the deciding step without settled entries and page names, at the replica's sequence.

    pending: outcomes that are not yet written. written: (topic, partition) → offset below which all outputs
    are known to be written.
    """

    replica: ReplicaState
    pending: tuple[tuple[Source, PendingOutcome], ...] = ()
    written: dict[tuple[str, int], int] = field(default_factory=dict)


class _ReplicaFields(msgspec.Struct):
    sequence: int = -1
    log: str | None = None
    policy: Policy | None = None
    policy_sequence: int = -1
    seen: dict[tuple[str, int], bytes] = {}
    counts: dict[str, int] = {}
    corrections: tuple[CorrectionRecord, ...] = ()


class _StateFields(msgspec.Struct):
    replica: _ReplicaFields
    pending: tuple[tuple[Source, PendingOutcome], ...] = ()
    written: dict[tuple[str, int], int] = {}
    decider: bytes = b""


class _VersionField(msgspec.Struct):
    version: int


class _SnapshotFields(msgspec.Struct):
    version: int
    state: _StateFields


_encoder = msgspec.msgpack.Encoder()
_version_decoder = msgspec.msgpack.Decoder(_VersionField)
_decoder = msgspec.msgpack.Decoder(_SnapshotFields)


def encode_deciding_state(replica: ReplicaState, outcomes: PendingOutcomes) -> bytes:
    """Return the replica's state and the pending outcomes as bytes."""
    fields = msgspec.convert(
        DecidingState(replica=replica, pending=tuple(outcomes.items()), written=dict(outcomes.written)),
        _StateFields,
        from_attributes=True,
    )
    fields.decider = encode_state(replica.decider)
    return _encoder.encode(_SnapshotFields(DECIDING_STATE_VERSION, fields))


def decode_deciding_state(value: bytes) -> DecidingState:
    """Return the encoded state; UnreadableDecidingStateError for other bytes or a newer version."""
    try:
        version = _version_decoder.decode(value).version
        if version != DECIDING_STATE_VERSION:
            raise UnreadableDecidingStateError(
                f"its state has version {version}, this twinsieve reads {DECIDING_STATE_VERSION}"
            )
        fields = _decoder.decode(value).state
        state = msgspec.convert(fields, DecidingState, from_attributes=True)
        return replace(state, replica=replace(state.replica, decider=decode_state(fields.decider)))
    except (ValueError, RecursionError, msgspec.MsgspecError, TwinsieveError, UnreadableStateError) as error:
        raise UnreadableDecidingStateError(f"its state cannot be read: {error}") from error


def pending_outcomes_of(state: DecidingState, topic: str | None = None) -> PendingOutcomes:
    """Return the pending outcomes of a decoded state; topic: see PendingOutcomes."""
    return PendingOutcomes(dict(state.pending), state.written, topic)
