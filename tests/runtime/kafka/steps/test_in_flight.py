"""Records in flight: in order within a partition, bounded, and never ready once dropped."""

import pickle
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import replace
from time import time

from hypothesis import given
from hypothesis import strategies as st
from kafka.consumer.fetcher import ConsumerRecord

from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.kafka.steps.in_flight import InFlight, InFlightLimits
from dedup_service.runtime.workers.preparation import Answer, BadRecord

LIMITS = InFlightLimits(records=40, bytes=4000, started=3, chunk_records=4, chunk_bytes=400)
P0, P1, P2, P3 = (TopicPartition("pages", number) for number in range(4))


class Workers:
    """The submitted chunks, and the futures to answer them."""

    def __init__(self) -> None:
        self.tasks: list[tuple[Sequence[PageMessage], Future[list[Answer]]]] = []

    def submit(self, messages: Sequence[PageMessage]) -> "Future[list[Answer]]":
        """Take a chunk from the step."""
        self.tasks.append((messages, Future()))
        return self.tasks[-1][1]

    def answer(self, number: int) -> None:
        """Finish the chunk that was submitted as `number`."""
        messages, future = self.tasks[number]
        future.set_result([BadRecord("no page")] * len(messages))

    def answer_all(self) -> None:
        """Finish all chunks."""
        for number, (_, future) in enumerate(self.tasks):
            if not future.done():
                self.answer(number)


def records(
    partition: TopicPartition, start: int, stop: int, size: int = 10, times: Sequence[int] = ()
) -> list[ConsumerRecord]:
    """Return consumed records with these offsets, and timestamps if there are any."""
    fields = dict.fromkeys(ConsumerRecord._fields)
    fields |= {"topic": partition.topic, "partition": partition.partition}
    offsets = range(start, stop)
    return [
        ConsumerRecord(**(fields | {"offset": offset, "value": bytes(size), "timestamp": timestamp}))
        for offset, timestamp in zip(offsets, times or [-1] * len(offsets), strict=True)
    ]


def places(in_flight: InFlight, unread: Collection[TopicPartition] = ()) -> list[tuple[int, int]]:
    """Return partition and offset of what is ready, in order."""
    ready = in_flight.ready(1000, unread)
    return [(message.partition, message.offset) for part in ready for message in part.messages]


def test_chunks_are_limited_in_records_and_bytes() -> None:
    """A large page is a chunk by itself; a waiting chunk takes later records of its partition."""
    in_flight, workers = InFlight(LIMITS), Workers()
    in_flight.put([*records(P0, 0, 1, 1000), *records(P0, 1, 3, 150)])
    in_flight.put(records(P0, 3, 6, 150))
    in_flight.start(workers.submit)
    assert [[m.offset for m in messages] for messages, _ in workers.tasks] == [[0], [1, 2], [3, 4], [5]]


def test_what_is_in_flight_is_what_is_counted() -> None:
    """Keys and headers are not kept, and of a record that is refused by its size nothing but its place and reason."""
    in_flight, workers = InFlight(LIMITS), Workers()
    (record,) = records(P0, 0, 1)
    zeros = bytes(34 << 20)
    in_flight.put([record._replace(offset=1, key=zeros), record._replace(offset=2, headers=[("zeros", zeros)])])
    in_flight.put([record._replace(offset=3, value=zeros), record._replace(offset=4, headers=[("a", b"")] * 100_000)])
    in_flight.start(workers.submit)
    ((messages, _),) = workers.tasks
    assert [message.offset for message in messages] == [1, 2, 3, 4]
    assert all(message.problem is not None for message in messages)
    assert len(pickle.dumps(messages)) < 2000


def test_workers_have_a_limited_number_of_chunks() -> None:
    """Dropped chunks count until they are done: they keep the workers busy, too."""
    in_flight, workers = InFlight(LIMITS), Workers()
    in_flight.put(records(P0, 0, 20))
    in_flight.start(workers.submit)
    in_flight.drop([P0])
    in_flight.put(records(P0, 0, 20))
    in_flight.start(workers.submit)
    assert len(workers.tasks) == 3
    workers.answer(0)
    in_flight.start(workers.submit)
    assert len(workers.tasks) == 4


def test_workers_have_many_small_chunks() -> None:
    """As much work as in full ones: pages that come a few at a time from many partitions keep the workers busy, too."""
    in_flight, workers = InFlight(LIMITS), Workers()
    partitions = [TopicPartition("pages", number) for number in range(40)]
    for partition in partitions:
        in_flight.put(records(partition, 0, 1))
    in_flight.start(workers.submit)
    assert sum(len(messages) for messages, _ in workers.tasks) == 3 * LIMITS.chunk_records
    assert in_flight.waiting == 40 - 3 * LIMITS.chunk_records
    empty, idle = InFlight(replace(LIMITS, chunk_records=4_000)), Workers()
    for partition in partitions:
        empty.put(records(partition, 0, 1))
    empty.start(idle.submit)
    assert len(idle.tasks) == 8 * LIMITS.started


def test_a_partition_may_use_half_of_a_limit() -> None:
    """It is paused at half of the limit in records or bytes, and all partitions at the whole limit."""
    in_flight = InFlight(LIMITS)
    in_flight.put(records(P0, 0, 19))
    assert in_flight.full([P0, P1]) == frozenset()
    in_flight.put(records(P0, 19, 20))
    assert in_flight.full([P0, P1]) == {P0}
    in_flight.put(records(P1, 0, 1, 3800))
    assert in_flight.full([P0, P1]) == {P0, P1}
    assert in_flight.full([P1]) == {P1}


def test_records_of_partitions_that_are_behind_wait_for_older_ones() -> None:
    """For those that the workers have, and for a partition that nothing has been read of yet."""
    in_flight, workers = InFlight(LIMITS), Workers()
    in_flight.put(records(P0, 0, 3, times=[10, 20, 30]), {P0, P1})
    in_flight.put(records(P1, 0, 1, times=[15]), {P0, P1})
    in_flight.start(workers.submit)
    workers.answer(0)
    assert places(in_flight) == [(0, 0)]
    assert places(in_flight, {P2}) == []
    workers.answer(1)
    assert places(in_flight, {P1}) == [(0, 0), (1, 0)]
    assert places(in_flight) == [(0, 0), (1, 0), (0, 1), (0, 2)]


def test_a_partition_that_is_not_behind_waits_for_no_other() -> None:
    """Nor do records without a timestamp, or with one of the future; none of them makes others wait."""
    in_flight, workers = InFlight(LIMITS), Workers()
    future = int(time() * 1000) + 3_600_000
    in_flight.put(records(P0, 0, 2, times=[10, 20]), {P0})
    in_flight.put(records(P1, 0, 1, times=[5]), {P0})
    in_flight.put(records(P2, 0, 2, times=[-1, future]), {P0, P2})
    in_flight.start(workers.submit)
    workers.answer(1)
    workers.answer(2)
    assert places(in_flight, {P3}) == [(1, 0), (2, 0), (2, 1)]
    in_flight, workers = InFlight(LIMITS), Workers()
    in_flight.put(records(P1, 0, 1, times=[5]))
    in_flight.put(records(P0, 0, 2, times=[10, 20]), {P0})
    in_flight.start(workers.submit)
    workers.answer(1)
    assert places(in_flight) == [(0, 0), (0, 1)]


def test_what_is_behind_a_record_without_a_timestamp_is_waited_for() -> None:
    """Though that record makes nobody wait: neither what was read behind it goes later, nor what is to come."""
    in_flight, workers = InFlight(LIMITS), Workers()
    future = int(time() * 1000) + 3_600_000
    in_flight.put(records(P0, 0, 3, times=[future, -1, 15]), {P0, P1})
    in_flight.put(records(P1, 0, 2, times=[10, 20]), {P0, P1})
    in_flight.put(records(P2, 0, 1, times=[5]))
    in_flight.start(workers.submit)
    workers.answer(1)
    workers.answer(2)
    assert places(in_flight) == [(2, 0), (1, 0)]
    workers.answer(0)
    assert places(in_flight) == [(0, 0), (0, 1), (2, 0), (1, 0), (0, 2), (1, 1)]
    in_flight, workers = InFlight(LIMITS), Workers()
    in_flight.put(records(P0, 0, 1, times=[future]), {P0, P1})
    in_flight.put(records(P1, 0, 1, times=[20]), {P0, P1})
    in_flight.start(workers.submit)
    workers.answer(1)
    assert places(in_flight, {P0}) == []
    assert places(in_flight) == [(1, 0)]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 20)), max_size=60))
def test_a_backlog_is_committed_in_order_of_its_timestamps(publications: list[tuple[int, int, int]]) -> None:
    """However it is spread over partitions and time, while each is read as far as it has room."""
    backlog: dict[TopicPartition, list[ConsumerRecord]] = {P0: [], P1: [], P2: []}
    clock = 0
    for partition, passed, count in publications:
        clock += passed
        at = list(backlog)[partition]
        start = len(backlog[at])
        backlog[at] += records(at, start, start + count, times=[clock] * count)
    times = {(at.partition, record.offset): record.timestamp for at, rest in backlog.items() for record in rest}
    in_flight, workers, log = InFlight(LIMITS), Workers(), list[int]()
    while in_flight.records or any(backlog.values()):
        for at in {at for at, rest in backlog.items() if rest} - in_flight.full(backlog):
            in_flight.put(backlog[at][:7], {P0, P1, P2})
            del backlog[at][:7]
        in_flight.start(workers.submit)
        workers.answer_all()
        ready = in_flight.ready(11, {at for at, rest in backlog.items() if rest})
        log += [times[message.partition, message.offset] for part in ready for message in part.messages]
        in_flight.committed(ready)
    assert log == sorted(log)
    assert len(log) == len(times)


class Stream:
    """Two partitions that are read, committed, lost, and read again from the committed offsets."""

    def __init__(self) -> None:
        self.in_flight, self.workers = InFlight(LIMITS), Workers()
        self.read = {P0: 0, P1: 0}
        self.committed = {P0: 0, P1: 0}

    def take(self, partition: TopicPartition, count: int) -> None:
        """Read the next records."""
        self.in_flight.put(records(partition, self.read[partition], self.read[partition] + count))
        self.read[partition] += count

    def drop(self, partition: TopicPartition, _: int) -> None:
        """Lose a partition, and get it back."""
        self.in_flight.drop([partition])
        self.read[partition] = self.committed[partition]

    def answer(self, _: TopicPartition, number: int) -> None:
        """Finish one of the started chunks."""
        unfinished = [n for n, (_, future) in enumerate(self.workers.tasks) if not future.done()]
        if unfinished:
            self.workers.answer(unfinished[number % len(unfinished)])

    def commit(self, _: TopicPartition, max_records: int) -> None:
        """Commit the ready chunks; each offset is the next one of its partition."""
        ready = self.in_flight.ready(max_records)
        for chunk in ready:
            for message in chunk.messages:
                assert message.offset == self.committed[chunk.partition]
                self.committed[chunk.partition] += 1
        self.in_flight.committed(ready)


actions = st.sampled_from([Stream.take, Stream.take, Stream.answer, Stream.answer, Stream.commit, Stream.drop])


@given(st.lists(st.tuples(actions, st.sampled_from([P0, P1]), st.integers(1, 9)), max_size=40))
def test_every_record_is_committed_once_and_in_order(
    chosen: list[tuple[Callable[[Stream, TopicPartition, int], None], TopicPartition, int]],
) -> None:
    """It holds for any order of reads, answers, commits and losses."""
    stream = Stream()
    for act, partition, number in chosen:
        act(stream, partition, number)
        stream.in_flight.start(stream.workers.submit)
    while stream.in_flight.records:
        stream.answer(P0, 0)
        stream.commit(P0, 1000)
        stream.in_flight.start(stream.workers.submit)
    assert stream.committed == stream.read
