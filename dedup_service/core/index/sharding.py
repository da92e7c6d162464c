"""Which shard owns a page: `mix64(sequence) % shards`.

A bare remainder would leave shards empty where sequences have gaps (commit markers take every
other offset of a log); the mixer makes the load even for any pattern of sequences.

Source: the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
"""

import numpy as np
import numpy.typing as npt

__all__ = ["mix64", "owner", "owners"]

_WORD = (1 << 64) - 1
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mix64(value: int) -> int:
    """Return a well mixed unsigned 64-bit image of `value`, a bijection of [0, 2**64).

    >>> hex(mix64(0))
    '0xe220a8397b1dcdaf'
    """
    mixed = (value + _STEP) & _WORD
    mixed = ((mixed ^ (mixed >> 30)) * _FIRST) & _WORD
    mixed = ((mixed ^ (mixed >> 27)) * _SECOND) & _WORD
    return mixed ^ (mixed >> 31)


def owner(sequence: int, shards: int) -> int:
    """Return the shard, 0 to shards - 1, that owns `sequence`."""
    return mix64(sequence) % shards


def owners(sequences: npt.NDArray[np.int64], shards: int) -> npt.NDArray[np.int64]:
    """Return `owner` of each of sequences: int64[n]."""
    mixed = sequences.astype(np.uint64) + np.uint64(_STEP)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_FIRST)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_SECOND)
    mixed ^= mixed >> np.uint64(31)
    return (mixed % np.uint64(shards)).astype(np.int64)
