"""The key index: every entry that shares an exact 32-bit key, up to a bound on how common a key may be.

How: a bucket for each key holds its entries in order of sequence. All are stored, and a probe looks at the
earliest of each bucket only, so a key that boilerplate made common costs a bounded time.
Invariants: answers depend on the entries alone, not on how or in what order they came or what was there before.
Not thread-safe: one thread at a time, reading or writing. Read `key_table`, `key_rows`, then `key_probe`.
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
"""Entries for which the interpreter lock is kept: some hundred microseconds."""

FIRST_ENTRIES = 128
FIRST_OUTPUT = 1024

MAX_ENTRIES = (1 << 28) - 1
"""The table scales 32-bit keys to fewer than 2**32 slots, for fewer than 2**31 rows."""

KEY_BITS, SEQUENCE_BITS = 32, 63

Number = TypeVar("Number", np.int64, np.uint32)

Keys = Sequence[int] | npt.NDArray[np.uint32]
"""Up to eight keys of a page, in any order; 0 is no key, and one that is there twice counts once."""


class KeyIndex:
    """Entries (sequence, up to eight 32-bit keys), found by any key they share.

    An entry with eight keys of its own takes 132 to 187 bytes (16 to 24 a key), less the more keys are shared:
    8 bytes a key in the table, which is 47% to 70% full, and 5 a key in rows with up to a quarter in reserve.

    >>> index = KeyIndex()
    >>> index.insert(1, [7, 8])
    >>> index.insert(2, [8, 9])
    >>> index.probe([5, 8])
    array([1, 2])
    """

    __slots__ = ("_arrays", "_best", "_maximum", "_output", "_shared")

    def __init__(self, *, maximum: int = 64, best: int = MAX_ENTRIES) -> None:
        """Make an empty index; ConfigurationError for a bound below 1.

        most: entries of one bucket that a probe looks at. best: of all those it gives the ones that share most keys,
        the earliest of equals: whoever verifies them has a bound, too.
        """
        if maximum < 1:
            raise ConfigurationError(
                f"a probe that looks at {maximum} entries of a bucket finds nothing; give 1 or more"
            )
        if best < 1:
            raise ConfigurationError(f"a probe that gives {best} entries finds nothing; give 1 or more")
        self._maximum, self._best = maximum, best
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
        """Return how many entries there are, those without a key not counted."""
        return int(self._arrays[3][ENTRIES])

    @property
    def size_bytes(self) -> int:
        """Memory reserved for all arrays."""
        return sum(array.nbytes for array in self._arrays)

    def insert(self, sequence: int, keys: Keys) -> None:
        """Add an entry; one without a key is not stored.

        sequence: 0 to 2**63 - 1; keys: up to eight, 0 to 2**32 - 1; ConfigurationError outside.
        Raises StateError where the sequence is there already with one of the keys.
        """
        self._insert(np.array([_checked(sequence)], np.int64), _row(keys))

    def insert_many(self, sequences: npt.NDArray[np.int64], keys: npt.NDArray[np.uint32]) -> None:
        """Add entries, faster than one by one: sequences: int64[n] >= 0, in any order; keys: uint32[n, 8].

        Raises as `insert` does; then none of them was added.
        """
        _check_arrays(sequences, keys)
        if (sequences[1:] < sequences[:-1]).any():
            order = np.argsort(sequences, kind="stable")
            sequences, keys = sequences[order], keys[order]
        self._insert(_for_kernels(sequences), _for_kernels(keys))

    def remove(self, sequence: int, keys: Keys) -> None:
        """Remove an entry, by the keys it was inserted with; one without a key was never stored.

        Raises KeyError where this sequence with these keys is not there, ConfigurationError as `insert` does.
        """
        row = _row(keys)
        if row.any() and not remove_one(_checked(sequence), row[0], self._arrays):
            raise KeyError(
                f"sequence {sequence} with keys {row[row > 0].tolist()} is not in the index; "
                "remove with all keys that were inserted, once"
            )

    def probe(self, keys: Keys) -> npt.NDArray[np.int64]:
        """Return the sequences of the entries that share a key, each once, ascending: int64[m].

        Of the entries with a key only the `maximum` earliest are looked at, and of all of these the `best` are given.
        keys: as `insert` takes them.
        """
        return self._probe(_row(keys))[1]

    def probe_many(self, keys: npt.NDArray[np.uint32]) -> BatchProbeResult:
        """Return the candidates of each row of keys: uint32[n, 8]; the same as n probes, faster.

        Their distances are all 0: a shared key is one that differs in no bit.
        """
        _check_keys(keys)
        offsets, sequences = self._probe(_for_kernels(keys))
        return BatchProbeResult(offsets, sequences, np.zeros(len(sequences), np.uint8))

    def _probe(self, keys: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        offsets = np.empty(len(keys) + 1, np.int64)
        bounds = (keys, self._maximum, self._best, self._arrays, offsets)
        found, needed = probe_all(*bounds, self._output, self._shared)
        while needed > len(self._output):
            self._output, self._shared = np.empty(needed, np.int64), np.empty(needed, np.uint8)
            found, needed = probe_all(*bounds, self._output, self._shared)
        return offsets, self._output[:found].copy()

    def _insert(self, sequences: npt.NDArray[np.int64], keys: npt.NDArray[np.uint32]) -> None:
        """Insert entries, sequences ascending; StateError, and no change, on a duplicate."""
        self._make_room(len(self) + len(keys))
        insert = insert_all if len(keys) > _FEW else insert_few
        done = insert(sequences, keys, 0, self._arrays)
        while self._arrays[3][STATUS] == FULL:
            self._arrays = (larger_table(self._arrays[0]), *self._arrays[1:])
            done = insert(sequences, keys, done, self._arrays)
        if self._arrays[3][STATUS] == DUPLICATE:
            for at in range(done):
                self.remove(int(sequences[at]), keys[at])
            raise StateError(
                f"sequence {sequences[done]} with one of the keys {keys[done].tolist()} is in the index already; "
                "remove it first, or insert it once"
            )

    def _make_room(self, entries_needed: int) -> None:
        """Grow the rows to that many entries, or a quarter more than there were."""
        buckets, sequences, following, counters = self._arrays
        if entries_needed <= len(sequences):
            return
        if entries_needed > MAX_ENTRIES:
            raise StateError(f"a key index holds {MAX_ENTRIES} entries, not {entries_needed}; open several")
        entries = max(entries_needed, len(sequences) + len(sequences) // 4)
        new_sequences, new_following = np.empty(entries, np.int64), np.empty(entries * WIDTH, np.uint32)
        new_sequences[: len(sequences)], new_following[: len(following)] = sequences, following
        self._arrays = (buckets, new_sequences, new_following, counters)


def _checked(sequence: int) -> int:
    if not 0 <= sequence < 1 << SEQUENCE_BITS:
        raise ConfigurationError(f"sequence {sequence} does not fit the index's unsigned {SEQUENCE_BITS} bits")
    return sequence


def _row(keys: Keys) -> npt.NDArray[np.uint32]:
    """Return keys as kernels take them: uint32[1, 8]."""
    fits = False
    if isinstance(keys, np.ndarray):
        fits = keys.dtype == np.uint32
        if fits and keys.shape == (WIDTH,):  # what pages have
            return np.array(keys, ndmin=2)
    if len(keys) > WIDTH or not (fits or all(0 <= key < 1 << KEY_BITS for key in keys)):
        raise ConfigurationError(f"keys {list(keys)} are not up to {WIDTH} of unsigned {KEY_BITS} bits")
    row = np.zeros((1, WIDTH), np.uint32)
    row[0, : len(keys)] = keys
    return row


def _for_kernels(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return an array, or a copy, of the one kind that kernels were compiled for."""
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
