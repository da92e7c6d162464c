"""The fingerprinting step on a real broker: every record of `pages` is in the log, in order, in spite of faults."""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pytest
from kafka import KafkaProducer

from dedup_service.core.log_records import LogRecord, PageRecord, RejectedRecord, Source, TimeRecord
from dedup_service.runtime.events import BatchEvent, Observer, ProblemEvent, RestoreEvent
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.errors import AppendLostError
from dedup_service.runtime.kafka.client.log_appender import LogAppender
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import Message, append
from dedup_service.runtime.kafka.messages.headers import page_key
from dedup_service.runtime.kafka.messages.log_record import numbered
from dedup_service.runtime.kafka.state.step_offsets import StepOffsets
from dedup_service.runtime.kafka.steps.dead_letter_limit import RejectionLimit, RejectionRateError
from dedup_service.runtime.kafka.steps.fingerprinting import FingerprintSettings, FingerprintStep
from dedup_service.runtime.kafka.steps.in_flight import InFlightLimits
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter
from dedup_service.runtime.workers.preparation import Preparer
from tests.hangs import HANG_S
from tests.integration.conftest import PARTITIONS, Broker

pytestmark = pytest.mark.slow

SPACE = SpaceOptions()


@dataclass
class Seen(Observer):
    """An observer that keeps events; `on_batch` is set with each batch."""

    batches: list[BatchEvent] = field(default_factory=list)
    problems: list[ProblemEvent] = field(default_factory=list)
    on_batch: threading.Event = field(default_factory=threading.Event)

    def batch(self, fact: BatchEvent) -> None:
        self.batches.append(fact)
        self.on_batch.set()

    def restore(self, fact: RestoreEvent) -> None:
        raise AssertionError(fact)

    def problem(self, fact: ProblemEvent) -> None:
        self.problems.append(fact)


class Forgetful(LogAppender):
    """An appender that loses the answer of every `lost_every`th append: the messages are there, and nobody knows it."""

    lost_every = 0
    appends = 0

    def append(self, messages: Iterable[Message]) -> list[int]:
        """Append messages."""
        offsets = super().append(messages)
        self.appends += 1
        if self.lost_every and self.appends % self.lost_every == 0:
            raise AppendLostError("the answer was lost")
        return offsets


class Running:
    """A step in a separate thread."""

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        preparer: Preparer,
        *,
        instance: str = "one",
        rejection_limit: RejectionLimit | None = None,
        settings: FingerprintSettings | None = None,
        one_batch: bool = False,
        lost_every: int = 0,
    ) -> None:
        self.error: BaseException | None = None
        self.stop = threading.Event()
        self.seen = Seen(on_batch=self.stop) if one_batch else Seen()
        group = f"{topics.prefix}group"
        appender = Forgetful(connection, instance)
        appender.lost_every = lost_every
        self.step = FingerprintStep(
            connection,
            topics,
            group,
            instance,
            build_fingerprinter(SPACE).space_id,
            preparer,
            appender,
            rejection_limit or RejectionLimit(),
            self.seen,
            offsets=StepOffsets(connection, topics),
            topic_id=None,
            settings=settings,
        )
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.step.run(self.stop, lambda: time.monotonic() + HANG_S)
        except BaseException as error:
            self.error = error

    def end(self) -> None:
        """Stop the step, and check that it ended without an error."""
        self.stop.set()
        self.thread.join(HANG_S)
        assert not self.thread.is_alive()
        if self.error is not None:
            raise self.error

    @property
    def records(self) -> int:
        """How many records it has committed."""
        return sum(fact.records for fact in self.seen.batches)


@pytest.fixture(scope="module")
def workers() -> Iterator[Preparer]:
    """Prepares pages, with two workers."""
    with Preparer(SPACE, 2) as preparer:
        yield preparer


def page(number: int) -> Message:
    """A page with a distinct text, as a crawler publishes it."""
    url = f"https://a.example/{number}"
    text = " ".join(f"word{number}x{position}" for position in range(60))
    return Message("pages", json.dumps({"url": url, "text": text}).encode(), page_key(url))


def publish(connection: Connection, topics: Topics, messages: list[Message]) -> None:
    """Append to `pages`, whose partitions the keys choose."""
    append(connection, topics.pages, messages)


def eventually(done: Callable[[], bool], running: Running | None = None) -> None:
    """Wait for `done()`; fail where it takes too long or the step has failed."""
    deadline = time.monotonic() + HANG_S
    while not done():
        assert time.monotonic() < deadline, "not in time"
        if running is not None and running.error is not None:
            raise running.error
        time.sleep(0.02)


def log_of(connection: Connection, topics: Topics) -> list[LogRecord]:
    """What the log holds but for time records, read-committed."""
    return [record for record in whole_log_of(connection, topics) if not isinstance(record, TimeRecord)]


def whole_log_of(connection: Connection, topics: Topics) -> list[LogRecord]:
    """What the log holds, read-committed."""
    reader = LogConsumer(connection, topics.fingerprints)
    try:
        end, found = reader.end(), []
        reader.seek(0)
        while reader.position < end:
            found += [record for _, record in numbered(reader.poll(1.0, 500))]
        return found
    finally:
        reader.close()


def sources_of(log: list[LogRecord]) -> Counter[Source]:
    """How often each input record is in the log."""
    return Counter(record.source for record in log if isinstance(record, PageRecord | RejectedRecord))


def test_the_time_comes_before_the_pages_of_a_minute(broker: Broker, topics: Topics, workers: Preparer) -> None:
    """The first record is a time, and there is at most one for each minute, whatever the number of batches."""
    before = int(time.time() // 60)
    publish(broker.connection, topics, [page(number) for number in range(200)])
    running = Running(broker.connection, topics, workers, settings=FingerprintSettings(batch_records=20))
    eventually(lambda: running.records == 200, running)
    running.end()
    log = whole_log_of(broker.connection, topics)
    minutes = [record.minute for record in log if isinstance(record, TimeRecord)]
    assert isinstance(log[0], TimeRecord)
    assert minutes == sorted(set(minutes))
    assert before <= minutes[0]
    assert len(log) == 200 + len(minutes)


def test_a_backlog_is_in_the_log_in_the_order_of_its_timestamps(
    broker: Broker, topics: Topics, workers: Preparer
) -> None:
    """One producer published to four partitions in order, of which one ended early, and one began late."""
    started_ms, parts = int(time.time() * 1000) - 3_600_000, random.Random(37)
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
        for number in range(1500):
            among = range(3) if number < 500 else range(4) if number < 1000 else range(1, 4)
            value = page(number).value
            producer.send(topics.pages, value, partition=parts.choice(among), timestamp_ms=started_ms + number)
    running = Running(broker.connection, topics, workers)
    eventually(lambda: running.records == 1500, running)
    running.end()
    found = [record for record in log_of(broker.connection, topics) if isinstance(record, PageRecord)]
    assert [record.prepared.page.url for record in found] == [f"https://a.example/{number}" for number in range(1500)]


def test_a_lost_append_is_done_again(broker: Broker, topics: Topics, workers: Preparer) -> None:
    """The step drops what is in flight and rewinds; records are there twice, and for the first time in their order."""
    small = FingerprintSettings(batch_records=20)
    running = Running(broker.connection, topics, workers, settings=small, lost_every=7)  # of the log, or of offsets
    publish(broker.connection, topics, list(map(page, range(500))))
    eventually(lambda: running.records >= 500, running)
    running.end()
    assert {problem.kind for problem in running.seen.problems} == {"append_lost"}
    counts = sources_of(log_of(broker.connection, topics))
    assert len(counts) == 500
    assert max(counts.values()) > 1
    for partition in range(PARTITIONS):
        offsets = [source.offset for source in counts if source.partition == partition]  # in order of the first time
        assert offsets == list(range(len(offsets)))


def test_too_many_bad_records_stop_the_step(broker: Broker, topics: Topics, workers: Preparer) -> None:
    """Before the batch that would exceed the limit is committed, with the place of a bad record to inspect."""
    limit = RejectionLimit(share=0.2, window=100, min_rejected=20)
    one_by_one = FingerprintSettings(batch_records=5, in_flight=InFlightLimits(chunk_records=5))
    publish(broker.connection, topics, [Message("pages", b"hello", b"one partition")] * 200)
    running = Running(broker.connection, topics, workers, rejection_limit=limit, settings=one_by_one)
    eventually(lambda: running.error is not None)
    with pytest.raises(
        RejectionRateError, match=rf"20 of the last 20 .*{topics.pages}, partition \d, offset 19: not a"
    ):
        running.end()
    assert len(log_of(broker.connection, topics)) == 15
