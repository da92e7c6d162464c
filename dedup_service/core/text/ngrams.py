"""Character n-grams: the features of the `body` channel, and the shingles of evidence.

Only letters and digits count, so typography and layout do not. Each distinct n-gram counts once: that
measured better than counting occurrences, since tables and lists of repeated figures no longer outweigh the
prose (docs/quality.md). The title is not part of it: an edited headline must not move the `body` channel.

An n-gram is hashed as a polynomial of its code points modulo 2**64, mixed by the finaliser of SplitMix64
(`core.splitmix`). Repetitions are recognised in the same pass, by a hash table.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.hash_table import EMPTY, slot_of, table_size
from dedup_service.core.kernels import kernel, kernel_inline
from dedup_service.core.splitmix import GAMMA, mix64_in_kernel

__all__ = ["distinct_ngrams"]


@kernel
def distinct_ngrams(letters: npt.NDArray[np.uint32], n: int) -> npt.NDArray[np.uint64]:
    """Return the hashes of the distinct n-grams of letters uint32[m] in order: uint64[d]."""
    hashes = _ngram_hashes(letters, n)
    # A table that is a quarter full: few searches take a second step, which the processor would not foresee.
    seen = np.zeros(table_size(2 * len(hashes)), dtype=np.uint64)
    distinct = 0
    for i in range(len(hashes)):
        value = hashes[i] if hashes[i] != EMPTY else GAMMA
        slot = slot_of(seen, value)
        hashes[np.uint64(distinct)] = value  # at most as far as the loop has come
        distinct += seen[slot] == EMPTY
        seen[slot] = value
    return hashes[:distinct]


@kernel_inline
def _ngram_hashes(letters: npt.NDArray[np.uint32], n: int) -> npt.NDArray[np.uint64]:
    """Return the hashes of all n-grams of letters uint32[m]: uint64[m - n + 1]. The compiler vectorises each loop."""
    hashes = np.full(max(len(letters) - n + 1, 0), np.uint64(n), dtype=np.uint64)
    for place in range(n):
        for i in range(len(hashes)):
            hashes[i] = hashes[i] * GAMMA + np.uint64(letters[i + place])
    for i in range(len(hashes)):
        hashes[i] = mix64_in_kernel(hashes[i])
    return hashes
