"""Buffered pages: in order, once, within limits."""

from dataclasses import dataclass

from dedup_service.core.log_records import Source
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes
from dedup_service.runtime.kafka.steps.page_buffer import OVERHEAD_BYTES, PageBuffer


@dataclass(frozen=True)
class Consumed:
    """A record as a consumer returns it."""

    partition: int
    offset: int
    value: bytes | None = b"page"
    key: bytes | None = None
    topic: str = "pages"


EVERY = [(partition, offset) for partition in range(2) for offset in range(10)]


def outcomes(*places: tuple[int, int]) -> PendingOutcomes:
    """Return pending outcomes for these partitions and offsets."""
    return PendingOutcomes(
        {Source("pages", partition, offset): PendingOutcome(1, "unique", b"{}") for partition, offset in places}
    )


def offsets(buffer: PageBuffer, known: PendingOutcomes, max_records: int = 100) -> list[tuple[int, int]]:
    """Return partition and offset of the records that can be written."""
    return [(record.partition, record.offset) for record, _ in buffer.ready(known, max_records, 1 << 20)]


def test_a_partition_waits_for_the_outcome_of_its_head() -> None:
    """Later pages of the partition do not overtake it; other partitions continue."""
    buffer = PageBuffer(100, 1 << 20)
    buffer.put([Consumed(0, 1), Consumed(0, 2), Consumed(1, 7)])
    assert offsets(buffer, outcomes((0, 2), (1, 7))) == [(1, 7)]
    assert offsets(buffer, outcomes((0, 1), (0, 2))) == [(0, 1), (0, 2)]
    assert offsets(buffer, outcomes(*EVERY)) == [(0, 1), (0, 2), (1, 7)]


def test_written_pages_leave_and_others_stay() -> None:
    """`ready` alone changes nothing: its transaction may be lost."""
    buffer = PageBuffer(100, 1 << 20)
    buffer.put([Consumed(0, 1), Consumed(0, 2)])
    known = outcomes((0, 1))
    buffer.done(buffer.ready(known, 10, 1 << 20))
    assert offsets(buffer, outcomes(*EVERY)) == [(0, 2)]
    assert (buffer.records, buffer.size_bytes) == (1, 4 + OVERHEAD_BYTES)


def test_a_page_read_twice_is_buffered_once() -> None:
    """It does not matter to which offset the consumer was reset."""
    buffer = PageBuffer(100, 1 << 20)
    buffer.begin(0, 5)
    buffer.put([Consumed(0, 4), Consumed(0, 5), Consumed(0, 6), Consumed(0, 5), Consumed(0, 6), Consumed(0, 7)])
    assert offsets(buffer, outcomes(*EVERY)) == [(0, 5), (0, 6), (0, 7)]
    assert buffer.repeated == 3


def test_a_revoked_partition_is_dropped() -> None:
    """Its pages belong to another process; if it is assigned again, it starts at the given offset."""
    buffer = PageBuffer(100, 1 << 20)
    buffer.put([Consumed(0, 1), Consumed(1, 1)])
    buffer.end(0)
    assert offsets(buffer, outcomes(*EVERY)) == [(1, 1)]
    buffer.begin(0, 1)
    buffer.put([Consumed(0, 1)])
    assert buffer.records == 2


def test_limits_are_in_records_and_in_bytes() -> None:
    """The buffer is full at whichever limit is reached first; nulls count, too."""
    by_records, by_bytes = PageBuffer(2, 1 << 20), PageBuffer(100, 5000)
    by_records.put([Consumed(0, 1), Consumed(0, 2, None)])
    by_bytes.put([Consumed(0, 1, b"x" * 5000)])
    assert by_records.full
    assert by_bytes.full
    assert offsets(by_records, outcomes((0, 1), (0, 2)), max_records=1) == [(0, 1)]
