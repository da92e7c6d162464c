"""Pages in hand: in order, once, within bounds."""

from dataclasses import dataclass

from dedup_service.core.log_records import Source
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes
from dedup_service.runtime.kafka.steps.page_buffer import OVERHEAD_BYTES, PageBuffer


@dataclass(frozen=True)
class Consumed:
    """What a consumer hands over."""

    partition: int
    offset: int
    value: bytes | None = b"page"
    key: bytes | None = None
    topic: str = "pages"


def outcomes(*places: tuple[int, int]) -> PendingOutcomes:
    """PendingOutcomes for these partitions and offsets."""
    return PendingOutcomes(
        {Source("pages", partition, offset): PendingOutcome(1, "unique", b"{}") for partition, offset in places}
    )


def offsets(contents: PageBuffer, known: PendingOutcomes, maximum: int = 100) -> list[tuple[int, int]]:
    """What can be written now."""
    return [(record.partition, record.offset) for record, _ in contents.ready(known, maximum, 1 << 20)]


def test_a_partition_waits_for_the_outcome_of_its_head() -> None:
    """Later pages of it do not overtake; other partitions go on."""
    contents = PageBuffer(100, 1 << 20)
    contents.put([Consumed(0, 1), Consumed(0, 2), Consumed(1, 7)])
    assert offsets(contents, outcomes((0, 2), (1, 7))) == [(1, 7)]
    assert offsets(contents, outcomes((0, 1), (0, 2))) == [(0, 1), (0, 2)]
    assert contents.waits_for() == {0: 1, 1: 7}


def test_what_is_written_leaves_and_what_was_not_stays() -> None:
    """`ready` alone changes nothing: its transaction may be lost."""
    contents = PageBuffer(100, 1 << 20)
    contents.put([Consumed(0, 1), Consumed(0, 2)])
    known = outcomes((0, 1))
    contents.done(contents.ready(known, 10, 1 << 20))
    assert contents.waits_for() == {0: 2}
    assert (contents.records, contents.size_bytes) == (1, 4 + OVERHEAD_BYTES)


def test_a_page_read_twice_is_in_hand_once() -> None:
    """Wherever the consumer was moved back to."""
    contents = PageBuffer(100, 1 << 20)
    contents.begin(0, 5)
    contents.put([Consumed(0, 4), Consumed(0, 5), Consumed(0, 6), Consumed(0, 5), Consumed(0, 6), Consumed(0, 7)])
    assert offsets(contents, outcomes(*((0, at) for at in range(10)))) == [(0, 5), (0, 6), (0, 7)]
    assert contents.repeated == 3


def test_a_partition_that_is_taken_away_is_forgotten() -> None:
    """Its pages are another's; if it comes back it begins where it is told to."""
    contents = PageBuffer(100, 1 << 20)
    contents.put([Consumed(0, 1), Consumed(1, 1)])
    contents.end(0)
    assert contents.waits_for() == {1: 1}
    contents.begin(0, 1)
    contents.put([Consumed(0, 1)])
    assert contents.records == 2


def test_bounds_are_in_records_and_in_bytes() -> None:
    """Whichever is reached first says stop; nulls count too."""
    by_records, by_bytes = PageBuffer(2, 1 << 20), PageBuffer(100, 5000)
    by_records.put([Consumed(0, 1), Consumed(0, 2, None)])
    by_bytes.put([Consumed(0, 1, b"x" * 5000)])
    assert by_records.full
    assert by_bytes.full
    assert offsets(by_records, outcomes((0, 1), (0, 2)), maximum=1) == [(0, 1)]
