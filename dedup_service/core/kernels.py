"""Compile numeric loops once and keep the machine code.

numba writes the compiled code beside the source (`__pycache__`), or, where that folder cannot be
written, under the user's cache folder; `NUMBA_CACHE_DIR` overrides both. Where none of them can be
written the loops are compiled anew in every process: slower to start, never a failure.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["kernel", "long_kernel"]

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
