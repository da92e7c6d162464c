"""Compile numeric loops with numba, and keep their machine code.

`kernel` and `long_kernel` compile a function that Python calls. numba writes the machine code beside the
source (`__pycache__`) or, if that folder is not writable, to the user's cache folder; `NUMBA_CACHE_DIR`
overrides both. If no folder is writable, the loops are compiled in every process: the start is slower, but
nothing fails.

`kernel_inline` marks a step of a kernel: it is compiled into every kernel that calls it, and Python never
calls it. Without inlining, each step would count references to every array that it is given, which costs
more than the step (measured: probes take 1.5 to 2.2 times as long). Only kernels are cached on disk, with
their steps inside: after editing a step, delete `__pycache__/*.nbi` of the package, or touch the files of
the kernels that use it.

`popcount` and `prefetch` are instructions that no operator of Python stands for.
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
    """Return `function` compiled by numba, cached on disk if a folder is writable.

    The function keeps the interpreter lock. A loop of microseconds that releases it can wait up to 5 ms to
    get it back while other threads compute, and a page takes twenty such loops.
    """
    return _compiled(function, nogil=False)


def long_kernel(function: F) -> F:
    """Return `function` compiled like a `kernel`, but without the interpreter lock.

    For loops over all entries, which may take seconds: other threads run meanwhile.
    """
    return _compiled(function, nogil=True)


def _compiled(function: F, *, nogil: bool) -> F:
    try:
        compiled = numba.njit(cache=True, nogil=nogil)(function)
    except RuntimeError:  # numba's "no locator available": no folder is writable
        compiled = numba.njit(nogil=nogil)(function)
    return cast("F", compiled)


def kernel_inline(function: F) -> F:
    """Return `function` as a step of kernels, inlined into each kernel that calls it."""
    return cast("F", numba.njit(nogil=True, forceinline=True)(function))


def _ctpop(_typing: Any, _word: Any) -> Any:
    """Declare the type `popcount(uint64) -> int64` and emit its code, as numba requires of an intrinsic."""

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), emit


def _prefetch(_typing: Any, array: Any, _index: Any) -> Any:
    """Declare the type `prefetch(array, int64)` and emit its code: for reading, into all levels of cache."""

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
"""Return how many bits of a uint64 are set. Callable from kernels only.

LLVM's `ctpop` becomes POPCNT for one word, and over an array the widest form that the processor has
(VPOPCNTQ, or a table look-up in AVX2 registers).
"""

prefetch = cast("Callable[[npt.NDArray[np.uint64], int], None]", intrinsic(_prefetch))
"""Fetch the cache line of array[index]; the index may lie outside the array. Callable from kernels only.

Asks memory for entries before they are needed, so that the buckets of one probe arrive together instead of
one after the other.
"""
