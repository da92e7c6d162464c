"""The log in columns: the same records as values, and the same outcomes and state as one by one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.replica import Outcome, Replica
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import (
    ExpiredRecord,
    LogRecord,
    PageRecord,
    PolicyRecord,
    RejectedRecord,
    Source,
    TimeRecord,
    UnreadableRecord,
    UnwrittenRecord,
)
from dedup_service.core.record_columns import LogPart, PagesInColumns, RecordColumns
from dedup_service.core.rules.keep import Keep
from dedup_service.runtime.kafka.messages.log_record import log_messages, log_parts, numbered, records_in
from dedup_service.runtime.kafka.messages.page_batch import decode_columns, encode_batch
from tests.core.decision.test_replica import FIRST, claiming, page
from tests.core.decision.test_replica import records as some_records
from tests.page_names import NamesInMemory


@dataclass(frozen=True)
class Stored:
    """A message as a reader of the log returns it."""

    offset: int
    value: bytes | None


@dataclass
class Applied:
    """A replica, what it was told to name, and its outcomes."""

    replica: Replica
    names: NamesInMemory
    outcomes: list[Outcome]


def stored(log: Sequence[LogRecord]) -> list[Stored]:
    """The messages of a log, at every second offset; records that say where others are name their sequences."""
    sequences = [sequence for sequence, _ in numbered(_stored(log))]

    def at(number: int) -> int:
        return sequences[number % len(sequences)]

    def placed(record: LogRecord) -> LogRecord:
        if isinstance(record, UnwrittenRecord):
            return replace(record, sequences=tuple(map(at, record.sequences)))
        if isinstance(record, PolicyRecord) and record.replaces is not None:
            return replace(record, replaces=at(record.replaces))
        return record

    return _stored([placed(record) for record in log])


def _stored(log: Sequence[LogRecord]) -> list[Stored]:
    return [Stored(2 * number, message.value) for number, (message, _) in enumerate(log_messages("fingerprints", log))]


def one_by_one(messages: Sequence[Stored]) -> Applied:
    """Apply every record as a value."""
    names = NamesInMemory()
    replica = Replica(names)
    outcomes = [replica.apply(*row) for row in numbered(messages)]
    return Applied(replica, names, [outcome for outcome in outcomes if outcome is not None])


def in_columns(messages: Sequence[Stored], polls: Sequence[int]) -> Applied:
    """Apply the messages in columns, so many in each poll."""
    names = NamesInMemory()
    replica, outcomes, start = Replica(names), list[Outcome](), 0
    for count in polls:
        outcomes += replica.apply_parts(log_parts(messages[start : start + count]))
        start += count
    return Applied(replica, names, outcomes + replica.apply_parts(log_parts(messages[start:])))


def expect_equal(one: Applied, other: Applied) -> None:
    """Compare everything that later outcomes depend on, and what is written of it."""
    assert one.outcomes == other.outcomes
    assert one.names.names == other.names.names
    assert one.replica.state() == other.replica.state()
    assert list(one.replica.state().counts) == list(other.replica.state().counts)
    assert list(one.replica.state().seen) == list(other.replica.state().seen)
    assert list(one.replica.rows().entries()) == list(other.replica.rows().entries())
    assert one.replica.take_removals() == other.replica.take_removals()


keeps = st.builds(Keep, max_pages=st.none() | st.integers(1, 6), max_age_minutes=st.none() | st.integers(1, 9))
logs = st.lists(
    st.one_of(
        some_records,
        some_records,
        st.builds(TimeRecord, st.integers(1_000, 1_015)),
        keeps.map(lambda keep: PolicyRecord(replace(FIRST.policy, keep=keep))),
    ).flatmap(lambda record: st.lists(st.just(record), min_size=1, max_size=2)),
    max_size=30,
).map(lambda runs: [record for run in runs for record in run if not isinstance(record, UnreadableRecord)])


@given(logs, st.lists(st.integers(1, 9), max_size=5))
def test_columns_give_the_outcomes_and_the_state_of_single_records(log: list[LogRecord], polls: list[int]) -> None:
    """However the log is cut: repeated, rejected and foreign records, policies, corrections and deleted ranges."""
    messages = stored([FIRST, *log])
    expect_equal(in_columns(messages, polls), one_by_one(messages))


@given(logs, st.sets(st.integers(0, 30)))
def test_outcomes_that_nobody_wants_are_left_out(log: list[LogRecord], offsets: set[int]) -> None:
    """The state is the same, and so are the outcomes that are wanted."""

    def wanted(records: RecordColumns) -> list[bool]:
        return [offset in offsets for offset in records.offsets]

    messages = stored([FIRST, *(record for record in log if not isinstance(record, ExpiredRecord))])
    replica, every = Replica(NamesInMemory()), in_columns(messages, [])
    outcomes = replica.apply_parts(log_parts(messages), wanted)
    assert outcomes == [outcome for outcome in every.outcomes if outcome.source.offset in offsets]
    assert replica.state() == every.replica.state()


@given(logs)
def test_columns_have_the_records_that_values_have(log: list[LogRecord]) -> None:
    """In their order, with their sequences."""
    messages = stored([FIRST, *log])
    parts = log_parts(messages)
    assert [row for part in parts for row in rows_of(part)] == numbered(messages)
    assert records_in(parts) == len(numbered(messages))


def rows_of(part: LogPart) -> list[tuple[int, LogRecord]]:
    """The records of a part with their sequences."""
    return list(part.numbered()) if isinstance(part, RecordColumns) else [part]


inputs = st.lists(
    st.builds(
        claiming,
        st.builds(page, st.integers(0, 9), st.sampled_from(["http://a/", "http://b/"]), st.integers(0, 2)),
        st.none() | st.just("http://c/"),
    )
    | st.builds(RejectedRecord, st.builds(Source, st.just("pages"), st.integers(0, 1), st.integers(0, 9)), st.text()),
    min_size=1,
    max_size=12,
)


@given(inputs, st.data())
def test_parts_of_columns_are_columns(some: list[PageRecord | RejectedRecord], data: st.DataObject) -> None:
    """Slices, selections and joined columns have the records that the same of a list has."""
    columns = decode_columns(encode_batch(some), 7)
    rows = list(columns.numbered())
    cut = data.draw(st.integers(0, len(some)))
    places = sorted(data.draw(st.sets(st.integers(0, len(some) - 1))))
    assert list(columns[:cut].numbered()) == rows[:cut]
    assert list(columns.take(places).numbered()) == [rows[place] for place in places]
    assert list(RecordColumns.joined([columns[:cut], columns[cut:]]).numbered()) == rows
    pages = columns.take([place for place in range(len(some)) if place not in columns.rejected])
    expected = [(sequence, record.prepared) for sequence, record in rows if isinstance(record, PageRecord)]
    assert list(PagesInColumns(pages)) == expected


def test_pages_before_any_policy_are_refused() -> None:
    """In columns as one by one; rejected records before the page are applied."""
    rejected = RejectedRecord(Source("pages", 0, 1), "no page")
    messages = stored([rejected, page(2, "http://one/", 1)])
    replica = Replica(NamesInMemory())
    with pytest.raises(StateError, match="before any policy"):
        replica.apply_parts(log_parts(messages))
    assert (replica.counts["rejected"], replica.sequence) == (1, 0)
