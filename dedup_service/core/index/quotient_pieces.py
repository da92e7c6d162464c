"""Pieces of a quotient table as bytes: a segment is copied out and back in without a look at its elements.

A piece is the first words of a segment (`quotient_segment.FIELDS`), then its columns: tags, values and, if tags have
them, their upper halves. A table never joins segments, so a walk that goes on at the end of the range just copied
tiles the hash space, whatever is split meanwhile.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.index.quotient_rebuild import read_in_order, write_in_order
from dedup_service.core.index.quotient_segment import (
    BYTE_MORE,
    COLUMN_PAGES,
    DEPTH,
    FIELDS,
    HASH_BITS,
    PAGE_PLACES,
    PLACES,
    PREFIX,
    REST,
    WIDE,
    WORD_MORE,
    field,
    segment_of,
    tag_address,
    upper_address,
    upper_byte_address,
    value_address,
)
from dedup_service.core.kernels import kernel, kernel_inline, load16, load32, load64, long_kernel, store64

END = 1 << HASH_BITS
"""The end of the hash space, where a walk ends."""

HEAD_BYTES = 8 * FIELDS
MAX_PIECE_BYTES = HEAD_BYTES + 8 * COLUMN_PAGES * PAGE_PLACES

_BYTES_PAGE, _TAG_PAGE, _VALUE_PAGE = PAGE_PLACES, 2 * PAGE_PLACES, 4 * PAGE_PLACES
"""Bytes of PAGE_PLACES places in a column of bytes, of tags and of values."""


Bytes = npt.NDArray[np.uint8]


def piece_bytes(head: npt.NDArray[np.int64]) -> int:
    """Return the bytes of a piece. head: int64[FIELDS], its first words."""
    return HEAD_BYTES + int(head[PLACES]) * {0: 6, BYTE_MORE: 7, WORD_MORE: 8}.get(int(head[WIDE]), 0)


@kernel_inline
def copy_words(source: int, target: int, count: int) -> None:
    """Copy `count` words of 64 bits from one address to another."""
    for at in range(0, 8 * count, 8):
        store64(target + at, load64(source + at))


@kernel
def copy_out(position: int, table: int, piece: int) -> tuple[int, int]:
    """Copy the segment of the hash `position` to the address `piece`, which has room for MAX_PIECE_BYTES.

    Returns the hash behind its range, and the bytes of the piece. The largest one takes about 0.1 ms.
    """
    segment = segment_of(position, table)
    copy_words(segment, piece, FIELDS)
    at = piece + HEAD_BYTES
    for start in range(0, field(segment, PLACES), PAGE_PLACES):
        copy_words(tag_address(start, segment), at, _TAG_PAGE // 8)
        at += _TAG_PAGE
    for start in range(0, field(segment, PLACES), PAGE_PLACES):
        copy_words(value_address(start, segment), at, _VALUE_PAGE // 8)
        at += _VALUE_PAGE
    wide = field(segment, WIDE)
    if wide:
        for start in range(0, field(segment, PLACES), PAGE_PLACES):
            if wide == BYTE_MORE:
                copy_words(upper_byte_address(start, segment), at, _BYTES_PAGE // 8)
                at += _BYTES_PAGE
            else:
                copy_words(upper_address(start, segment), at, _TAG_PAGE // 8)
                at += _TAG_PAGE
    width = HASH_BITS - field(segment, DEPTH)
    return (field(segment, PREFIX) + 1) << width, at - piece


@long_kernel
def copy_in(segment: int, piece: int) -> None:
    """Copy the columns of the piece at an address back to a segment that has its first words and pages."""
    at = piece + HEAD_BYTES
    for start in range(0, field(segment, PLACES), PAGE_PLACES):
        copy_words(at, tag_address(start, segment), _TAG_PAGE // 8)
        at += _TAG_PAGE
    for start in range(0, field(segment, PLACES), PAGE_PLACES):
        copy_words(at, value_address(start, segment), _VALUE_PAGE // 8)
        at += _VALUE_PAGE
    wide = field(segment, WIDE)
    if wide:
        for start in range(0, field(segment, PLACES), PAGE_PLACES):
            if wide == BYTE_MORE:
                copy_words(at, upper_byte_address(start, segment), _BYTES_PAGE // 8)
                at += _BYTES_PAGE
            else:
                copy_words(at, upper_address(start, segment), _TAG_PAGE // 8)
                at += _TAG_PAGE


@kernel_inline
def is_live(row: int, first: int, bits: Bytes) -> bool:
    """Return whether the bit of a row is set. first: row of the first bit."""
    at = row - first
    return bool(0 <= at < 8 * len(bits) and (bits[at >> 3] >> (at & 7)) & 1)


@long_kernel
def keep_live(segment: int, table: int, first: int, bits: Bytes) -> None:
    """Take the elements out of a segment whose values are no live rows. bits: uint8[m], from row `first` on.

    The count of elements of the table does not change; that of the segment does.
    """
    dead = 0
    for start in range(0, field(segment, PLACES), PAGE_PLACES):
        tags, values = tag_address(start, segment), value_address(start, segment)
        for at in range(PAGE_PLACES):
            if load16(tags + 2 * at) >> REST and not is_live(load32(values + 4 * at), first, bits):
                dead += 1
    if dead == 0:
        return
    places = field(segment, PLACES)
    elements, rows, scratch = np.empty(places, np.int64), np.empty(places, np.uint32), np.empty(places, np.int64)
    count = read_in_order(segment, table, elements, rows, scratch)
    kept = 0
    for at in range(count):
        if is_live(int(np.int64(rows[at])), first, bits):
            elements[kept], rows[kept] = elements[at], rows[at]
            kept += 1
    write_in_order(segment, table, kept, elements, rows, scratch)
