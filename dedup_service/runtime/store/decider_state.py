"""The rest of a decider's state as bytes: what a commit has beside the settled entries.

MessagePack of the fields, with a version. The entries of the window and the removed ones that the cells still need are
among them, as rows. After the commit the decider is continued from the log, without comparing pages again.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

import msgspec

from dedup_service._native import Entry
from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.decision.entries import RemovedEntry
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

    removed: rows; removed_at: their ordinals; removed_rows: their rows in the store. young: rows, not settled.
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


_ROW = struct.Struct("<q5QIQIHB")
"""Sequence, words, body, body_hash, text_hash, url_hash, host, ordinal, bytes of evidence and keys, of keys, flags."""

_WORDS, _BODY, _BODY_HASH, _INDEXED, _TEXT_HASH, _SETTLED = 1, 2, 4, 8, 16, 32

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_StateFields)


def encode_state(state: DeciderState) -> bytes:
    """Return the state of a decider as bytes."""
    removed = [gone.entry for gone in state.removed]
    return _encoder.encode(
        _StateFields(
            version=_STATE_VERSION,
            ordinal=state.ordinal,
            removed_at=[gone.ordinal for gone in state.removed],
            removed_rows=[entry.row for entry in removed],
            removed=_rows_of(removed),
            removed_evidence=_contents_of(removed),
            young=_rows_of(state.young),
            young_evidence=_contents_of(state.young),
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
        removed = _entries_of(fields.removed, fields.removed_evidence, fields.removed_rows)
        of_removed = zip(fields.removed_at, removed, strict=True)
        return DeciderState(
            ordinal=fields.ordinal,
            young=tuple(_entries_of(fields.young, fields.young_evidence, repeat(-1, len(fields.young) // _ROW.size))),
            removed=tuple(RemovedEntry(ordinal, entry) for ordinal, entry in of_removed),
            host_text=fields.host_text,
            guards=fields.guards,
            expiry=msgspec.convert(fields.expiry, ExpiryState, from_attributes=True),
            candidates=fields.candidates or b"",
        )
    except (ValueError, OverflowError, RecursionError, struct.error) as error:
        raise UnreadableStateError(f"its state cannot be read: {error}") from error


def _rows_of(entries: Sequence[Entry]) -> bytes:
    return b"".join(
        _ROW.pack(
            entry.sequence,
            entry.words or 0,
            entry.body or 0,
            entry.body_hash or 0,
            entry.text_hash or 0,
            entry.url_hash,
            entry.host,
            entry.ordinal,
            len(entry.evidence) + len(entry.keys),
            len(entry.keys),
            entry.flags,
        )
        for entry in entries
    )


def _contents_of(entries: Sequence[Entry]) -> bytes:
    return b"".join([part for entry in entries for part in (entry.evidence, entry.keys)])


def _entries_of(rows: bytes, contents: bytes, numbers: Iterable[int]) -> Iterator[Entry]:
    """Yield entries. contents: of each its evidence and its keys, end to end. numbers: their rows in the store."""
    at = 0
    for row, number in zip(_ROW.iter_unpack(rows), numbers, strict=True):
        sequence, words, body, body_hash, text_hash, url_hash, host, ordinal, size, keys, flags = row
        start, at = at, at + size
        yield Entry(
            sequence,
            words if flags & _WORDS else None,
            body if flags & _BODY else None,
            body_hash if flags & _BODY_HASH else None,
            url_hash,
            bool(flags & _INDEXED),
            contents[start : at - keys],
            text_hash if flags & _TEXT_HASH else None,
            host,
            ordinal,
            contents[at - keys : at],
            bool(flags & _SETTLED),
            number,
        )
