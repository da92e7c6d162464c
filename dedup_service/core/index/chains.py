"""Entries, chained by fingerprint.

A row is one entry: its sequence, and the next row of the same fingerprint. Buckets hold each
distinct fingerprint once, with the first row of its chain, so ten thousand identical pages cost one
comparison. A chain runs from the latest sequence to the earliest: appending in order is O(1), and
the same entry twice is noticed on the way.
Invariant: the first row of a chain is the same row as long as the chain lives (contents move
instead), so no bucket is touched when a chain grows or shrinks.
"""

from dedup_service.core.index.inlined import inlined
from dedup_service.core.index.layout import ENTRIES, FREE_ROW, ROWS_USED, Integers, Rows

__all__ = ["free_row", "join_chain", "leave_chain", "take_row"]


@inlined
def take_row(sequence: int, sequences: Integers, following: Rows, counters: Integers) -> int:
    """Return a new chain of one row for a sequence; the caller has seen to it that a row is left."""
    row = int(counters[FREE_ROW])
    if row >= 0:
        counters[FREE_ROW] = following[row]
    else:
        row = int(counters[ROWS_USED])
        counters[ROWS_USED] += 1
    sequences[row] = sequence
    following[row] = -1
    counters[ENTRIES] += 1
    return row


@inlined
def free_row(row: int, following: Rows, counters: Integers) -> None:
    """Give a row back."""
    following[row] = counters[FREE_ROW]
    counters[FREE_ROW] = row
    counters[ENTRIES] -= 1


@inlined
def join_chain(first: int, sequence: int, sequences: Integers, following: Rows, counters: Integers) -> bool:
    """Put a sequence into the chain that starts at row `first`; return False where it is there already."""
    at = int(first)
    if sequence > sequences[at]:
        sequence, sequences[at] = sequences[at], sequence
    else:
        while following[at] >= 0 and sequences[following[at]] >= sequence:
            at = int(following[at])
        if sequences[at] == sequence:
            return False
    row = take_row(sequence, sequences, following, counters)
    following[row] = following[at]
    following[at] = row
    return True


@inlined
def leave_chain(first: int, sequence: int, sequences: Integers, following: Rows, counters: Integers) -> bool:
    """Take a sequence out of a chain of two rows or more; return False where it is not there."""
    before = int(first)
    row = int(following[before])
    if sequences[before] == sequence:
        sequences[before] = sequences[row]
    else:
        while row >= 0 and sequences[row] != sequence:
            before, row = row, int(following[row])
        if row < 0:
            return False
    following[before] = following[row]
    free_row(row, following, counters)
    return True
