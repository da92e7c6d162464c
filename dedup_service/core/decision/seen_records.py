"""Which input records have an outcome: sets of offsets by topic and partition.

A log may have a record twice; the first one counts.
"""

from collections.abc import Mapping

from dedup_service.core.decision.offset_runs import OffsetRuns
from dedup_service.core.log_records import Source
from dedup_service.core.record_columns import RecordColumns


class SeenRecords:
    """The input records that were seen. state: (topic, partition) → packed `OffsetRuns`."""

    def __init__(self, state: Mapping[tuple[str, int], bytes]) -> None:
        self._offsets = {source: OffsetRuns(offsets) for source, offsets in state.items()}

    def __contains__(self, source: Source) -> bool:
        return source.offset in self._of(source.topic, source.partition)

    def add(self, source: Source) -> bool:
        """Add a record; return whether it was not there."""
        return bool(self._of(source.topic, source.partition).add(source.offset, source.offset + 1))

    def add_all(self, records: RecordColumns) -> list[int]:
        """Add records, and return the places of those that were there before, ascending."""
        partitions = {number: self._of(records.topic, number) for number in dict.fromkeys(records.partitions)}
        places = enumerate(zip(records.partitions, records.offsets, strict=True))
        return [place for place, (number, offset) in places if not partitions[number].add(offset, offset + 1)]

    def add_new(self, records: RecordColumns, space_id: str) -> tuple[frozenset[int], list[int]]:
        """Add records; return the places of those that were there before, and of all that are not decided, ascending.

        Those are repeated, no pages, or not of the space in which pages are decided.
        """
        repeated = frozenset(self.add_all(records))
        if records.space_id != space_id:
            return repeated, list(range(len(records)))
        return repeated, sorted(repeated.union(records.rejected))

    def add_range(self, first: Source, end: int) -> list[range]:
        """Add the records of a partition from the first one to before the offset `end`; return the new ones."""
        return self._of(first.topic, first.partition).add(first.offset, end)

    def state(self) -> dict[tuple[str, int], bytes]:
        """Return the state."""
        return {source: offsets.pack() for source, offsets in self._offsets.items()}

    def _of(self, topic: str, partition: int) -> OffsetRuns:
        return self._offsets.setdefault((topic, partition), OffsetRuns())
