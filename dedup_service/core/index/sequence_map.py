"""A map from 64-bit hashes to sequences, in which the hashes themselves are not stored: about 15 bytes each.

`HashRows` finds rows by some bits of a hash; here a row is a number that a sequence got when it was added.
What is found is therefore a proposal: the caller, who has the whole hash of each sequence, confirms it, and a
collision of the stored bits changes no answer.
"""

from collections.abc import Callable, Iterable
from itertools import islice

import numpy as np

from dedup_service.core.errors import StateError
from dedup_service.core.index.hash_rows import HashRows
from dedup_service.core.index.row_words import RowWords, read_words, write_words

__all__ = ["Confirm", "SequenceMap"]

Confirm = Callable[[int], bool]
"""Whether a sequence has the hash that was asked for."""

_MAX_ROWS = (1 << 32) - 1


class SequenceMap:
    """Sequences by hashes (unsigned 64-bit): none, one or several under each; a sequence has one hash.

    >>> texts = SequenceMap()
    >>> hashes = {2: 7, 1: 7, 5: 7}
    >>> for sequence, value in hashes.items():
    ...     texts.add(value, sequence)
    >>> texts.some(7, 2, lambda sequence: hashes[sequence] == 7), texts.some(8, 2, lambda sequence: False)
    ([1, 2], [])
    """

    __slots__ = ("_free", "_rows", "_rows_used", "_sequences")

    def __init__(self) -> None:
        self._rows = HashRows()
        self._sequences = RowWords(1)
        self._free: list[int] = []
        self._rows_used = 0

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self._rows)

    @property
    def size_bytes(self) -> int:
        """Memory reserved for the tables."""
        return self._rows.size_bytes + self._sequences.size_bytes

    def first(self, value: int, confirm: Confirm) -> int | None:
        """Return the smallest sequence of a hash, or None."""
        found = self.some(value, 1, confirm)
        return found[0] if found else None

    def some(self, value: int, limit: int, confirm: Confirm) -> list[int]:
        """Return the `limit` smallest sequences of a hash, ascending."""
        rows = self._rows.rows(value)
        if not rows:
            return []
        return list(islice(filter(confirm, sorted(self._sequences_of(rows))), limit))

    def add(self, value: int, sequence: int) -> None:
        """Add a sequence to a hash."""
        row = self._free.pop() if self._free else self._rows_used
        if row == self._rows_used:
            if row >= _MAX_ROWS:
                raise StateError(f"a table has room for {_MAX_ROWS} entries; expire some")
            self._rows_used += 1
            self._sequences.make_room(row + 1)
        write_words(row, np.array([sequence], np.int64).view(np.uint64), self._sequences.addresses)
        self._rows.add(value, row)

    def remove(self, value: int, sequence: int) -> None:
        """Remove a sequence from a hash; KeyError if it does not have it."""
        rows = self._rows.rows(value)
        for row, other in zip(rows, self._sequences_of(rows), strict=True):
            if other == sequence:
                self._rows.remove(value, row)
                self._free.append(row)
                return
        raise KeyError((value, sequence))

    def _sequences_of(self, rows: Iterable[int]) -> list[int]:
        found = read_words(np.fromiter(rows, np.uint32), 1, self._sequences.addresses)
        sequences: list[int] = found[:, 0].view(np.int64).tolist()
        return sequences
