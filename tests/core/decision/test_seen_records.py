"""Input records that were seen: the same as a set of places."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.seen_records import SeenRecords
from dedup_service.core.log_records import RejectedRecord, Source
from dedup_service.runtime.kafka.messages.page_batch import decode_columns, encode_batch

sources = st.builds(Source, st.just("pages"), st.integers(0, 2), st.integers(0, 20))
steps = st.lists(st.one_of(sources, st.tuples(sources, st.integers(1, 8)), st.lists(sources, min_size=1, max_size=9)))


@given(steps)
def test_seen_records_are_a_set(some: list[Source | tuple[Source, int] | list[Source]]) -> None:
    """One by one, in columns and in ranges; the state has all of them, in the same bytes however they came."""
    seen, singly, expected = SeenRecords({}), SeenRecords({}), set[Source]()
    for step in some:
        if isinstance(step, Source):
            assert seen.add(step) == singly.add(step) == (step not in expected)
            expected.add(step)
        elif isinstance(step, tuple):
            first, count = step
            new = [offset for offset in range(first.offset, first.offset + count) if at(first, offset) not in expected]
            assert list(seen.add_range(first, first.offset + count)) == new
            singly.add_range(first, first.offset + count)
            expected.update(at(first, offset) for offset in new)
        else:
            places = [place for place, source in enumerate(step) if source in {*expected, *step[:place]}]
            assert seen.add_all(decode_columns(encode_batch([RejectedRecord(one, "") for one in step]))) == places
            for source in step:
                singly.add(source)
            expected.update(step)
    assert seen.state() == singly.state()
    again = SeenRecords(seen.state())
    assert all(source in again for source in expected)
    assert sum(at(Source("pages", 0, 0), offset) in again for offset in range(40)) == sum(
        source.partition == 0 for source in expected
    )


def at(source: Source, offset: int) -> Source:
    """The record at another offset of the same partition."""
    return Source(source.topic, source.partition, offset)
