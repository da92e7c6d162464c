"""Four tables of 16-bit quarters: what the compact layout has up to some 25 million fingerprints.

A fingerprint has four quarters of 16 bits, and each is the number of a bucket of one table. Fingerprints within
distance k <= 3 have k + 1 quarters that cannot all differ, so k + 1 tables are searched, one bucket in each.

An entry of a bucket takes six bytes: a *word*, which is another quarter, and the number of a *record*, which has the
whole fingerprint and the value (a number or a crowd, as in the halves). A search compares 32 words at a time and reads
the records of those that are close: that differ in one bit at most.

One bit suffices. The word of table t is quarter t + 1 (of table 3, quarter 0). Let two fingerprints differ in 3 bits at
most. If one quarter alone is equal, each of the others differs in exactly one bit, also the word of that table. If
two are equal that follow one another, the first one's word does not differ. If two are equal with one quarter between
them, each has one of the two others as its word, and not both of these differ in two bits. With three equal
quarters, two of them follow one another. The same holds for smaller radii, with fewer tables, by trying all cases
(`tests/core/index/test_quarters.py`). So one word of 3,855 passes, not one of 94, as with all three bits.

Header of a bucket, 64 bytes:

    up to 10 entries: word x 10 | 20: record x 10 | 60: count and marks
    more:             number of a chunk x 15      | 60: count and marks

A chunk has 32 words (64 bytes) and then 32 records. A bucket of n entries has n / 32 chunks, rounded up, so 16 entries
are unused on average, and nothing is ever moved or copied when a bucket grows.

A bucket takes a bounded number of entries. A fingerprint of which one bucket is full goes to the halves, which serve
crowded buckets well, and all its buckets get the mark ELSEWHERE. A search within the radius reads one of them at
least, and only then asks the halves, too.

Invariants: a fingerprint is in all tables, or in the halves. Only the last chunk of a bucket is partly full.

Source: Manku, Jain, Das Sarma, WWW 2007 (blocks); Norouzi, Punjani, Fleet, CVPR 2012 (one bucket a block).
"""

import numpy as np

from dedup_service.core.index.block_halves_write import WORK_COMPARED
from dedup_service.core.index.block_lines import CHUNKS, FINGERPRINTS, QUARTER_HEADS, VALUES, Integers
from dedup_service.core.index.block_memory import bit_length, close_shorts, item_address
from dedup_service.core.kernels import kernel, kernel_inline, load16, load32, load64, store16, store32, store64

BUCKETS = 1 << 16
HEAD_BYTES = 64
QUARTER_META = 60
CHUNK_ENTRIES, CHUNK_BYTES = 32, 192
MAX_ENTRIES = 15 * CHUNK_ENTRIES
"""Entries of a bucket at most: those of the chunks that a header has room for."""

_IN_HEAD, _HEAD_RECORDS, _CHUNK_RECORDS = 10, 20, 64

COUNT, IN_CHUNKS, ELSEWHERE = 0xFFFF, 1 << 16, 1 << 17
"""Of the last word of a header: the number of entries; they are in chunks; others with this quarter are in the halves.
"""

FREE = 0xFFFF_FFFF
"""The value of a record that is not in use."""

_FIRST = WORK_COMPARED + 1
CHUNKS_USED, CHUNKS_ROOM, CHUNKS_FREE, FREE_CHUNK = range(_FIRST, _FIRST + 4)
RECORDS_USED, RECORDS_ROOM, RECORDS_FREE, FREE_RECORD = range(_FIRST + 4, _FIRST + 8)
MOST_ENTRIES, CROWDED_BUCKETS = range(_FIRST + 8, _FIRST + 10)
"""Indexes into the counters, after those of `block_halves_write`. FREE_CHUNK, FREE_RECORD: number plus 1, or 0.
MOST_ENTRIES: of a bucket; further ones go to the halves. CROWDED_BUCKETS: that have sent entries there.
"""


@kernel_inline
def word_radius(radius: int) -> int:
    """Return in how many bits the word of an entry may differ."""
    return min(radius, 1)


@kernel_inline
def quarter_of(fingerprint: np.uint64, quarter: int) -> int:
    """Return 16 bits of a fingerprint: of quarter 0 to 3, or 4, which is 0 again."""
    return int(np.int64(fingerprint >> np.uint64(16 * (quarter & 3))) & 0xFFFF)


@kernel_inline
def word_of(fingerprint: np.uint64, table: int) -> int:
    """Return the word of a fingerprint in a table."""
    return quarter_of(fingerprint, table + 1)


@kernel_inline
def bucket_head(fingerprint: np.uint64, table: int, bases: Integers) -> int:
    """Return the address of the header of a fingerprint's bucket."""
    return item_address(bases, QUARTER_HEADS, (table << 16) | quarter_of(fingerprint, table), HEAD_BYTES)


@kernel_inline
def chunk_address(head: int, chunk: int, bases: Integers) -> int:
    """Return the address of a chunk of a bucket that is in chunks."""
    return item_address(bases, CHUNKS, load32(head + 4 * chunk), CHUNK_BYTES)


@kernel_inline
def records_in(line: int, meta: int) -> int:
    """Return the address of the record numbers that belong to the words at `line`. meta: of the bucket."""
    return line + (_CHUNK_RECORDS if meta & IN_CHUNKS else _HEAD_RECORDS)


@kernel_inline
def mask_of(entries: int) -> int:
    """Return a mask of 32 bits with so many of the lowest ones set; all for more than 32."""
    return (1 << min(entries, CHUNK_ENTRIES)) - 1


@kernel_inline
def lowest_bit(mask: int) -> int:
    """Return the number of the lowest bit that is set."""
    return bit_length(mask & -mask) - 1


@kernel_inline
def record_fingerprint(record: int, bases: Integers) -> np.uint64:
    """Return the fingerprint of a record."""
    return np.uint64(load64(item_address(bases, FINGERPRINTS, record, 8)))


@kernel_inline
def record_value(record: int, bases: Integers) -> int:
    """Return the address of the value of a record."""
    return item_address(bases, VALUES, record, 4)


@kernel_inline
def take_record(fingerprint: np.uint64, value: int, bases: Integers, counters: Integers) -> int:
    """Return the number of a new record; the caller ensures that there is one."""
    record = counters[FREE_RECORD] - 1
    if record >= 0:
        counters[FREE_RECORD] = load64(item_address(bases, FINGERPRINTS, record, 8))
        counters[RECORDS_FREE] -= 1
    else:
        record = counters[RECORDS_USED]
        counters[RECORDS_USED] += 1
    store64(item_address(bases, FINGERPRINTS, record, 8), int(np.int64(fingerprint)))
    store32(record_value(record, bases), value)
    return int(record)


@kernel_inline
def give_record(record: int, bases: Integers, counters: Integers) -> None:
    """Free a record."""
    store64(item_address(bases, FINGERPRINTS, record, 8), counters[FREE_RECORD])
    store32(record_value(record, bases), FREE)
    counters[FREE_RECORD] = record + 1
    counters[RECORDS_FREE] += 1


@kernel_inline
def quarters_short(counters: Integers) -> bool:
    """Return whether there may be too few chunks or records for the next insertion."""
    chunks = counters[CHUNKS_ROOM] - counters[CHUNKS_USED] + counters[CHUNKS_FREE]
    records = counters[RECORDS_ROOM] - counters[RECORDS_USED] + counters[RECORDS_FREE]
    return bool(chunks < 4 or records < 1)


@kernel_inline
def take_chunk(bases: Integers, counters: Integers) -> int:
    """Return the number of a chunk that is not in use; the caller ensures that there is one."""
    chunk = counters[FREE_CHUNK] - 1
    if chunk >= 0:
        counters[FREE_CHUNK] = load32(item_address(bases, CHUNKS, chunk, CHUNK_BYTES))
        counters[CHUNKS_FREE] -= 1
        return int(chunk)
    chunk = counters[CHUNKS_USED]
    counters[CHUNKS_USED] += 1
    return int(chunk)


@kernel_inline
def give_chunk(chunk: int, bases: Integers, counters: Integers) -> None:
    """Free a chunk."""
    store32(item_address(bases, CHUNKS, chunk, CHUNK_BYTES), counters[FREE_CHUNK])
    counters[FREE_CHUNK] = chunk + 1
    counters[CHUNKS_FREE] += 1


@kernel_inline
def add_entry(head: int, word: int, record: int, bases: Integers, counters: Integers) -> None:
    """Add an entry to a bucket that is not full; the caller ensures that there is a chunk."""
    meta = load32(head + QUARTER_META)
    count = meta & COUNT
    line = head
    if meta & IN_CHUNKS:
        if count & (CHUNK_ENTRIES - 1) == 0:
            store32(head + 4 * (count >> 5), take_chunk(bases, counters))
        line = chunk_address(head, count >> 5, bases)
    elif count == _IN_HEAD:
        chunk = take_chunk(bases, counters)
        line = item_address(bases, CHUNKS, chunk, CHUNK_BYTES)
        for at in range(_IN_HEAD):
            store16(line + 2 * at, load16(head + 2 * at))
            store32(line + _CHUNK_RECORDS + 4 * at, load32(head + _HEAD_RECORDS + 4 * at))
        store32(head, chunk)
        meta |= IN_CHUNKS
    slot = count & (CHUNK_ENTRIES - 1)
    store16(line + 2 * slot, word)
    store32(records_in(line, meta) + 4 * slot, record)
    store32(head + QUARTER_META, meta + 1)


@kernel_inline
def line_of(head: int, meta: int, position: int, bases: Integers) -> int:
    """Return the address of the words among which the entry at a position is."""
    return chunk_address(head, position >> 5, bases) if meta & IN_CHUNKS else head


@kernel_inline
def position_of(head: int, word: int, record: int, bases: Integers) -> int:
    """Return the position of the entry with this word and record in a bucket; it is there."""
    meta = load32(head + QUARTER_META)
    for begin in range(0, meta & COUNT, CHUNK_ENTRIES):
        line = line_of(head, meta, begin, bases)
        close = close_shorts(line, word, 0) & mask_of((meta & COUNT) - begin)
        while close:
            slot = lowest_bit(close)
            if load32(records_in(line, meta) + 4 * slot) == record:
                return begin + slot
            close &= close - 1
    return -1


@kernel_inline
def record_of(fingerprint: np.uint64, head: int, bases: Integers) -> int:
    """Return the record of a fingerprint, or -1. head: of its bucket in table 0."""
    meta = load32(head + QUARTER_META)
    word = word_of(fingerprint, 0)
    for begin in range(0, meta & COUNT, CHUNK_ENTRIES):
        line = line_of(head, meta, begin, bases)
        close = close_shorts(line, word, 0) & mask_of((meta & COUNT) - begin)
        while close:
            record = load32(records_in(line, meta) + 4 * lowest_bit(close))
            if record_fingerprint(record, bases) == fingerprint:
                return record
            close &= close - 1
    return -1


@kernel_inline
def erase_entry(head: int, position: int, bases: Integers, counters: Integers) -> None:
    """Remove the entry at a position of a bucket; the last one takes its place."""
    meta = load32(head + QUARTER_META)
    last = (meta & COUNT) - 1
    line, end = line_of(head, meta, position, bases), line_of(head, meta, last, bases)
    slot, from_slot = position & (CHUNK_ENTRIES - 1), last & (CHUNK_ENTRIES - 1)
    store16(line + 2 * slot, load16(end + 2 * from_slot))
    store32(records_in(line, meta) + 4 * slot, load32(records_in(end, meta) + 4 * from_slot))
    if meta & IN_CHUNKS and from_slot == 0:
        give_chunk(load32(head + 4 * (last >> 5)), bases, counters)
        if last == 0:
            meta &= ~IN_CHUNKS
    store32(head + QUARTER_META, meta - 1)


@kernel
def fullest_bucket(tables: int, bases: Integers) -> int:
    """Return the number of entries of the longest bucket."""
    longest = 0
    for bucket in range(tables << 16):
        longest = max(longest, load32(item_address(bases, QUARTER_HEADS, bucket, HEAD_BYTES) + QUARTER_META) & COUNT)
    return longest
