"""Open-addressed hash tables with linear probing, for kernels.

A table is an array whose length is a power of two, at most half full, so that a search ends after few steps. Each has a
search of its own, as its slots differ: the vocabulary keeps words in them, n-grams and the IDF table numbers of rows.
"""

import numpy as np

from dedup_service.core.kernels import kernel_inline

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
