"""Mark a function as part of a kernel: compiled into every kernel that calls it, never called by itself.

Small steps over many arrays are written as functions for the reader; called as such by the machine,
each would count references to every array it is given, which costs more than the step (measured:
probes 1.5 to 2.2 times slower without). Only kernels are cached on disk, with their parts inside: after editing
a part, delete `__pycache__/*.nbi` of the package, or touch the files of the kernels that use it.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["inlined"]

F = TypeVar("F", bound=Callable[..., Any])


def inlined(function: F) -> F:
    """Return `function` for use in kernels, inlined wherever one calls it."""
    return cast("F", numba.njit(nogil=True, forceinline=True)(function))
