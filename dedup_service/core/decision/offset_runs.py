"""A set of offsets as runs of offsets in a row, of which a log has few: 16 bytes a run."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator


class OffsetRuns:
    """Offsets from 0 to 2**64 - 2, as disjoint runs. packed: what `pack` returned, by a process of the same machine."""

    def __init__(self, packed: bytes = b"") -> None:
        bounds = array("Q", packed)
        self._starts, self._ends = bounds[: len(bounds) // 2], bounds[len(bounds) // 2 :]  # ends: one behind the last

    def __contains__(self, offset: int) -> bool:
        place = bisect_right(self._starts, offset) - 1
        return place >= 0 and offset < self._ends[place]

    def __iter__(self) -> Iterator[range]:
        """Yield the runs, ascending."""
        return map(range, self._starts, self._ends)

    def add(self, start: int, end: int) -> list[range]:
        """Add the offsets from `start` to before `end`; return the runs of those that were not there."""
        starts, ends = self._starts, self._ends
        first = last = bisect_right(starts, start)
        if first and ends[first - 1] >= start:
            first -= 1  # a run that reaches the new one
        missing, at = [], start
        while last < len(starts) and starts[last] <= end:
            last += 1
        for begin, stop in zip(starts[first:last], ends[first:last], strict=True):
            if at < min(begin, end):
                missing.append(range(at, min(begin, end)))
            at = max(at, stop)
        if at < end:
            missing.append(range(at, end))
        if missing:
            if first < last:
                start, end = min(start, starts[first]), max(end, ends[last - 1])
            starts[first:last], ends[first:last] = array("Q", [start]), array("Q", [end])
        return missing

    def pack(self) -> bytes:
        """Return the runs as bytes."""
        return (self._starts + self._ends).tobytes()
