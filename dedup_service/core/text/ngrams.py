"""Character n-grams: the features of the `body` channel, and the shingles of evidence.

Only letters and digits count, so typography and layout do not. Each distinct n-gram counts once: that
measured better than counting occurrences, since tables and lists of repeated figures no longer outweigh the
prose (docs/quality.md). The title is not part of it: an edited headline must not move the `body` channel.

An n-gram is hashed as a polynomial of its code points modulo 2**64, mixed by the finaliser of SplitMix64
(`core.splitmix`). Repetitions are recognised in the same pass, by a hash table.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.hash_table import EMPTY, table_size
from dedup_service.core.kernels import kernel, kernel_inline_allocating
from dedup_service.core.splitmix import GAMMA, mix64_in_kernel


@kernel
def distinct_ngrams(letters: npt.NDArray[np.uint32], n: int) -> npt.NDArray[np.uint64]:
    """Return the hashes of the distinct n-grams of letters uint32[m] in order: uint64[d]."""
    hashes = _ngram_hashes(letters, n)
    # For each place of a table that is a quarter full at most, which of the distinct hashes is there, from 1 on: these
    # are in the processor's nearest cache more often than a table of hashes would be.
    places = np.zeros(table_size(2 * len(hashes)), dtype=np.int32)
    mask = np.uint64(len(places) - 1)
    distinct = 0
    for i in range(len(hashes)):
        value = hashes[np.uint64(i)]
        value = value if value != EMPTY else GAMMA
        slot = value & mask
        place = np.int64(places[slot])
        while place != 0 and hashes[np.uint64(place - 1)] != value:
            slot = (slot + np.uint64(1)) & mask
            place = np.int64(places[slot])
        hashes[np.uint64(distinct)] = value  # at most as far as the loop has come
        distinct += place == 0
        places[slot] = distinct if place == 0 else place
    return hashes[:distinct]


@kernel_inline_allocating
def _ngram_hashes(letters: npt.NDArray[np.uint32], n: int) -> npt.NDArray[np.uint64]:
    """Return the hashes of all n-grams of letters uint32[m]: uint64[m - n + 1]. The compiler vectorises each loop."""
    count = max(len(letters) - n + 1, 0)
    power = np.uint64(1)
    for _ in range(n):
        power *= GAMMA
    hashes = np.full(count, np.uint64(n) * power, dtype=np.uint64)
    power = np.uint64(1)
    for place in range(n - 1, -1, -1):
        for i in range(count):
            hashes[i] += power * np.uint64(letters[i + place])
        power *= GAMMA
    for i in range(count):
        hashes[i] = mix64_in_kernel(hashes[i])
    return hashes
