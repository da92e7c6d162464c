"""Compile numeric loops once and keep the machine code.

numba writes the compiled code beside the source (`__pycache__`), or, where that folder cannot be
written, under the user's cache folder; `NUMBA_CACHE_DIR` overrides both. Where none of them can be
written the loops are compiled anew in every process: slower to start, never a failure.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["kernel"]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Return `function` compiled by numba (GIL released), cached on disk where a folder allows it."""
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba's "no locator available": there is no folder to cache in
        compiled = numba.njit(nogil=True)(function)
    return cast("F", compiled)
