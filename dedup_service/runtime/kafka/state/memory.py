"""All that a deciding step remembers beside its entries and names, as bytes: the snapshot's extra section.

MessagePack of the values themselves, by field name, with a version in front. A field that later versions add with a
default can be missing; anything else that does not fit makes the snapshot unreadable, and the log has it all.
"""

from dataclasses import dataclass, field

import msgspec

from dedup_service.core.changelog import Source
from dedup_service.core.errors import TwinsieveError
from dedup_service.core.replica import ReplicaMemory
from dedup_service.runtime.kafka.steps.outcomes import Outcomes, PendingOutcome

__all__ = ["MEMORY_VERSION", "Memory", "UnreadableMemoryError", "decode_memory", "encode_memory", "outcomes_of"]

MEMORY_VERSION = 1


class UnreadableMemoryError(Exception):
    """The bytes are no memory of a known version; the log has all they held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A replica's memory, and the outcomes that were not written yet, at its sequence.

    written: (topic, partition) → offset below which all outputs are known to be written.
    """

    replica: ReplicaMemory
    pending: tuple[tuple[Source, PendingOutcome], ...] = ()
    written: dict[tuple[str, int], int] = field(default_factory=dict)


class _Head(msgspec.Struct):
    version: int


class _Whole(msgspec.Struct):
    version: int
    memory: Memory


_encoder = msgspec.msgpack.Encoder()
_head = msgspec.msgpack.Decoder(_Head)
_whole = msgspec.msgpack.Decoder(_Whole)


def encode_memory(replica: ReplicaMemory, outcomes: Outcomes) -> bytes:
    """Return the bytes of a replica's memory and of the outcomes that wait."""
    memory = Memory(replica=replica, pending=tuple(outcomes.items()), written=dict(outcomes.written))
    return _encoder.encode(_Whole(MEMORY_VERSION, memory))


def decode_memory(value: bytes) -> Memory:
    """Return what `encode_memory` was given; UnreadableMemoryError for other bytes or a newer version."""
    try:
        version = _head.decode(value).version
        if version > MEMORY_VERSION:
            raise UnreadableMemoryError(f"its memory has version {version}, this twinsieve reads {MEMORY_VERSION}")
        return _whole.decode(value).memory
    except (ValueError, msgspec.MsgspecError, TwinsieveError) as error:
        raise UnreadableMemoryError(f"its memory cannot be read: {error}") from error


def outcomes_of(memory: Memory, topic: str | None = None) -> Outcomes:
    """Return the outcomes that waited, as they go on waiting; topic: see Outcomes."""
    return Outcomes(dict(memory.pending), memory.written, topic)
