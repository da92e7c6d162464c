"""Which input records have an outcome: sets of offsets by topic and partition.

A log may have a record twice; the first one counts.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from itertools import starmap

from dedup_service.core.log_records import Source
from dedup_service.core.record_columns import RecordColumns


class OffsetRuns:
    """A set of offsets as runs without gaps: 16 bytes a run, and one run for records that came in order.

    packed: of another set.

    >>> offsets = OffsetRuns()
    >>> offsets.add(7), offsets.add(7), offsets.add_range(5, 10), 9 in offsets
    (True, False, [range(5, 7), range(8, 10)], True)
    """

    def __init__(self, packed: bytes = b"") -> None:
        self._edges = array("Q", packed)  # where each run begins and ends, ascending

    def __contains__(self, offset: int) -> bool:
        return bisect_right(self._edges, offset) % 2 == 1

    def add(self, offset: int) -> bool:
        """Add an offset; return whether it was not there."""
        edges = self._edges
        if edges and edges[-1] == offset:  # the next one, as nearly always
            edges[-1] += 1
            return True
        return bool(self.add_range(offset, offset + 1))

    def add_range(self, first: int, end: int) -> list[range]:
        """Add the offsets from `first` to before `end`; return those that were not there, ascending."""
        if first >= end:
            return []
        edges = self._edges
        low, high = bisect_left(edges, first), bisect_right(edges, end)
        begins, ends = [first] * (low % 2 == 0), [end] * (high % 2 == 0)  # else a run around it goes on
        bounds = [*begins, *edges[low:high], *ends]
        edges[low:high] = array("Q", begins + ends)
        return [gap for gap in starmap(range, zip(bounds[::2], bounds[1::2], strict=True)) if gap]

    def pack(self) -> bytes:
        """Return the set as bytes, in the byte order of the machine."""
        return self._edges.tobytes()


class SeenRecords:
    """The input records that were seen. state: (topic, partition) → offsets, a packed `OffsetRuns`."""

    def __init__(self, state: Mapping[tuple[str, int], bytes]) -> None:
        self._offsets = {source: OffsetRuns(offsets) for source, offsets in state.items()}

    def __contains__(self, source: Source) -> bool:
        return source.offset in self._of(source.topic, source.partition)

    def add(self, source: Source) -> bool:
        """Add a record; return whether it was not there."""
        return self._of(source.topic, source.partition).add(source.offset)

    def add_all(self, records: RecordColumns) -> list[int]:
        """Add records, and return the places of those that were there before, ascending."""
        partitions = {number: self._of(records.topic, number) for number in dict.fromkeys(records.partitions)}
        places = enumerate(zip(records.partitions, records.offsets, strict=True))
        return [place for place, (partition, offset) in places if not partitions[partition].add(offset)]

    def add_new(self, records: RecordColumns, space_id: str) -> tuple[frozenset[int], list[int]]:
        """Add records; return the places of those that were there before, and of all that are not decided, ascending.

        Those are repeated, no pages, or not of the space in which pages are decided.
        """
        repeated = frozenset(self.add_all(records))
        if records.space_id != space_id:
            return repeated, list(range(len(records)))
        return repeated, sorted(repeated.union(records.rejected))

    def add_range(self, first: Source, end: int) -> list[range]:
        """Add the records of a partition from the first one to before the offset `end`; return the new offsets."""
        return self._of(first.topic, first.partition).add_range(first.offset, end)

    def state(self) -> dict[tuple[str, int], bytes]:
        """Return the state."""
        return {source: offsets.pack() for source, offsets in self._offsets.items()}

    def _of(self, topic: str, partition: int) -> OffsetRuns:
        return self._offsets.setdefault((topic, partition), OffsetRuns())
