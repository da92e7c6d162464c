"""Which rows are live: one bit for each row number from the first segment that exists on.

A commit writes all of it to a file of its own, at most 1/8 byte a row number.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dedup_service.runtime.store.manifest import LiveLabel
from dedup_service.runtime.store.whole_file import read_whole, write_whole

_MIN_BYTES = 4096
_SCANNED_BYTES = 1024
"""Bytes of the bitmap that are looked at together."""


class LiveRows:
    """A bitmap. segment_rows: a power of two, at least 64; first: its first segment; bits: its content."""

    def __init__(self, segment_rows: int, first: int = 0, bits: npt.NDArray[np.uint8] | None = None) -> None:
        self.first = first
        self._segment_rows = segment_rows
        self._bits = np.zeros(_MIN_BYTES, np.uint8) if bits is None or not len(bits) else bits
        self._used = 0 if bits is None else len(bits)

    @property
    def bits(self) -> npt.NDArray[np.uint8]:
        """The bitmap of whole segments: uint8[m], little-endian."""
        return self._bits[: self._used]

    def add(self, numbers: range) -> None:
        """Add rows, which come after all others."""
        end = numbers.stop - self.first * self._segment_rows
        needed = -(-end // self._segment_rows) * self._segment_rows // 8
        if needed > len(self._bits):
            grown = np.zeros(max(needed, len(self._bits) * 3 // 2), np.uint8)
            grown[: self._used] = self._bits[: self._used]
            self._bits = grown
        self._used = max(self._used, needed)
        start = numbers.start - self.first * self._segment_rows
        low, high = -(-start // 8), end // 8
        if low >= high:
            self._set(range(start, end))
            return
        self._bits[low:high] = 255
        self._set(range(start, low * 8))
        self._set(range(high * 8, end))

    def has(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which rows are live: bool[n]."""
        places = numbers - self.first * self._segment_rows
        inside = (places >= 0) & (places < self._used * 8)
        places = np.where(inside, places, 0)
        found: npt.NDArray[np.bool_] = inside & ((self._bits[places >> 3] >> (places & 7).astype(np.uint8)) & 1 != 0)
        return found

    def first_behind(self, after: int, limit: int) -> npt.NDArray[np.int64]:
        """Return the first live rows behind row `after`, ascending: int64[m], `limit` at most."""
        base = self.first * self._segment_rows
        at = max(0, after + 1 - base) >> 3
        found: list[npt.NDArray[np.int64]] = []
        left = limit
        while at < self._used and left > 0:
            some = self._bits[at : min(at + _SCANNED_BYTES, self._used)]
            if some.any():
                rows = np.flatnonzero(np.unpackbits(some, bitorder="little")) + base + 8 * at
                rows = rows[rows > after][:left]
                found.append(rows)
                left -= len(rows)
            at += len(some)
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def remove(self, numbers: npt.NDArray[np.int64]) -> None:
        """Clear the bits of live rows."""
        places = numbers - self.first * self._segment_rows
        masks = ~(np.uint8(1) << (places & 7).astype(np.uint8))
        np.bitwise_and.at(self._bits, places >> 3, masks)

    def segment(self, number: int) -> npt.NDArray[np.bool_]:
        """Return which rows of a segment are live: bool[segment_rows]."""
        size = self._segment_rows // 8
        start = (number - self.first) * size
        return np.unpackbits(self._bits[start : start + size], bitorder="little").view(np.bool_)

    def begin_at(self, first: int) -> bool:
        """Drop the segments before `first` if they are half of the bitmap; return whether anything was dropped."""
        drop = (first - self.first) * self._segment_rows // 8
        if drop < max(_MIN_BYTES, self._used // 2):
            return False
        self._bits = self._bits[drop:].copy()
        self._used = max(0, self._used - drop)
        self.first = first
        if not len(self._bits):
            self._bits = np.zeros(_MIN_BYTES, np.uint8)
        return True

    def _set(self, places: Iterable[int]) -> None:
        for place in places:
            self._bits[place >> 3] |= np.uint8(1 << (place & 7))


def live_path(folder: Path, number: int) -> Path:
    """Return the path of bitmap `number`."""
    return folder / f"live-{number}"


def write_live(folder: Path, number: int, first: int, bits: npt.NDArray[np.uint8]) -> LiveLabel:
    """Write a bitmap durably; StoreFullError if the disk does not take it."""
    return LiveLabel(number, first, len(bits), write_whole(live_path(folder, number), bits.data))


def read_live(folder: Path, segment_rows: int, label: LiveLabel | None) -> LiveRows:
    """Return the bitmap of a manifest; StoreDamagedError if it is altered."""
    if label is None:
        return LiveRows(segment_rows)
    bits = read_whole(live_path(folder, label.number), label.length, label.checksum)
    return LiveRows(segment_rows, label.first, np.frombuffer(bytearray(bits), np.uint8))
