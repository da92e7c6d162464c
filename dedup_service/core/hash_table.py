"""Open-addressed hash tables with linear probing, for kernels.

A table is an array whose length is a power of two, at most half full, so that a search ends after few steps.
`slot_of` serves keys that are hashes themselves: uint64[size], 0 where a slot is empty, which therefore is
no key.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel_inline

__all__ = ["EMPTY", "slot_of", "steps", "table_size"]

EMPTY = np.uint64(0)
"""The key of an empty slot."""

_SMALLEST = 16


@kernel_inline
def table_size(entries: int) -> int:
    """Return the smallest power of two that leaves half of a table empty with so many entries."""
    size = _SMALLEST
    while size < 2 * entries:
        size *= 2
    return size


@kernel_inline
def slot_of(keys: npt.NDArray[np.uint64], key: np.uint64) -> np.uint64:
    """Return the slot where `key` is, or the empty slot where it belongs.

    keys: uint64[size]. key: not EMPTY.
    """
    mask = np.uint64(len(keys) - 1)
    slot = key & mask
    while keys[slot] != EMPTY and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@kernel_inline
def steps(start: int, stop: int, size: int) -> int:
    """Return how many places `stop` is after `start` in a table of `size` places; the first follows the last."""
    return stop - start if stop >= start else stop - start + size
