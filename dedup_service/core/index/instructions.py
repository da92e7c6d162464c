"""Instructions that Python's operators have no spelling for.

`popcount`: LLVM's `ctpop` becomes POPCNT on one word, and over an array the widest form that the
processor has (VPOPCNTQ, or a table look-up in AVX2 registers).
`prefetch`: asks memory for an entry before it is needed, so that the buckets of one probe arrive together
instead of one after the other.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["popcount", "prefetch"]


def _ctpop(_typing: Any, _word: Any) -> Any:
    """Type and emit `popcount(uint64) -> int64`, as numba asks an intrinsic to."""

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), emit


def _prefetch(_typing: Any, array: Any, _at: Any) -> Any:
    """Type and emit `prefetch(array, int64)`: for reading, to all levels of cache."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(view.data, [arguments[1]]), cgutils.voidptr_t)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        instruction = builder.module.declare_intrinsic("llvm.prefetch.p0", (), kind)
        builder.call(instruction, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), emit


popcount = cast("Callable[[Any], int]", intrinsic(_ctpop))
"""Return how many bits of a uint64 are set; callable from kernels only."""

prefetch = cast("Callable[[npt.NDArray[np.uint64], int], None]", intrinsic(_prefetch))
"""Fetch the cache line of array[at], a place that may lie outside the array; callable from kernels only."""
