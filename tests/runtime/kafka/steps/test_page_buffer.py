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
    headers: tuple[tuple[str, bytes], ...] = ()


EVERY = [(partition, offset) for partition in range(2) for offset in range(10)]


def outcomes(*places: tuple[int, int]) -> PendingOutcomes:
    """Return pending outcomes for these partitions and offsets."""
    return PendingOutcomes(
        {Source("pages", partition, offset): PendingOutcome(1, "unique", b"{}") for partition, offset in places}
    )


def offsets(buffer: PageBuffer, known: PendingOutcomes, max_records: int = 100) -> list[tuple[int, int]]:
    """Return partition and offset of what can be written."""
    return [(item.source.partition, item.source.offset) for item in buffer.ready(known, max_records, 1 << 20)]


def test_pages_of_a_partition_that_has_gone_are_done() -> None:
    """It may move to another process while its transaction is committed, and come back, before that is known."""
    buffer = PageBuffer("pages", 100, 1 << 20)
    buffer.put([Consumed(0, 1), Consumed(1, 1), Consumed(1, 2)])
    ready = buffer.ready(outcomes((0, 1), (1, 1)), 10, 1 << 20)
    buffer.end(0)
    buffer.begin(1, 1)
    buffer.put([Consumed(1, 1), Consumed(1, 2)])
    buffer.done(ready)
    assert offsets(buffer, outcomes(*EVERY)) == [(1, 2)]


def test_one_partition_whose_pages_are_not_in_the_log_yet_leaves_room_for_the_others() -> None:
    """Each partition has an equal part of the limits: only the one that waits is paused."""
    buffer = PageBuffer("pages", 100, 1 << 20)
    buffer.put(Consumed(0, offset) for offset in range(500))
    assert buffer.full([0, 1, 2, 3]) == {0}
    buffer.put(Consumed(1, offset) for offset in range(24))
    assert buffer.full([0, 1, 2, 3]) == {0}
    buffer.put([Consumed(1, 24)])
    assert buffer.full([0, 1, 2, 3]) == {0, 1}


def test_a_partition_that_always_has_work_takes_turns_with_the_others() -> None:
    """What was written last comes last."""
    buffer = PageBuffer("pages", 100, 1 << 20)
    buffer.put([Consumed(partition, offset) for partition in (0, 1) for offset in range(4)])
    known = outcomes(*EVERY)
    served = []
    for _ in range(4):
        ready = buffer.ready(known, 2, 1 << 20)
        served.append(ready[0].source.partition)
        buffer.done(ready)
    assert served == [0, 1, 0, 1]


def test_an_outcome_whose_page_retention_deleted_is_returned_without_it() -> None:
    """It comes in its place, once; offsets that have no outcome, like markers of transactions, are nothing."""
    buffer, known = PageBuffer("pages", 100, 1 << 20), outcomes((0, 2), (0, 3), (0, 5), (0, 8))
    buffer.begin(0, 2)
    buffer.put([Consumed(0, 5), Consumed(0, 8)])
    ready = buffer.ready(known, 100, 1 << 20)
    assert [(item.source.offset, item.is_lost) for item in ready] == [(2, True), (3, True), (5, False), (8, False)]
    buffer.done(ready)
    for item in ready:
        known.forget(item.source)
    assert buffer.ready(known, 100, 1 << 20) == []


def test_pages_that_were_read_before_they_expired_are_answered_by_the_outcome_of_their_range() -> None:
    """The deciding step had read them, fingerprinting had not: they have one dead letter together."""
    buffer = PageBuffer("pages", 100, 1 << 20)
    buffer.put([Consumed(0, offset) for offset in (3, 4, 5, 8)])
    gone = PendingOutcome(1, None, b"5 records were deleted", end=8)
    known = PendingOutcomes({Source("pages", 0, 3): gone})
    ready = buffer.ready(known, 100, 1 << 20)
    assert [(item.source.offset, item.end) for item in ready] == [(3, 8)]
    buffer.done(ready)
    assert offsets(buffer, outcomes((0, 8))) == [(0, 8)]
    assert buffer.size_bytes == 4 + OVERHEAD_BYTES


def test_a_partition_is_done_when_nothing_of_it_can_come() -> None:
    """Not before it has begun, nor while a page waits, nor while the log may yet have one that was deleted."""
    buffer = PageBuffer("pages", 100, 1 << 20)
    assert not buffer.is_done(0)
    buffer.begin(0, 3)
    assert buffer.is_done(0)
    buffer.put([Consumed(0, 3)])
    assert not buffer.is_done(0)
    buffer.done(buffer.ready(outcomes((0, 3)), 10, 1 << 20))
    assert buffer.is_done(0)
    buffer.skip(0, 6)
    assert not buffer.is_done(0)
    buffer.done(buffer.ready(outcomes((0, 4)), 10, 1 << 20))
    assert not buffer.is_done(0)
    buffer.done(buffer.ready(outcomes((0, 5)), 10, 1 << 20))
    assert buffer.is_done(0)
