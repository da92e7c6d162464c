"""Compile numeric loops once and keep the machine code.

numba writes the compiled code beside the source (`__pycache__`), or, where that folder cannot be
written, under the user's cache folder; `NUMBA_CACHE_DIR` overrides both. Where none of them can be
written the loops are compiled anew in every process: slower to start, never a failure.

Mark a function as part of a kernel: compiled into every kernel that calls it, never called by itself.

Small steps over many arrays are written as functions for the reader; called as such by the machine,
each would count references to every array it is given, which costs more than the step (measured:
probes 1.5 to 2.2 times slower without). Only kernels are cached on disk, with their parts inside: after editing
a part, delete `__pycache__/*.nbi` of the package, or touch the files of the kernels that use it.

Instructions that Python's operators have no spelling for.

`popcount`: LLVM's `ctpop` becomes POPCNT on one word, and over an array the widest form that the
processor has (VPOPCNTQ, or a table look-up in AVX2 registers).
`prefetch`: asks memory for an entry before it is needed, so that the buckets of one probe arrive together
instead of one after the other.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["kernel", "kernel_inline", "long_kernel", "popcount", "prefetch"]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Return `function` compiled by numba, cached on disk where a folder allows it.

    It keeps the interpreter lock: a loop of microseconds that lets go of it waits up to 5 ms to have it back where
    other threads compute, and a page is made of twenty such loops.
    """
    return _compiled(function, nogil=False)


def long_kernel(function: F) -> F:
    """The same for loops over all there is, which may take seconds: other threads go on beside them."""
    return _compiled(function, nogil=True)


def _compiled(function: F, *, nogil: bool) -> F:
    try:
        compiled = numba.njit(cache=True, nogil=nogil)(function)
    except RuntimeError:  # numba's "no locator available": there is no folder to cache in
        compiled = numba.njit(nogil=nogil)(function)
    return cast("F", compiled)


def kernel_inline(function: F) -> F:
    """Return `function` for use in kernels, kernel_inline wherever one calls it."""
    return cast("F", numba.njit(nogil=True, forceinline=True)(function))


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
