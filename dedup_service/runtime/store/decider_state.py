"""The rest of a decider's state as bytes: what a commit has beside the settled entries.

MessagePack of the fields, with a version. The entries of the window and the removed ones that the cells still need are
among them, as rows. After the commit the decider is continued from the log, without comparing pages again.
"""

from dataclasses import replace

import msgspec
import numpy as np

from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.decision.entries import RemovedEntry
from dedup_service.core.decision.entry_rows import ROW, EntryRows
from dedup_service.core.decision.expiry import ExpiryState
from dedup_service.core.decision.guard_state import GuardState


class UnreadableStateError(Exception):
    """The bytes are no state of a known version. The log rebuilds it."""


_STATE_VERSION = 2


class _ExpiryFields(msgspec.Struct):
    """See `ExpiryState`."""

    up_to: int = -1
    times: bytes = b""
    by_count: int = 0
    by_age: int = 0


class _StateFields(msgspec.Struct):
    """The names in the file; they do not follow renames.

    removed: ROW[n]; removed_at: their ordinals; removed_rows: their rows in the store. young: ROW[m], not settled.
    """

    version: int
    ordinal: int
    removed_at: list[int]
    removed_rows: list[int]
    removed: bytes
    removed_evidence: bytes
    young: bytes
    young_evidence: bytes
    host_text: bytes
    guards: GuardState | None
    expiry: _ExpiryFields = msgspec.field(default_factory=_ExpiryFields)
    candidates: bytes | msgspec.UnsetType = msgspec.UNSET


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_StateFields)


def encode_state(state: DeciderState) -> bytes:
    """Return the state of a decider as bytes."""
    removed, young = EntryRows.from_entries([gone.entry for gone in state.removed]), EntryRows.from_entries(state.young)
    return _encoder.encode(
        _StateFields(
            version=_STATE_VERSION,
            ordinal=state.ordinal,
            removed_at=[gone.ordinal for gone in state.removed],
            removed_rows=[gone.entry.row for gone in state.removed],
            removed=removed.rows.tobytes(),
            removed_evidence=removed.evidence,
            young=young.rows.tobytes(),
            young_evidence=young.evidence,
            host_text=state.host_text,
            guards=state.guards,
            expiry=msgspec.convert(state.expiry, _ExpiryFields, from_attributes=True),
            candidates=state.candidates or msgspec.UNSET,
        )
    )


def decode_state(value: bytes) -> DeciderState:
    """Return the encoded state; UnreadableStateError for other bytes or another version."""
    try:
        fields = _decoder.decode(value)
        if fields.version != _STATE_VERSION:
            raise UnreadableStateError(f"its state has version {fields.version}, this twinsieve reads {_STATE_VERSION}")
        removed = EntryRows(np.frombuffer(fields.removed, ROW), fields.removed_evidence).entries()
        of_removed = zip(fields.removed_at, fields.removed_rows, removed, strict=True)
        return DeciderState(
            ordinal=fields.ordinal,
            young=tuple(EntryRows(np.frombuffer(fields.young, ROW), fields.young_evidence).entries()),
            removed=tuple(RemovedEntry(ordinal, replace(entry, row=row)) for ordinal, row, entry in of_removed),
            host_text=fields.host_text,
            guards=fields.guards,
            expiry=msgspec.convert(fields.expiry, ExpiryState, from_attributes=True),
            candidates=fields.candidates or b"",
        )
    except (ValueError, RecursionError) as error:  # of msgspec, numpy and zip
        raise UnreadableStateError(f"its state cannot be read: {error}") from error
