"""Where the files of each segment are mapped: arrays indexed by segment number, for compiled loops.

A number of a batch's row is split into segment and offset; a look-up in these arrays gives an address. Nothing
here grows with the rows, only with the segments.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dedup_service.runtime.store.segment import Segment
from dedup_service.runtime.store.stored_rows import FILES

Words = npt.NDArray[np.uint64]
T = TypeVar("T", bound=np.generic)


class AddressTable:
    """Addresses of mapped files. All are 0 for a segment that does not exist."""

    def __init__(self) -> None:
        self.members: Words = np.zeros(0, np.uint64)
        """Of the bitmaps of compacted segments; 0 for others."""
        self.rows: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        """Rows in the file."""
        self.addresses: dict[str, Words] = {name: np.zeros(0, np.uint64) for name in FILES}
        self.flags: dict[str, Words] = {name: np.zeros(0, np.uint64) for name in FILES}
        """Of a byte for each block: whether it is verified."""
        self.lengths: dict[str, npt.NDArray[np.int64]] = {name: np.zeros(0, np.int64) for name in FILES}

    def set(self, segment: Segment) -> None:
        """Take over where the files of `segment` are now."""
        number = segment.number
        if number >= len(self.rows):
            self._grow(max(64, number + 1 + number // 2))
        self.rows[number] = segment.rows
        self.members[number] = 0 if segment.members is None else segment.members.address
        for name, file in segment.files.items():
            self.addresses[name][number] = file.address
            self.flags[name][number] = file.verified.ctypes.data
            self.lengths[name][number] = file.length

    def clear(self, number: int) -> None:
        """Forget a segment."""
        for array in (self.rows, self.members, *self._arrays()):
            array[number] = 0

    def _arrays(self) -> list[npt.NDArray[np.uint64] | npt.NDArray[np.int64]]:
        return [*self.addresses.values(), *self.flags.values(), *self.lengths.values()]

    def _grow(self, size: int) -> None:
        self.rows = _grown(self.rows, size)
        self.members = _grown(self.members, size)
        for name in FILES:
            self.addresses[name] = _grown(self.addresses[name], size)
            self.flags[name] = _grown(self.flags[name], size)
            self.lengths[name] = _grown(self.lengths[name], size)


def _grown(array: npt.NDArray[T], size: int) -> npt.NDArray[T]:
    grown = np.zeros(size, array.dtype)
    grown[: len(array)] = array
    return grown
