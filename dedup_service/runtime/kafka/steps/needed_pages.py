"""Which offsets of `pages` have to be read where an output needs only the verdict.

The log has what to write for the pages of a partition, in their order, so `pages` itself is read only where the log
does not say enough:

- A rejected record: its dead letter has its bytes.
- Offsets without an outcome, with one for a later page. Markers of transactions and aborted records take such
  offsets; records that fingerprinting passed over have others, and become dead letters. Only `pages` knows which.
- Offsets behind the last outcome, up to where the log has all records (`note_logged`): the step's offset passes
  markers there, too, and records that were passed over are kept until a later one has an outcome.

Everything else is written without its page. A page that retention has deleted has its verdict all the same.

How: for each partition `checked` follows the outcomes from offset to offset, as far as nothing has to be read. Where
something has to, `wanted` returns it. Of the records that come, those that no output needs are not kept, and one that
the log does not have yet ends what was read: its content may not be needed.

Invariants: what is returned as ready is in order of offset within a partition, and nothing is left out. No offset
below `checked` has to be read any more.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dedup_service.core.log_records import Source
from dedup_service.runtime.kafka.messages.page import record_size
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes
from dedup_service.runtime.kafka.steps.page_buffer import OVERHEAD_BYTES, PASSED_OVER, Ready


@dataclass(slots=True)
class _Place:
    """How far a partition is, in offsets.

    next: all outputs below it are written. checked: nothing below it has to be read any more. read_to: what had to be
    read below it was read, or is gone. logged: all records below it are in the log, and the log was read that far.
    records: those that an output needs, by offset; size_bytes: their memory. reading: whether more is wanted.
    """

    next: int
    checked: int
    read_to: int
    logged: int = 0
    records: dict[int, Any] = field(default_factory=dict)
    size_bytes: int = 0
    reading: bool = False

    def keep(self, record: Any) -> None:
        """Keep a record until it is written."""
        self.records[record.offset] = record
        self.size_bytes += record_size(record) + OVERHEAD_BYTES

    def drop_below(self, offset: int) -> None:
        """Drop the records below `offset`: they are written."""
        for written in [kept for kept in self.records if kept < offset]:
            self.size_bytes -= record_size(self.records.pop(written)) + OVERHEAD_BYTES


class NeededPages:
    """What can be written without its page, and what has to be read of `topic`.

    max_records, max_bytes: of the kept records of all partitions together; each has an equal part. repeated: records
    that were read again and skipped.
    """

    def __init__(self, topic: str, max_records: int, max_bytes: int) -> None:
        self._topic = topic
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._places: dict[int, _Place] = {}
        self.repeated = 0

    @property
    def records(self) -> int:
        """Number of kept records."""
        return sum(len(place.records) for place in self._places.values())

    @property
    def size_bytes(self) -> int:
        """Memory of the kept records."""
        return sum(place.size_bytes for place in self._places.values())

    @property
    def reading(self) -> bool:
        """Whether the last `wanted` returned anything that has not come yet."""
        return any(place.reading for place in self._places.values())

    def begin(self, partition: int, offset: int) -> None:
        """Start a partition; records below `offset` already have their outputs."""
        self._places[partition] = _Place(offset, offset, offset)

    def end(self, partition: int) -> None:
        """Drop what is known of a partition that starts again or now belongs to another process."""
        self._places.pop(partition, None)

    def skip(self, partition: int, offset: int) -> None:
        """Take it that no records below `offset` come any more."""
        place = self._places.get(partition)
        if place is not None:
            place.read_to = max(place.read_to, offset)

    def note_logged(self, partition: int, offset: int) -> None:
        """Take it that the log has all records below `offset` and was read that far."""
        place = self._places.get(partition)
        if place is not None:
            place.logged = max(place.logged, offset)

    def wanted(self, outcomes: PendingOutcomes) -> dict[int, tuple[int, int]]:
        """Return what to read now: the first offset of each partition, and the one to end before.

        A partition whose kept records reach its part of the limits gets no more until some are written.
        """
        ranges: dict[int, tuple[int, int]] = {}
        for partition, place in self._places.items():
            missing = self._check(partition, place, outcomes)
            place.reading = missing is not None and not self._is_full(place)
            if missing is not None and place.reading:
                ranges[partition] = missing
        return ranges

    def put(self, records: Iterable[Any], reached: Mapping[int, int], outcomes: PendingOutcomes) -> None:
        """Take over the records that a consumer has returned for what was `wanted`.

        reached: the offset up to which it has returned all records of a partition.
        """
        found: dict[int, list[Any]] = {partition: [] for partition in reached}
        for record in records:
            found.setdefault(record.partition, []).append(record)
        for partition, batch in found.items():
            place = self._places.get(partition)
            if place is None or not place.reading:  # the rest of a fetch, or of a partition that has started again
                continue
            if self._take(place, batch, outcomes):
                place.read_to = max(place.read_to, reached.get(partition, 0))

    def ready(self, outcomes: PendingOutcomes, max_records: int, max_bytes: int) -> list[Ready]:
        """Return what can be written, in order within a partition; it stays until `done`."""
        ready: list[Ready] = []
        size = 0
        for partition, place in self._places.items():
            self._check(partition, place, outcomes)
            for item in self._in_order(partition, place, outcomes):
                if len(ready) >= max_records or size >= max_bytes:
                    return ready
                ready.append(item)
                size += len(item.outcome.value) if item.record is None else record_size(item.record)
        return ready

    def done(self, ready: Sequence[Ready]) -> None:
        """Remove what `ready` returned: it is written. Its partitions come last at the next turn.

        A partition that has ended since then is passed over.
        """
        for partition, last in {item.source.partition: item for item in ready}.items():
            place = self._places.pop(partition, None)
            if place is None:
                continue
            place.next = max(place.next, last.end)
            place.checked = max(place.checked, place.next)
            place.drop_below(place.next)
            self._places[partition] = place

    def passed(self, outcomes: PendingOutcomes) -> dict[int, int]:
        """Return the offset up to which partitions have nothing to write, neither now nor later."""
        passed: dict[int, int] = {}
        for partition, place in self._places.items():
            self._check(partition, place, outcomes)
            first = Source(self._topic, partition, place.next)
            if (
                place.next < place.logged <= place.checked
                and min(place.records, default=place.logged) >= place.logged
                and not outcomes.between(first, place.logged)
            ):
                passed[partition] = place.logged
        return passed

    def _is_full(self, place: _Place) -> bool:
        parts = max(1, len(self._places))
        return len(place.records) * parts >= self._max_records or place.size_bytes * parts >= self._max_bytes

    def _check(self, partition: int, place: _Place, outcomes: PendingOutcomes) -> tuple[int, int] | None:
        """Move `checked` to the first offset that has to be read; return it and where to end, None if there is none."""
        while True:
            at = place.checked
            source = Source(self._topic, partition, at)
            outcome = outcomes.get(source)
            if outcome is None:
                later = outcomes.next_after(source)
                end = max(place.logged, at) if later is None else later
                if end == at:
                    return None
            elif outcome.kind is None:
                end = at + 1
            else:
                place.checked = at + 1
                continue
            if place.read_to <= at:
                return at, end
            place.checked = min(end, place.read_to) if outcome is None else outcome.end or end

    def _take(self, place: _Place, batch: Sequence[Any], outcomes: PendingOutcomes) -> bool:
        """Keep what an output needs; return whether all was taken: the log may not have had the last ones yet."""
        for record in batch:
            source = Source(self._topic, record.partition, record.offset)
            outcome = outcomes.get(source)
            if record.offset < place.read_to:
                self.repeated += 1
                continue
            if outcome is None and not outcomes.has_later(source) and record.offset >= place.logged:
                return False
            if outcome is None or outcome.kind is None:
                place.keep(record)
            place.read_to = record.offset + 1
        return True

    def _in_order(self, partition: int, place: _Place, outcomes: PendingOutcomes) -> Iterator[Ready]:
        """Yield what can be written of a partition, by offset."""
        at = place.next
        while at < place.checked:
            source = Source(self._topic, partition, at)
            outcome, record = outcomes.get(source), place.records.get(at)
            if outcome is None and record is None:
                found = (outcomes.next_after(source), *(kept for kept in place.records if kept > at))
                at = min((offset for offset in found if offset is not None), default=place.checked)
                continue
            if outcome is None:
                if not outcomes.has_later(source):
                    return
                outcome = PASSED_OVER
            item = self._ready(source, outcome, record)
            at = item.end
            yield item

    def _ready(self, source: Source, outcome: PendingOutcome, record: Any | None) -> Ready:
        if outcome.kind is None:
            return Ready(source, outcome, record)
        return Ready(source, outcome, None, needs_page=False)
