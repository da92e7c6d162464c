"""Memory of the compact layout: pools of small items that grow without being moved, read at their addresses.

A pool is a row of segments. Segment 0 holds the first 65,536 items; every other one holds as many as all
before it together. Growth adds a segment and copies nothing, so no insertion waits for it. A segment is
zeroed memory that the system provides when it is first written: unused room costs address space only.

Kernels find an item by its number with `item_address`: the bit length of the number selects the segment. They
read and write with `load32` and others of `core.kernels`. Addresses and all other numbers are int64 here,
because numba turns a mixture of int64 and uint64 into floating point.

Invariant: whoever passes `bases` to a kernel keeps the pools, and thereby the segments, alive.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dedup_service.core.index.huge_memory import HUGE_PAGE, huge_memory
from dedup_service.core.kernels import kernel_inline

FIRST_BITS = 16
FIRST_ITEMS = 1 << FIRST_BITS
SEGMENTS = 17
"""Segments of a pool at most: 2**32 items."""

_CACHE_LINE = 64


class SegmentPool:
    """Items of one size. bases: int64[SEGMENTS], which kernels take, receives the addresses of segments."""

    __slots__ = ("_bases", "_item_bytes", "_segments")

    def __init__(self, item_bytes: int, bases: npt.NDArray[np.int64]) -> None:
        self._item_bytes, self._bases = item_bytes, bases
        self._segments: list[npt.NDArray[np.uint8]] = []

    @property
    def room(self) -> int:
        """Number of items for which there is room."""
        return FIRST_ITEMS << (len(self._segments) - 1) if self._segments else 0

    def grow(self) -> int:
        """Add a segment; return the new room."""
        first, number = self.room, len(self._segments)
        size_bytes = max(first, FIRST_ITEMS) * self._item_bytes
        if size_bytes >= 2 * HUGE_PAGE:
            segment = huge_memory(-(-size_bytes // HUGE_PAGE))
        else:
            segment = np.zeros(size_bytes + _CACHE_LINE, np.uint8)
        address = int(segment.ctypes.data)
        address += -address % _CACHE_LINE
        self._segments.append(segment)
        self._bases[number] = address - first * self._item_bytes
        return self.room


def _bit_length(_typing: Any, _number: Any) -> Any:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        zeros = builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))
        return builder.sub(ir.Constant(ir.IntType(64), 64), zeros)

    return types.int64(types.int64), emit


def _close_words(_typing: Any, _address: Any, _word: Any, _radius: Any) -> Any:
    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address, word, radius = arguments
        number = ir.IntType(32)
        vector = ir.VectorType(number, 8)

        def all_lanes(value: Any) -> Any:
            lanes = builder.insert_element(ir.Constant(vector, ir.Undefined), builder.trunc(value, number), number(0))
            return builder.shuffle_vector(lanes, lanes, ir.Constant(vector, [0] * 8))

        words = builder.load(builder.inttoptr(address, vector.as_pointer()), align=32)
        popcount = builder.module.declare_intrinsic("llvm.ctpop.v8i32", (), ir.FunctionType(vector, [vector]))
        distances = builder.call(popcount, [builder.xor(words, all_lanes(word))])
        close = builder.icmp_unsigned("<=", distances, all_lanes(radius))
        return builder.zext(builder.bitcast(close, ir.IntType(8)), ir.IntType(64))

    return types.int64(types.int64, types.int64, types.int64), emit


bit_length = cast("Callable[[int], int]", intrinsic(_bit_length))
"""Return the number of bits of an int64 >= 0 without its leading zeros. Like the others, for kernels only."""

close_words = cast("Callable[[int, int, int], int]", intrinsic(_close_words))
"""Compare eight uint32 at an address, a multiple of 32, with a word; return a mask of 8 bits.

close_words(address, word, radius): bit i is set if the i-th of them differs from `word` in at most `radius`
bits. One vector instruction each for XOR, population count and comparison where the processor has them.
"""


@kernel_inline
def item_address(bases: npt.NDArray[np.int64], pool: int, number: int, item_bytes: int) -> int:
    """Return the address of an item. bases: int64[pools, SEGMENTS]."""
    return int(bases[np.uint64(pool), np.uint64(bit_length(number >> FIRST_BITS))] + number * item_bytes)
