"""Insertion into the quarters, removal from them, and the move of what they have to the halves.

Kernels stop where memory is short, or where the halves have no buckets yet; `block_compact` provides it and continues
them. They fetch the headers and words of later fingerprints ahead of time.

The move: when the quarters have as many fingerprints as they serve well, each insertion moves some of them, with their
values, from the last record down. Meanwhile both are searched. What is inserted or removed is moved first, so that
a fingerprint is never in both.
"""

import numpy as np

from dedup_service.core.index.block_halves import leaves_of
from dedup_service.core.index.block_halves_write import (
    ABSENT,
    ALL,
    DISTINCT,
    DONE,
    GONE,
    PRESENT,
    SHORT,
    STATUS,
    UNOPENED,
    UNREFINED,
    Fingerprints,
    grow_tables,
    insert_one,
    is_short,
    remove_one,
    store_in,
    take_number,
    value_joined,
    value_left,
    values_short,
)
from dedup_service.core.index.block_lines import HEADS, Integers, entry_slot
from dedup_service.core.index.block_quarters import (
    CHUNK_ENTRIES,
    COUNT,
    CROWDED_BUCKETS,
    ELSEWHERE,
    FREE,
    IN_CHUNKS,
    MOST_ENTRIES,
    QUARTER_META,
    RECORDS_FREE,
    RECORDS_USED,
    add_entry,
    bucket_head,
    chunk_address,
    erase_entry,
    give_record,
    position_of,
    quarters_short,
    record_fingerprint,
    record_of,
    record_value,
    records_in,
    take_record,
    word_of,
)
from dedup_service.core.kernels import kernel, kernel_inline, load32, long_kernel, prefetch_address, store32

_HEADS_AHEAD, _LINES_AHEAD = 8, 4
"""Fingerprints whose headers, and whose words, are on the way."""


@kernel_inline
def fetch_buckets(fingerprint: np.uint64, tables: int, bases: Integers) -> None:
    """Fetch the headers of a fingerprint's buckets."""
    for table in range(tables):
        prefetch_address(bucket_head(fingerprint, table, bases))


@kernel_inline
def fetch_ends(fingerprint: np.uint64, tables: int, bases: Integers) -> None:
    """Fetch where a fingerprint's entries will go, and the words of its bucket in table 0, where it may be."""
    for table in range(tables):
        head = bucket_head(fingerprint, table, bases)
        meta = load32(head + QUARTER_META)
        count = meta & COUNT
        slot = count & (CHUNK_ENTRIES - 1)
        if meta & IN_CHUNKS:
            if slot:
                line = chunk_address(head, count >> 5, bases)
                prefetch_address(line)
                prefetch_address(records_in(line, meta) + 4 * slot)
            if table == 0:
                for chunk in range(count >> 5):
                    prefetch_address(chunk_address(head, chunk, bases))


@kernel_inline
def fetch_ahead(at: int, fingerprints: Fingerprints, tables: int, bases: Integers) -> None:
    """Fetch what later fingerprints need."""
    if at + _HEADS_AHEAD < len(fingerprints):
        fetch_buckets(fingerprints[at + _HEADS_AHEAD], tables, bases)
    if at + _LINES_AHEAD < len(fingerprints):
        fetch_ends(fingerprints[at + _LINES_AHEAD], tables, bases)


@kernel_inline
def find_buckets(
    fingerprint: np.uint64, tables: int, heads: Integers, bases: Integers, counters: Integers
) -> tuple[bool, bool]:
    """Write the addresses of the headers of a fingerprint's buckets to heads: int64[4].

    Returns whether it must go to the halves, since a bucket is full, and whether it may be there.
    """
    most, marks = counters[MOST_ENTRIES], np.int64(ELSEWHERE)
    is_full = False
    for table in range(tables):
        head = bucket_head(fingerprint, table, bases)
        heads[np.uint64(table)] = head
        meta = load32(head + QUARTER_META)
        marks &= meta
        is_full |= meta & COUNT >= most
    return is_full, marks != 0


@kernel_inline
def mark_elsewhere(fingerprint: np.uint64, tables: int, bases: Integers, counters: Integers) -> None:
    """Mark the buckets of a fingerprint that is in the halves."""
    for table in range(tables):
        head = bucket_head(fingerprint, table, bases)
        meta = load32(head + QUARTER_META)
        counters[CROWDED_BUCKETS] += meta & ELSEWHERE == 0 and meta & COUNT >= counters[MOST_ENTRIES]
        store32(head + QUARTER_META, meta | ELSEWHERE)


@kernel_inline
def in_halves(fingerprint: np.uint64, halves: int, leaves: Integers, bases: Integers, counters: Integers) -> bool:
    """Return whether the halves have a fingerprint."""
    leaves_of(fingerprint, halves, leaves, bases, counters)
    return entry_slot(leaves[0, 1], leaves[0, 2], leaves[0, 3], bases) != 0


@kernel_inline
def insert_here(
    fingerprint: np.uint64,
    sequence: int,
    tables: int,
    heads: Integers,
    leaves: Integers,
    taken: Integers,
    bases: Integers,
    counters: Integers,
) -> int:
    """Insert an entry into the quarters or, beside crowded buckets, the halves; return a status."""
    is_full, is_marked = find_buckets(fingerprint, tables, heads, bases, counters)
    record = record_of(fingerprint, heads[0], bases)
    if record >= 0:
        address = record_value(record, bases)
        joined = value_joined(load32(address), sequence, bases, counters)
        if joined < 0:
            return PRESENT
        store32(address, joined)
        counters[ALL] += 1
        return DONE
    if is_full or is_marked:
        halves = min(tables, 2)
        if counters[HEADS] == 0:
            return UNOPENED
        if is_short(counters):
            return SHORT
        if is_full or in_halves(fingerprint, halves, leaves, bases, counters):
            mark_elsewhere(fingerprint, tables, bases, counters)
            return insert_one(fingerprint, sequence, halves, leaves, taken, bases, counters)
    record = take_record(fingerprint, take_number(sequence, bases, counters), bases, counters)
    for table in range(tables):
        add_entry(heads[np.uint64(table)], word_of(fingerprint, table), record, bases, counters)
    counters[ALL] += 1
    counters[DISTINCT] += 1
    return DONE


@long_kernel
def insert_quarters(
    sequences: Integers, fingerprints: Fingerprints, done: int, tables: int, bases: Integers, counters: Integers
) -> int:
    """Insert entries from number `done` on; return how many are inserted. counters[STATUS]: why it returned.

    sequences: int64[n], rows in an index of rows; fingerprints: uint64[n]. tables: 1 to 4.
    """
    heads, leaves, taken = np.empty(4, np.int64), np.empty((4, 4), np.int64), np.empty((6, 3), np.int64)
    for at in range(done, len(fingerprints)):
        fetch_ahead(at, fingerprints, tables, bases)
        if quarters_short(counters) or values_short(counters):
            counters[STATUS] = SHORT
            return at
        status = insert_here(fingerprints[at], sequences[at], tables, heads, leaves, taken, bases, counters)
        if status != DONE:
            counters[STATUS] = status
            return at + (status == UNREFINED)
    counters[STATUS] = DONE
    return len(fingerprints)


@kernel
def insert_quarters_few(
    sequences: Integers, fingerprints: Fingerprints, done: int, tables: int, bases: Integers, counters: Integers
) -> int:
    """The same as `insert_quarters`, for one page or a few: it keeps the interpreter lock."""
    return insert_quarters(sequences, fingerprints, done, tables, bases, counters)


@kernel_inline
def erase_everywhere(record: int, tables: int, bases: Integers, counters: Integers) -> None:
    """Remove a record from its buckets, and free it."""
    fingerprint = record_fingerprint(record, bases)
    for table in range(tables):
        head = bucket_head(fingerprint, table, bases)
        erase_entry(head, position_of(head, word_of(fingerprint, table), record, bases), bases, counters)
    give_record(record, bases, counters)


@long_kernel
def remove_quarters(
    sequences: Integers, fingerprints: Fingerprints, tables: int, bases: Integers, counters: Integers
) -> int:
    """Remove entries; return how many. counters[STATUS]: ABSENT if the next one is not there."""
    leaves = np.empty((4, 4), np.int64)
    counters[STATUS] = ABSENT
    for at in range(len(fingerprints)):
        fetch_ahead(at, fingerprints, tables, bases)
        fingerprint, sequence = fingerprints[at], sequences[at]
        head = bucket_head(fingerprint, 0, bases)
        record = record_of(fingerprint, head, bases)
        if record >= 0:
            address = record_value(record, bases)
            left = value_left(load32(address), sequence, bases, counters)
            if left == GONE:
                erase_everywhere(record, tables, bases, counters)
            elif left >= 0:
                store32(address, left)
            else:
                return at
        elif load32(head + QUARTER_META) & ELSEWHERE == 0 or not remove_one(
            fingerprint, sequence, min(tables, 2), leaves, bases, counters
        ):
            return at
    counters[STATUS] = DONE
    return len(fingerprints)


@kernel_inline
def move_record(
    record: int, tables: int, leaves: Integers, taken: Integers, bases: Integers, counters: Integers
) -> bool:
    """Move a fingerprint with its value to the halves; return whether refined tables are missing for a bucket."""
    fingerprint, value = record_fingerprint(record, bases), load32(record_value(record, bases))
    erase_everywhere(record, tables, bases, counters)
    count = leaves_of(fingerprint, min(tables, 2), leaves, bases, counters)
    unrefined = store_in(leaves, count, value, taken, bases, counters)
    grow_tables(taken, bases, counters)
    return unrefined


@long_kernel
def move_records(count: int, tables: int, bases: Integers, counters: Integers) -> int:
    """Move up to so many records to the halves, the last ones first; return how many were looked at.

    counters[STATUS]: why it returned. No record is taken any more, so those at the end are not needed again.
    """
    leaves, taken = np.empty((4, 4), np.int64), np.empty((6, 3), np.int64)
    for done in range(count):
        record = counters[RECORDS_USED] - 1
        if record < 0:
            break
        if is_short(counters):
            counters[STATUS] = SHORT
            return done
        if record >= _HEADS_AHEAD:
            fetch_buckets(record_fingerprint(record - _HEADS_AHEAD, bases), tables, bases)
            fetch_ends(record_fingerprint(record - _LINES_AHEAD, bases), tables, bases)
        unrefined = False
        if load32(record_value(record, bases)) != FREE:
            unrefined = move_record(record, tables, leaves, taken, bases, counters)
        counters[RECORDS_USED] = record
        counters[RECORDS_FREE] -= 1
        if unrefined:
            counters[STATUS] = UNREFINED
            return done + 1
    counters[STATUS] = DONE
    return count


@long_kernel
def move_fingerprints(fingerprints: Fingerprints, done: int, tables: int, bases: Integers, counters: Integers) -> int:
    """Move fingerprints: uint64[n], from number `done` on, to the halves if they are in the quarters.

    Returns how many were looked at; counters[STATUS]: why.
    """
    leaves, taken = np.empty((4, 4), np.int64), np.empty((6, 3), np.int64)
    for at in range(done, len(fingerprints)):
        fetch_ahead(at, fingerprints, tables, bases)
        if is_short(counters):
            counters[STATUS] = SHORT
            return at
        record = record_of(fingerprints[at], bucket_head(fingerprints[at], 0, bases), bases)
        if record >= 0 and move_record(record, tables, leaves, taken, bases, counters):
            counters[STATUS] = UNREFINED
            return at + 1
    counters[STATUS] = DONE
    return len(fingerprints)
