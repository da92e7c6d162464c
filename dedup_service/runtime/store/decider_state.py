"""The rest of a decider's state as bytes: what a commit has beside the settled entries.

MessagePack of the value, with a version; the fields on disk are those of the value. The entries of the window and the
removed ones that the cells still need are among them, each as the native code packs it. After the commit the decider is
continued from the log, without comparing pages again.
"""

from typing import TypeVar

import msgspec

from dedup_service._native import Entry, packed_entries, unpacked_entries
from dedup_service.core.decision.decider import DeciderState
from dedup_service.core.errors import TwinsieveError

T = TypeVar("T")

_VERSION = 3


class UnreadableStateError(Exception):
    """The bytes are no state of a known version. The log rebuilds it."""


class _Versioned(msgspec.Struct):
    version: int
    state: msgspec.Raw


_decoder = msgspec.msgpack.Decoder(_Versioned)


def encode_state(state: DeciderState) -> bytes:
    """Return the state of a decider as bytes."""
    return encode_versioned(_VERSION, state)


def decode_state(value: bytes) -> DeciderState:
    """Return the encoded state; UnreadableStateError for other bytes or another version."""
    return decode_versioned(value, _VERSION, DeciderState)


def encode_versioned(version: int, state: object) -> bytes:
    """Return a state of any kind as bytes; it may have entries."""
    return encode_with_entries({"version": version, "state": state})


def decode_versioned(value: bytes, version: int, kind: type[T]) -> T:
    """Return the state that `encode_versioned` wrote; UnreadableStateError for other bytes or another version."""
    try:
        stored = _decoder.decode(value)
        if stored.version != version:
            raise UnreadableStateError(f"its state has version {stored.version}, this twinsieve reads {version}")
        return decode_with_entries(stored.state, kind)
    except (ValueError, OverflowError, RecursionError, TwinsieveError) as error:
        raise UnreadableStateError(f"its state cannot be read: {error}") from error


def encode_with_entries(value: object) -> bytes:
    """Return a value that may have entries as MessagePack."""
    return msgspec.msgpack.encode(value, enc_hook=_packed)


def decode_with_entries(value: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Return what `encode_with_entries` wrote; ValueError or StateError for other bytes."""
    return msgspec.msgpack.decode(value, type=kind, dec_hook=_unpacked)


def _packed(entry: Entry) -> bytes:
    return packed_entries([entry])


def _unpacked(_kind: type, packed: bytes) -> Entry:
    (entry,) = unpacked_entries(packed)
    return entry
