"""The rest of the deciding state as bytes: what a snapshot has beside the settled entries and the page names.

`DecidingState` is the replica's state, the pending outcomes, and the offsets known to be written, as MessagePack with
a version. Decoding ignores unknown fields and gives missing ones their default; bytes that do not fit otherwise make
the snapshot unreadable, and the log rebuilds the state. The private `_…Fields` structs fix the field names as they are
written; they do not follow renames of the classes that they store.
"""

from dataclasses import dataclass, field, replace

import msgspec

from dedup_service.core.decision.replica import ReplicaState
from dedup_service.core.errors import TwinsieveError
from dedup_service.core.evidence.similarity import Combined
from dedup_service.core.log_records import Source
from dedup_service.core.rules.rule import DistanceBound
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes
from dedup_service.runtime.store.decider_state import UnreadableStateError, decode_state, encode_state

DECIDING_STATE_VERSION = 5


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


class _MatchRowFields(msgspec.Struct, kw_only=True, rename={"min_letters": "least_letters"}):
    name: str
    min_letters: int = 0
    jaccard: float
    containment: float | None = None
    title: float | None = None
    title_on_host: float | None = None
    sentences: float | None = None
    numbers: float | None = None
    missing_numbers: float | None = None
    swapped_numbers: float | None = None
    figures: float | None = None
    alphabetic: float | None = None
    unspaced: float | None = None
    length_ratio: float | None = None
    metadata: float | None = None
    combined: float | None = None
    words_distance: int | None = None
    body_distance: int | None = None


_GUARD_NAMES = {
    "max_pages": "most_pages",
    "max_hosts": "most_hosts",
    "max_titles": "most_titles",
    "surge_percent": "jump_percent",
}


class _GuardsFields(msgspec.Struct, frozen=True, rename=_GUARD_NAMES):
    max_pages: int
    max_hosts: int
    max_titles: int
    surge_percent: int


class _RuleFields(msgspec.Struct):
    conditions: tuple[DistanceBound, ...] = ()
    combined: Combined | None = None
    keys: bool = False
    verified: tuple[_MatchRowFields, ...] = ()
    guards: _GuardsFields = _GuardsFields(0, 0, 0, 0)


class _LayoutFields(msgspec.Struct):
    slots: int
    window: int


class _KeepFields(msgspec.Struct, frozen=True):
    max_pages: int | None = None
    max_age_minutes: int | None = None


class _BaseFields(msgspec.Struct, frozen=True):
    name: str
    log: str
    commit: str
    after: int
    records: int
    entries: int


class _PolicyFields(msgspec.Struct):
    rule: _RuleFields
    action: Action
    space_id: str
    layout: _LayoutFields
    keep: _KeepFields = _KeepFields()
    lowered: _KeepFields = _KeepFields()
    bases: tuple[_BaseFields, ...] = ()
    canonical: str = "earliest"


class _CorrectionFields(msgspec.Struct, rename={"original": "of"}):
    url: str
    original: str
    duplicate: bool
    reason: str


class _ReplicaFields(msgspec.Struct):
    sequence: int = -1
    log: str | None = None
    policy: _PolicyFields | None = None
    policy_sequence: int = -1
    seen: dict[tuple[str, int], bytes] = {}
    counts: dict[str, int] = {}
    corrections: tuple[_CorrectionFields, ...] = ()


class _PendingFields(msgspec.Struct, gc=False, rename={"original_url": "of_url"}):
    sequence: int
    kind: str | None
    value: bytes
    key: bytes = b""
    original_url: str | None = None
    drop: bool = False
    end: int | None = None


class _StateFields(msgspec.Struct):
    replica: _ReplicaFields
    pending: tuple[tuple[Source, _PendingFields], ...] = ()
    written: dict[tuple[str, int], int] = {}
    decider: bytes = b""


class _VersionField(msgspec.Struct):
    version: int


class _SnapshotFields(msgspec.Struct, rename={"state": "memory"}):
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
