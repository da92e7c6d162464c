"""The key index: finds every entry that shares a 32-bit key, up to a bound on how common a key is.

How: a bucket for each key has its entries in order of sequence. All entries are stored, but a probe looks
only at the earliest of each bucket, so a key that boilerplate made common costs a bounded time.
Invariants: answers depend on the present entries alone, not on the order of insertion or on earlier entries.
Not thread-safe: one thread at a time, reading or writing.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.index.key_probe import probe_all
from dedup_service.core.index.key_rows import (
    COUNTERS,
    DUPLICATE,
    ENTRIES,
    FREE_ENTRY,
    FULL,
    STATUS,
    WIDTH,
    KeyArrays,
    insert_all,
    insert_few,
    remove_one,
)
from dedup_service.core.index.key_table import FIRST_SLOTS, larger_table
from dedup_service.core.index.probe_result import BatchProbeResult

__all__ = ["KeyIndex"]

_FEW = 1000
"""Entries up to which an insertion keeps the interpreter lock: some hundred microseconds."""

FIRST_ENTRIES = 128
FIRST_OUTPUT = 1024

MAX_ENTRIES = (1 << 28) - 1
"""So that rows are fewer than 2**31 and slots fewer than 2**32, to which the table scales 32-bit keys."""

KEY_BITS, SEQUENCE_BITS = 32, 63

Number = TypeVar("Number", np.int64, np.uint32)

Keys = Sequence[int] | npt.NDArray[np.uint32]
"""Up to eight keys of a page, in any order; 0 is no key, and a repeated key counts once."""


class KeyIndex:
    """Entries (sequence, up to eight 32-bit keys), found by any shared key.

    An entry with eight keys that no other has takes 132 to 187 bytes (16 to 24 a key), and less if keys are
    shared: 8 bytes a key in the table, which is 47% to 70% full, and 5 a key in rows with up to a quarter in
    reserve.

    >>> index = KeyIndex()
    >>> index.insert(1, [7, 8])
    >>> index.insert(2, [8, 9])
    >>> index.probe([5, 8])
    array([1, 2])
    """

    __slots__ = ("_arrays", "_max_found", "_max_per_key", "_output", "_shared")

    def __init__(self, *, max_per_key: int = 64, max_found: int = MAX_ENTRIES) -> None:
        """Make an empty index; ConfigurationError for a bound below 1.

        max_per_key: entries of one bucket that a probe looks at, the earliest. max_found: entries that a
        probe returns, which bounds the cost of verifying them: those that share most keys, the earliest of
        equals.
        """
        if max_per_key < 1:
            raise ConfigurationError(f"a probe of {max_per_key} entries a key finds nothing; give 1 or more")
        if max_found < 1:
            raise ConfigurationError(f"a probe that returns {max_found} entries is of no use; give 1 or more")
        self._max_per_key, self._max_found = max_per_key, max_found
        self._output = np.empty(FIRST_OUTPUT, np.int64)
        self._shared = np.empty(FIRST_OUTPUT, np.uint8)
        counters = np.zeros(COUNTERS, np.int64)
        counters[FREE_ENTRY] = -1
        self._arrays: KeyArrays = (
            np.zeros((FIRST_SLOTS, 2), np.uint32),
            np.empty(FIRST_ENTRIES, np.int64),
            np.empty(FIRST_ENTRIES * WIDTH, np.uint32),
            counters,
        )

    def __len__(self) -> int:
        """Return the number of entries; entries without a key are not stored."""
        return int(self._arrays[3][ENTRIES])

    @property
    def size_bytes(self) -> int:
        """Memory reserved for all arrays."""
        return sum(array.nbytes for array in self._arrays)

    def insert(self, sequence: int, keys: Keys) -> None:
        """Add an entry; one without a key is not stored.

        sequence: 0 to 2**63 - 1; keys: up to eight, 0 to 2**32 - 1; ConfigurationError outside.
        Raises StateError if the index already has the sequence with one of the keys.
        """
        self._insert(np.array([_checked(sequence)], np.int64), _row(keys))

    def insert_many(self, sequences: npt.NDArray[np.int64], keys: npt.NDArray[np.uint32]) -> None:
        """Add entries, faster than one by one: sequences: int64[n] >= 0, in any order; keys: uint32[n, 8].

        Raises like `insert`; then none of them was added.
        """
        _check_arrays(sequences, keys)
        if (sequences[1:] < sequences[:-1]).any():
            order = np.argsort(sequences, kind="stable")
            sequences, keys = sequences[order], keys[order]
        self._insert(_for_kernels(sequences), _for_kernels(keys))

    def remove(self, sequence: int, keys: Keys) -> None:
        """Remove an entry by the keys that it was inserted with; an entry without a key was never stored.

        Raises KeyError if the index has no such entry, ConfigurationError like `insert`.
        """
        row = _row(keys)
        if row.any() and not remove_one(_checked(sequence), row[0], self._arrays):
            raise KeyError(
                f"sequence {sequence} with keys {row[row > 0].tolist()} is not in the index; "
                "remove with all keys that were inserted, once"
            )

    def probe(self, keys: Keys) -> npt.NDArray[np.int64]:
        """Return the sequences of the entries that share a key, each once, ascending: int64[m].

        Only the `max_per_key` earliest entries of each key are looked at, and `max_found` are returned at
        most.
        keys: as for `insert`.
        """
        return self._probe(_row(keys))[1]

    def probe_many(self, keys: npt.NDArray[np.uint32]) -> BatchProbeResult:
        """Return the candidates of each row of keys: uint32[n, 8]; the same as n probes, faster.

        All distances are 0: a shared key differs in no bit.
        """
        _check_keys(keys)
        offsets, sequences = self._probe(_for_kernels(keys))
        return BatchProbeResult(offsets, sequences, np.zeros(len(sequences), np.uint8))

    def _probe(self, keys: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        offsets = np.empty(len(keys) + 1, np.int64)
        arguments = (keys, self._max_per_key, self._max_found, self._arrays, offsets)
        found, needed = probe_all(*arguments, self._output, self._shared)
        while needed > len(self._output):
            self._output, self._shared = np.empty(needed, np.int64), np.empty(needed, np.uint8)
            found, needed = probe_all(*arguments, self._output, self._shared)
        return offsets, self._output[:found].copy()

    def _insert(self, sequences: npt.NDArray[np.int64], keys: npt.NDArray[np.uint32]) -> None:
        """Insert entries, sequences ascending; StateError, and no change, if one is there already."""
        self._make_room(len(self) + len(keys))
        insert = insert_all if len(keys) > _FEW else insert_few
        done = insert(sequences, keys, 0, self._arrays)
        while self._arrays[3][STATUS] == FULL:
            self._arrays = (larger_table(self._arrays[0]), *self._arrays[1:])
            done = insert(sequences, keys, done, self._arrays)
        if self._arrays[3][STATUS] == DUPLICATE:
            for number in range(done):
                self.remove(int(sequences[number]), keys[number])
            raise StateError(
                f"sequence {sequences[done]} with one of the keys {keys[done].tolist()} is in the index already; "
                "remove it first, or insert it once"
            )

    def _make_room(self, entries_needed: int) -> None:
        """Make room for that many entries, and for a quarter more than before at least."""
        buckets, sequences, next_row, counters = self._arrays
        if entries_needed <= len(sequences):
            return
        if entries_needed > MAX_ENTRIES:
            raise StateError(f"a key index has room for {MAX_ENTRIES} entries, not {entries_needed}; use several")
        entries = max(entries_needed, len(sequences) + len(sequences) // 4)
        new_sequences, new_next_row = np.empty(entries, np.int64), np.empty(entries * WIDTH, np.uint32)
        new_sequences[: len(sequences)], new_next_row[: len(next_row)] = sequences, next_row
        self._arrays = (buckets, new_sequences, new_next_row, counters)


def _checked(sequence: int) -> int:
    if not 0 <= sequence < 1 << SEQUENCE_BITS:
        raise ConfigurationError(f"sequence {sequence} does not fit in unsigned {SEQUENCE_BITS} bits")
    return sequence


def _row(keys: Keys) -> npt.NDArray[np.uint32]:
    """Return keys in the form that kernels take: uint32[1, 8]."""
    fits = False
    if isinstance(keys, np.ndarray):
        fits = keys.dtype == np.uint32
        if fits and keys.shape == (WIDTH,):  # as evidence has them
            return np.array(keys, ndmin=2)
    if len(keys) > WIDTH or not (fits or all(0 <= key < 1 << KEY_BITS for key in keys)):
        raise ConfigurationError(f"keys must be up to {WIDTH} unsigned {KEY_BITS}-bit integers, got {list(keys)}")
    row = np.zeros((1, WIDTH), np.uint32)
    row[0, : len(keys)] = keys
    return row


def _for_kernels(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the array, or a copy, with the flags that kernels were compiled for."""
    return np.require(array, requirements=("C", "W"))


def _check_keys(keys: npt.NDArray[np.uint32]) -> None:
    if keys.ndim != 2 or keys.shape[1] != WIDTH or keys.dtype != np.uint32:
        raise ConfigurationError(f"keys are {keys.dtype} of shape {keys.shape}; give uint32 of shape (n, {WIDTH})")


def _check_arrays(sequences: npt.NDArray[np.int64], keys: npt.NDArray[np.uint32]) -> None:
    _check_keys(keys)
    if sequences.shape != keys.shape[:1] or sequences.dtype != np.int64:
        raise ConfigurationError(
            f"sequences are {sequences.dtype} of shape {sequences.shape}, keys of shape {keys.shape}; "
            "give an int64 for each row of keys"
        )
    if len(sequences) and sequences.min() < 0:
        raise ConfigurationError(f"sequence {sequences.min()} is negative; number pages from 0")
