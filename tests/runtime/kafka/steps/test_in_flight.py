"""What the fingerprinting step has in hand: in order within a partition, bounded, and gone where it was dropped."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from hypothesis import given
from hypothesis import strategies as st
from kafka.consumer.fetcher import ConsumerRecord

from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.kafka.steps.in_flight import InFlight, InFlightLimits
from dedup_service.runtime.workers.preparation import Answer, BadRecord

LIMITS = InFlightLimits(records=40, bytes=4000, started=3, chunk_records=4, chunk_bytes=400)
P0, P1 = TopicPartition("pages", 0), TopicPartition("pages", 1)


class Workers:
    """Chunks as they were given, and the futures to answer them."""

    def __init__(self) -> None:
        self.tasks: list[tuple[Sequence[PageMessage], Future[list[Answer]]]] = []

    def submit(self, messages: Sequence[PageMessage]) -> "Future[list[Answer]]":
        """Take a chunk."""
        self.tasks.append((messages, Future()))
        return self.tasks[-1][1]

    def answer(self, number: int) -> None:
        """Finish the chunk that was given at `number`."""
        messages, future = self.tasks[number]
        future.set_result([BadRecord("no page")] * len(messages))


def records(at: TopicPartition, start: int, stop: int, size: int = 10) -> list[ConsumerRecord]:
    """Consumed records with these offsets."""
    fields = dict.fromkeys(ConsumerRecord._fields)
    return [
        ConsumerRecord(**(fields | {"topic": at.topic, "partition": at.partition, "offset": n, "value": bytes(size)}))
        for n in range(start, stop)
    ]


def offsets(in_hand: InFlight, maximum: int = 1000) -> list[tuple[int, int]]:
    """Partition and offset of all that is ready."""
    return [(m.partition, m.offset) for chunk in in_hand.ready(maximum) for m in chunk.messages]


def test_a_slow_page_holds_up_its_own_partition_only() -> None:
    """Chunks behind it wait although they are done; those of another partition do not."""
    in_hand, workers = InFlight(LIMITS), Workers()
    in_hand.put([*records(P0, 0, 8), *records(P1, 0, 2)])
    in_hand.start(workers.submit, 1.0)
    workers.answer(1)
    workers.answer(2)
    assert offsets(in_hand) == [(1, 0), (1, 1)]
    workers.answer(0)
    assert offsets(in_hand) == [*((0, n) for n in range(8)), (1, 0), (1, 1)]


def test_a_batch_has_whole_chunks_and_at_least_one() -> None:
    """As many as the bound allows."""
    in_hand, workers = InFlight(LIMITS), Workers()
    in_hand.put(records(P0, 0, 12))
    in_hand.start(workers.submit, 1.0)
    for number in range(3):
        workers.answer(number)
    assert len(offsets(in_hand, 1)) == 4
    assert len(offsets(in_hand, 9)) == 8
    in_hand.committed(in_hand.ready(9))
    assert offsets(in_hand) == [(0, n) for n in range(8, 12)]


def test_chunks_are_small_in_records_and_bytes() -> None:
    """A large page is a chunk of its own; one that waits takes later records of its partition in."""
    in_hand, workers = InFlight(LIMITS), Workers()
    in_hand.put([*records(P0, 0, 1, 1000), *records(P0, 1, 3, 150)])
    in_hand.put(records(P0, 3, 6, 150))
    in_hand.start(workers.submit, 1.0)
    assert [[m.offset for m in messages] for messages, _ in workers.tasks] == [[0], [1, 2], [3, 4]]


def test_workers_have_so_many_chunks_at_most() -> None:
    """Those that were dropped count until they are done: they keep the workers busy as well."""
    in_hand, workers = InFlight(LIMITS), Workers()
    in_hand.put(records(P0, 0, 20))
    in_hand.start(workers.submit, 1.0)
    in_hand.drop([P0])
    in_hand.put(records(P0, 0, 20))
    in_hand.start(workers.submit, 1.0)
    assert len(workers.tasks) == 3
    workers.answer(0)
    in_hand.start(workers.submit, 1.0)
    assert len(workers.tasks) == 4


def test_what_was_dropped_is_never_ready() -> None:
    """Whether it waits, is with the workers or done; what is read again afterwards is."""
    in_hand, workers = InFlight(LIMITS), Workers()
    in_hand.put([*records(P0, 0, 12), *records(P1, 5, 6)])
    in_hand.start(workers.submit, 1.0)
    workers.answer(0)
    in_hand.drop([P0])
    workers.answer(1)
    workers.answer(2)
    assert in_hand.records == 1
    in_hand.put(records(P0, 0, 2))
    in_hand.start(workers.submit, 1.0)
    for number in range(3, len(workers.tasks)):
        workers.answer(number)
    assert offsets(in_hand) == [(1, 5), (0, 0), (0, 1)]
    in_hand.drop_all()
    assert (in_hand.records, in_hand.ready(100)) == (0, [])


def test_a_partition_may_fill_half_and_all_of_them_the_whole() -> None:
    """Whichever of records and bytes comes first."""
    in_hand = InFlight(LIMITS)
    in_hand.put(records(P0, 0, 19))
    assert in_hand.full([P0, P1]) == frozenset()
    in_hand.put(records(P0, 19, 20))
    assert in_hand.full([P0, P1]) == {P0}
    in_hand.put(records(P1, 0, 1, 3800))
    assert in_hand.full([P0, P1]) == {P0, P1}
    assert in_hand.full([P1]) == {P1}


def test_a_stop_leaves_what_was_not_begun() -> None:
    """What the workers have is still to be committed."""
    in_hand, workers = InFlight(LIMITS), Workers()
    in_hand.put([*records(P0, 0, 16), *records(P1, 0, 4)])
    in_hand.start(workers.submit, 1.0)
    in_hand.drop_waiting()
    assert in_hand.records == 12
    in_hand.start(workers.submit, 1.0)
    assert len(workers.tasks) == 3


class Stream:
    """Two partitions that are read, committed, lost and read again from the committed offsets."""

    def __init__(self) -> None:
        self.in_hand, self.workers = InFlight(LIMITS), Workers()
        self.read = {P0: 0, P1: 0}
        self.committed = {P0: 0, P1: 0}

    def take(self, at: TopicPartition, count: int) -> None:
        """Read on."""
        self.in_hand.put(records(at, self.read[at], self.read[at] + count))
        self.read[at] += count

    def drop(self, at: TopicPartition, _: int) -> None:
        """Lose a partition, and get it back."""
        self.in_hand.drop([at])
        self.read[at] = self.committed[at]

    def answer(self, _: TopicPartition, number: int) -> None:
        """Finish one of the chunks that the workers have."""
        unfinished = [n for n, (_, future) in enumerate(self.workers.tasks) if not future.done()]
        if unfinished:
            self.workers.answer(unfinished[number % len(unfinished)])

    def commit(self, _: TopicPartition, maximum: int) -> None:
        """Commit what is ready; each offset is the next one of its partition."""
        ready = self.in_hand.ready(maximum)
        for chunk in ready:
            for message in chunk.messages:
                assert message.offset == self.committed[chunk.at]
                self.committed[chunk.at] += 1
        self.in_hand.committed(ready)


doings = st.sampled_from([Stream.take, Stream.take, Stream.answer, Stream.answer, Stream.commit, Stream.drop])


@given(st.lists(st.tuples(doings, st.sampled_from([P0, P1]), st.integers(1, 9)), max_size=40))
def test_every_record_is_committed_once_and_in_order(
    doings: list[tuple[Callable[[Stream, TopicPartition, int], None], TopicPartition, int]],
) -> None:
    """Whatever happens, in whatever order."""
    stream = Stream()
    for do, at, number in doings:
        do(stream, at, number)
        stream.in_hand.start(stream.workers.submit, 1.0)
    while stream.in_hand.records:
        stream.answer(P0, 0)
        stream.commit(P0, 1000)
        stream.in_hand.start(stream.workers.submit, 1.0)
    assert stream.committed == stream.read
