"""Batches of records, and the order of their results."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.interfaces.cli.support.page_stream import BATCH_BYTES, BATCH_RECORDS, DecidedRecord, batches, run
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.readers import Record
from dedup_service.runtime.readers.jsonlines import JsonLine
from dedup_service.runtime.resources import SpaceOptions
from dedup_service.runtime.workers.preparation import Preparer


def line(number: int) -> JsonLine:
    """Return a record of a page without text."""
    return JsonLine(number, f'{{"url": "https://a.example/{number}"}}'.encode())


@given(st.lists(st.integers(0, 3)))
def test_batches_have_every_record_once_in_order(waits: list[int]) -> None:
    """This holds wherever the input pauses; every pause ends a batch."""
    records: list[Record | None] = []
    for number, wait in enumerate(waits, 1):
        records += [line(number)] + [None] * wait
    cut = list(batches(records))
    assert [record.number for batch in cut for record in batch.records] == list(range(1, len(waits) + 1))
    assert sum(batch.last_for_now for batch in cut) >= sum(waits)


def test_a_batch_is_full_at_its_count_or_its_bytes() -> None:
    """Both many small records and few large ones end a batch."""
    sizes = [len(batch.records) for batch in batches(map(line, range(BATCH_RECORDS * 2 + 1)))]
    assert sizes == [BATCH_RECORDS, BATCH_RECORDS, 1]
    large = [JsonLine(number, bytes(BATCH_BYTES // 2)) for number in range(3)]
    assert [len(batch.records) for batch in batches(large)] == [2, 1]


class RecordingSink:
    """A sink that records the numbers of records."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.bad_numbers: list[int] = []
        self.last = 0

    def verdicts(self, decided: Sequence[DecidedRecord]) -> None:
        """Record the numbers of records with a verdict."""
        self.numbers += [one.record.number for one in decided]

    def bad(self, records: Sequence[tuple[Record, str]]) -> None:
        """Record the numbers of bad records."""
        self.bad_numbers += [record.number for record, _ in records]

    def reached(self, record: Record) -> None:
        """Record up to where everything was taken."""
        self.last = record.number


@pytest.mark.parametrize("stop_after", [0, 1, 2, 99])
def test_a_stopped_run_finishes_the_current_batch(stop_after: int) -> None:
    """After a stop request during a batch, the run writes that batch and reads no further one."""
    sink = RecordingSink()

    def records() -> list[Record | None]:
        return [line(number) for number in range(1, 3 * BATCH_RECORDS + 1)]

    def stopped() -> bool:
        return len(sink.numbers) >= stop_after * BATCH_RECORDS

    with Preparer(SpaceOptions(), inline=True) as preparer, NearDuplicateFilter.open(None) as state:
        run(records(), preparer, state, sink, stopped)
    assert sink.numbers == list(range(1, min(3, max(1, stop_after)) * BATCH_RECORDS + 1))


def test_bad_records_are_separated() -> None:
    """A bad record does not affect the verdicts on others."""
    sink = RecordingSink()
    mixed = [line(1), JsonLine(2, b"hello"), line(3)]
    with Preparer(SpaceOptions(), inline=True) as preparer, NearDuplicateFilter.open(None) as state:
        run(mixed, preparer, state, sink, lambda: False)
    assert (sink.numbers, sink.bad_numbers, sink.last) == ([1, 3], [2], 3)
