"""Which input records have an outcome: sets of offsets by topic and partition.

A log may have a record twice; the first one counts.
"""

from collections.abc import Mapping

from pyroaring import BitMap64  # sets of offsets: runs and bitmaps, a few bytes for a million offsets in a row

from dedup_service.core.log_records import Source
from dedup_service.core.record_columns import RecordColumns


class SeenRecords:
    """The input records that were seen. state: (topic, partition) → offsets, a serialised BitMap64."""

    def __init__(self, state: Mapping[tuple[str, int], bytes]) -> None:
        self._offsets = {source: BitMap64.deserialize(offsets) for source, offsets in state.items()}

    def __contains__(self, source: Source) -> bool:
        return source.offset in self._of(source.topic, source.partition)

    def add(self, source: Source) -> bool:
        """Add a record; return whether it was not there."""
        offsets = self._of(source.topic, source.partition)
        if source.offset in offsets:
            return False
        offsets.add(source.offset)
        return True

    def add_all(self, records: RecordColumns) -> list[int]:
        """Add records, and return the places of those that were there before, ascending."""
        partitions = {number: self._of(records.topic, number) for number in dict.fromkeys(records.partitions)}
        repeated: list[int] = []
        for place, (partition, offset) in enumerate(zip(records.partitions, records.offsets, strict=True)):
            offsets = partitions[partition]
            if offset in offsets:
                repeated.append(place)
            else:
                offsets.add(offset)
        return repeated

    def add_new(self, records: RecordColumns, space_id: str) -> tuple[frozenset[int], list[int]]:
        """Add records; return the places of those that were there before, and of all that are not decided, ascending.

        Those are repeated, no pages, or not of the space in which pages are decided.
        """
        repeated = frozenset(self.add_all(records))
        if records.space_id != space_id:
            return repeated, list(range(len(records)))
        return repeated, sorted(repeated.union(records.rejected))

    def add_range(self, first: Source, end: int) -> BitMap64:
        """Add the records of a partition from the first one to before the offset `end`; return the new offsets."""
        offsets = self._of(first.topic, first.partition)
        missing = BitMap64(range(first.offset, end)) - offsets
        offsets |= missing
        return missing

    def state(self) -> dict[tuple[str, int], bytes]:
        """Return the state."""
        return {source: offsets.serialize() for source, offsets in self._offsets.items()}

    def _of(self, topic: str, partition: int) -> BitMap64:
        return self._offsets.setdefault((topic, partition), BitMap64())
