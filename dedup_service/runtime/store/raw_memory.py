"""Loops over addresses of mapped files: copy spans, announce reads, find what was not yet verified.

A batch of reads touches many files. Their addresses are uint64 values in arrays, so that one compiled loop reads
from all of them, without an object for each row and without the interpreter lock while the disk is read.

Invariant: callers pass addresses of bytes that are mapped and verified (`block_file`), with spans inside their file.
"""

from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dedup_service.core.kernels import long_kernel, popcount

PAGE_BYTES = 4096
"""Size of a page of memory: `madvise` takes addresses at multiples of it. Larger pages are multiples of it, too."""

_MADV_WILLNEED = 3  # the same number on Linux and macOS


def _copy(_typing: Any, _address: Any, _target: Any, _at: Any, _size: Any) -> Any:
    """Declare the type `copy(uint64, uint8[], int64, int64)` and emit its code: a memcpy."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, target, at, size = arguments
        view = context.make_array(signature.args[1])(context, builder, target)
        pointer = cgutils.voidptr_t
        to = builder.bitcast(builder.gep(view.data, [at]), pointer)
        copy: Any = cgutils.raw_memcpy
        copy(builder, to, builder.inttoptr(address, pointer), size, 1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.Array(types.uint8, 1, "C"), types.int64, types.int64), emit


def _load(kind: Any, bits: int) -> Any:
    def load(_typing: Any, _address: Any) -> Any:
        """Declare the type `load(uint64) -> unsigned integer` and emit its code."""

        def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], ir.PointerType(ir.IntType(bits)))
            return builder.load(pointer, align=1)

        return kind(types.uint64), emit

    return intrinsic(load)


_copy_bytes = cast("Any", intrinsic(_copy))
_byte_at = _load(types.uint8, 8)
_word_at = _load(types.uint64, 64)
_short_at = _load(types.uint32, 32)
_madvise: Any = types.ExternalFunction("madvise", types.int32(types.uintp, types.uintp, types.int32))

_MEMBER_WORDS = 8
"""Words of a bitmap of members between two of its counts: 512 rows."""


@long_kernel
def copy_spans(
    addresses: npt.NDArray[np.uint64],
    sizes: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    target: npt.NDArray[np.uint8],
) -> None:
    """Copy `sizes[i]` bytes from `addresses[i]` to `target[starts[i]:]`, for each i."""
    for place in range(len(addresses)):
        _copy_bytes(addresses[place], target, starts[place], sizes[place])


@long_kernel
def announce(addresses: npt.NDArray[np.uint64], sizes: npt.NDArray[np.int64]) -> int:
    """Tell the operating system that spans are about to be read, so that it reads them all at once.

    Returns the number of calls that failed; they are hints, so nothing is lost.
    """
    page = np.uint64(PAGE_BYTES - 1)
    failed = 0
    for place in range(len(addresses)):
        start = addresses[place] & ~page
        if _madvise(start, addresses[place] + np.uint64(sizes[place]) - start, _MADV_WILLNEED):
            failed += 1
    return failed


@long_kernel
def any_unset(
    flags: npt.NDArray[np.uint64],
    first: npt.NDArray[np.int64],
    last: npt.NDArray[np.int64],
    found: npt.NDArray[np.bool_],
) -> bool:
    """Find spans with a byte that is 0. flags: addresses of arrays of bytes; first, last: the bytes, inclusive.

    found: bool[n], written; returns whether any is true.
    """
    some = False
    for place in range(len(flags)):
        found[place] = False
        for at in range(first[place], last[place] + 1):
            if not _byte_at(flags[place] + np.uint64(at)):
                found[place] = some = True
    return some


@long_kernel
def places_of(members: npt.NDArray[np.uint64], words: int, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the places of rows in their compacted segments: int64[n]; -1 for a row that is not in it.

    members: address of each row's bitmap (uint64[words], then uint32 counts of the rows before every 512th), or 0
    where a segment is not compacted. offsets: of the rows in their segments.
    """
    places = offsets.copy()
    for at in range(len(offsets)):
        bitmap = members[at]
        if bitmap == 0:
            continue
        word, bit = offsets[at] >> 6, np.uint64(offsets[at] & 63)
        group = word // _MEMBER_WORDS
        own = _word_at(bitmap + np.uint64(word * 8))
        if not (own >> bit) & np.uint64(1):
            places[at] = -1
            continue
        count = np.int64(_short_at(bitmap + np.uint64(words * 8 + group * 4)))
        for before in range(group * _MEMBER_WORDS, word):
            count += popcount(_word_at(bitmap + np.uint64(before * 8)))
        places[at] = count + popcount(own & ((np.uint64(1) << bit) - np.uint64(1)))
    return places
