"""A map from 64-bit hashes to sequences: 16 bytes a place, of which 47% to 70% are taken.

Nearly every hash has one sequence, since copies are not kept. One that has several (pages that were updated
to the same text) has them in a sorted list beside the table, so a crowded hash costs others nothing.
Invariants: at most 7 of 10 places are taken; what was removed leaves no trace. Not thread-safe.

Source: Knuth, TAOCP 3, 6.4, algorithms L (linear probing) and R (deletion).
"""

from bisect import bisect_left, insort

import numpy as np
import numpy.typing as npt

from dedup_service.core.hash_table import steps
from dedup_service.core.kernels import kernel, kernel_inline, long_kernel

__all__ = ["SequenceMap"]

_FIRST_PLACES = 256
_EMPTY = np.int64(-1)
_S32 = np.uint64(32)

Values = npt.NDArray[np.uint64]
Sequences = npt.NDArray[np.int64]


class SequenceMap:
    """Hashes (unsigned 64-bit) with their sequences (0 or more).

    >>> texts = SequenceMap()
    >>> for sequence in (2, 1, 5):
    ...     texts.add(7, sequence)
    >>> texts.first(7), texts.some(7, 2), texts.first(8)
    (1, [1, 2], None)
    """

    __slots__ = ("_count", "_crowded", "_sequences", "_values")

    def __init__(self) -> None:
        self._values, self._sequences = _empty(_FIRST_PLACES)
        self._count = 0
        self._crowded: dict[int, list[int]] = {}

    def __len__(self) -> int:
        """Return the number of different hashes."""
        return self._count

    @property
    def size_bytes(self) -> int:
        """Memory reserved for the table."""
        return self._values.nbytes + self._sequences.nbytes

    def first(self, value: int) -> int | None:
        """Return the smallest sequence of a hash, or None."""
        sequence = int(_get(np.uint64(value), self._values, self._sequences))
        return None if sequence < 0 else sequence

    def some(self, value: int, limit: int) -> list[int]:
        """Return the `limit` smallest sequences of a hash, ascending."""
        crowd = self._crowded.get(value)
        if crowd is not None:
            return crowd[:limit]
        first = self.first(value)
        return [] if first is None else [first]

    def add(self, value: int, sequence: int) -> None:
        """Add a sequence to a hash."""
        crowd = self._crowded.get(value)
        if crowd is None:
            self._make_room()
            first = int(_put_first(np.uint64(value), sequence, self._values, self._sequences))
            if first < 0:
                self._count += 1
                return
            crowd = self._crowded[value] = [first]
        insort(crowd, sequence)
        _put(np.uint64(value), crowd[0], self._values, self._sequences)

    def remove(self, value: int, sequence: int) -> None:
        """Remove a sequence from a hash; KeyError if it does not have it."""
        crowd = self._crowded.get(value, None)
        if crowd is None:
            if self.first(value) != sequence:
                raise KeyError((value, sequence))
            _delete(np.uint64(value), self._values, self._sequences)
            self._count -= 1
            return
        at = bisect_left(crowd, sequence)
        if at == len(crowd) or crowd[at] != sequence:
            raise KeyError((value, sequence))
        del crowd[at]
        _put(np.uint64(value), crowd[0], self._values, self._sequences)
        if len(crowd) == 1:
            del self._crowded[value]

    def _make_room(self) -> None:
        places = len(self._values)
        if self._count < places * 7 // 10:
            return
        places += places // 2
        values, sequences = _empty(places)
        _move_all(self._values, self._sequences, values, sequences)
        self._values, self._sequences = values, sequences


def _empty(places: int) -> tuple[Values, Sequences]:
    return np.zeros(places, np.uint64), np.full(places, _EMPTY, np.int64)


@kernel_inline
def _home(value: np.uint64, places: int) -> int:
    return int(np.int64(((value >> _S32) * np.uint64(places)) >> _S32))


@kernel_inline
def _place(value: np.uint64, values: Values, sequences: Sequences) -> int:
    """Return the place of a hash, or the empty place where it belongs."""
    at = _home(value, len(values))
    while sequences[at] != _EMPTY and values[at] != value:
        at = at + 1 if at + 1 < len(values) else 0
    return at


@kernel
def _get(value: np.uint64, values: Values, sequences: Sequences) -> int:
    """Return the sequence of a hash, or -1."""
    return int(sequences[_place(value, values, sequences)])


@kernel
def _put(value: np.uint64, sequence: int, values: Values, sequences: Sequences) -> None:
    """Set the sequence of a hash; the caller ensures that there is room."""
    at = _place(value, values, sequences)
    values[at], sequences[at] = value, sequence


@kernel
def _put_first(value: np.uint64, sequence: int, values: Values, sequences: Sequences) -> int:
    """Set the sequence of a hash that has none and return -1, or return the one that it has."""
    at = _place(value, values, sequences)
    if sequences[at] != _EMPTY:
        return int(sequences[at])
    values[at], sequences[at] = value, sequence
    return -1


@long_kernel
def _move_all(values: Values, sequences: Sequences, larger_values: Values, larger_sequences: Sequences) -> None:
    for at in range(len(values)):
        if sequences[at] != _EMPTY:
            to = _place(values[at], larger_values, larger_sequences)
            larger_values[to], larger_sequences[to] = values[at], sequences[at]


@kernel
def _delete(value: np.uint64, values: Values, sequences: Sequences) -> None:
    """Remove a hash that is there; later ones that can be nearer home move up."""
    places = len(values)
    hole = scanned = _place(value, values, sequences)
    while True:
        scanned = scanned + 1 if scanned + 1 < places else 0
        if sequences[scanned] == _EMPTY:
            break
        if steps(_home(values[scanned], places), scanned, places) >= steps(hole, scanned, places):
            values[hole], sequences[hole] = values[scanned], sequences[scanned]
            hole = scanned
    sequences[hole] = _EMPTY
