"""Where the bucket of a key is: an open-addressed table with a 32-bit key and a row in 8 bytes.

How: the home of a key is its mixed value, scaled to the number of slots; the key is in the first slot from
there on that was empty at its insertion. When a key is removed, later keys move up, so the table does not
degrade however many entries are added and removed. Homes ascend with the mixed key, so a larger table is filled from
front to end.
Invariants: key 0 marks an empty slot, and at most 7 of 10 slots are taken, so every search ends.

Source: Knuth, TAOCP 3, 6.4, algorithms L (linear probing) and R (deletion); Fibonacci hashing, ibid.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel_inline, long_kernel

__all__ = ["FIRST_SLOTS", "KEY", "LAST", "Buckets", "Integers", "Keys", "empty_slot", "larger_table", "room", "slot_of"]

KEY, LAST = 0, 1
"""Columns of a slot: the key, and the last row of its bucket."""

FIRST_SLOTS = 1024
"""Slots of an empty table."""

Buckets = npt.NDArray[np.uint32]
"""The slots: uint32[slots, 2]."""

Integers = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint32]
"""Keys, or row numbers: uint32."""

_MIX = np.uint64(0x9E3779B1)
"""The prime nearest to 2**32 divided by the golden ratio."""

_LOW32, _S32 = np.uint64(0xFFFFFFFF), np.uint64(32)


@kernel_inline
def room(slots: int) -> int:
    """Return how many of the slots may be taken: 70%, at which an unsuccessful search reads 6 slots."""
    return slots * 7 // 10


@kernel_inline
def home(key: np.uint32, slots: int) -> int:
    """Return the slot at which the search for a key begins."""
    mixed = (np.uint64(key) * _MIX) & _LOW32
    return int(np.int64((mixed * np.uint64(slots)) >> _S32))


@kernel_inline
def slot_of(key: np.uint32, buckets: Buckets) -> int:
    """Return the slot of a key, or the empty slot where it belongs."""
    slots = len(buckets)
    slot = home(key, slots)
    while buckets[slot, KEY] != key and buckets[slot, KEY] != 0:
        slot = slot + 1 if slot + 1 < slots else 0
    return slot


@kernel_inline
def steps(start: int, stop: int, slots: int) -> int:
    """Return how many slots `stop` is after `start`; the first slot follows the last."""
    return stop - start if stop >= start else stop - start + slots


@kernel_inline
def empty_slot(slot: int, buckets: Buckets) -> None:
    """Remove the key of a slot; later keys that can be nearer to their homes move up."""
    slots = len(buckets)
    hole = scanned = slot
    while True:
        scanned = scanned + 1 if scanned + 1 < slots else 0
        key = buckets[scanned, KEY]
        if key == 0:
            break
        if steps(home(key, slots), scanned, slots) >= steps(hole, scanned, slots):
            buckets[hole, KEY] = key
            buckets[hole, LAST] = buckets[scanned, LAST]
            hole = scanned
    buckets[hole, KEY] = 0


@long_kernel
def larger_table(buckets: Buckets) -> Buckets:
    """Return the same buckets in a table half as large again."""
    larger = np.zeros((len(buckets) + len(buckets) // 2, 2), np.uint32)
    for slot in range(len(buckets)):
        if buckets[slot, KEY] != 0:
            target = slot_of(buckets[slot, KEY], larger)
            larger[target, KEY] = buckets[slot, KEY]
            larger[target, LAST] = buckets[slot, LAST]
    return larger
