"""Count set bits by the machine's own instruction.

LLVM's `ctpop` becomes POPCNT on one word and VPOPCNTQ over an array where the processor has it; no
spelling in Python's operators is certain to.
"""

from collections.abc import Callable
from typing import Any, cast

from numba import types
from numba.extending import intrinsic

__all__ = ["popcount"]


def _ctpop(_typing: Any, _word: Any) -> Any:
    """Type and emit `popcount(uint64) -> int64`, as numba asks an intrinsic to."""

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), emit


popcount = cast("Callable[[Any], int]", intrinsic(_ctpop))
"""Return how many bits of a uint64 are set; callable from kernels only."""
