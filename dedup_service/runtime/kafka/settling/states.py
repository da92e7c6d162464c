"""What coordinators note of transactions: the records of the topic `__transaction_state`.

Format: Apache Kafka, TransactionLogKey.json (version 0) and TransactionLogValue.json (0; 1 has compact fields and
tags, which are at the end and not read).
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

__all__ = ["Phase", "Place", "State", "decode"]

Place = tuple[str, int]
"""Topic and partition."""


class Phase(IntEnum):
    """The state of a transactional id, under the coordinator's numbers."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


@dataclass(frozen=True, slots=True)
class State:
    """One record. places: the partitions whose transaction has to be ended yet."""

    transactional_id: str
    producer_id: int
    epoch: int
    phase: Phase
    places: frozenset[Place]


def decode(key: bytes, value: bytes | None) -> State | None:
    """Return the state that a record notes, None for a deletion and for keys of other kinds.

    ValueError for a value that is cut off or of a version to come: without it, who is at work would be unknown.
    """
    try:
        if value is None or struct.unpack_from(">h", key) != (0,):
            return None
        (length,) = struct.unpack_from(">h", key, 2)
        version, producer_id, epoch, _timeout_ms, phase = struct.unpack_from(">hqhib", value)
        if version not in (0, 1):
            raise ValueError(f"a record of the transaction log has version {version}")
        places = _Fields(value, struct.calcsize(">hqhib"), compact=version == 1).places()
        name = key[4 : 4 + length].decode()
    except (struct.error, IndexError) as error:
        raise ValueError(f"a record of the transaction log is cut off: {error}") from error
    return State(name, producer_id, epoch, Phase(phase), places)


class _Fields:
    """The part of a value whose layout depends on its version."""

    def __init__(self, value: bytes, at: int, *, compact: bool) -> None:
        self._value = value
        self._at = at
        self._compact = compact

    def places(self) -> frozenset[Place]:
        found: set[Place] = set()
        for _ in range(self._count(">i")):
            topic = self._bytes(self._count(">h")).decode()
            found.update((topic, self._number(">i")) for _ in range(self._count(">i")))
            if self._compact:
                self._tags()
        return frozenset(found)

    def _count(self, plain: str) -> int:
        """A length: plus one and of variable size where compact; null is 0."""
        return max(0, self._varint() - 1 if self._compact else self._number(plain))

    def _number(self, kind: str) -> int:
        (number,) = struct.unpack_from(kind, self._value, self._at)
        self._at += struct.calcsize(kind)
        return int(number)

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._value[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def _tags(self) -> None:
        for _ in range(self._varint()):
            self._varint()
            self._bytes(self._varint())

    def _bytes(self, length: int) -> bytes:
        end = self._at + length
        if end > len(self._value):
            raise IndexError(f"{length} bytes at {self._at} of {len(self._value)}")
        found = self._value[self._at : end]
        self._at = end
        return found
