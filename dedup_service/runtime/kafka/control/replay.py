"""Pages read a second time, in the order of the log: their content, while the topic `pages` keeps it.

How: one consumer over all partitions, without a group; what it brings ahead of the log's order waits in a queue for
each partition, and a partition whose queue is long is paused. Within a partition the log has rising offsets, so each
record is read once.

The log once more, under another policy or in another space: what the verdicts would have been.

How: every record of the log, in its order, goes through a replica of its own. Policy records are changed to what is
wished; in another space each page is prepared again from the content that `pages` still has. Retractions and
corrections hold where they stand, so the answer is that of a service that had begun so.
Invariants: the log that is replayed is only read. What cannot be prepared again, because `pages` let it go, is left out
and counted; a record that stands in the log twice counts once.

What is replayed as a set of topics of its own: a log, its verdicts, and the pages where they were read again.

How: a batch of log records is committed, which gives them their sequences; a replica of the new log decides them, and
the outputs follow in the next transaction. So the new topics are what a service that had begun so would have written,
and `twinsieve serve --prefix` goes on from them.
Invariant: only an empty log is filled. A replay that breaks off leaves topics that are not whole: remove them.
"""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Protocol

from kafka import errors
from kafka.consumer.fetcher import ConsumerRecord
from kafka.structs import TopicPartition

from dedup_service.core.decision.replica import Outcome, Replica
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import LogRecord, PageRecord, Policy, PolicyRecord, RejectedRecord, Source
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import consumer
from dedup_service.runtime.kafka.client.errors import TransactionLostError, UnreachableError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.client.retry import TRANSIENT, permanent_error
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.control.operator_records import Read
from dedup_service.runtime.kafka.messages.headers import log_headers, page_key, verdict_headers
from dedup_service.runtime.kafka.messages.log_record import decode, encode
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.kafka.messages.verdict import verdict_value
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome
from dedup_service.runtime.kafka.steps.deciding import outputs_of
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.workers.preparation import Answer, BadRecord, Preparer, submit_ahead

__all__ = [
    "PageRefetcher",
    "ReplayInterruptedError",
    "ReplayOptions",
    "ReplaySink",
    "ReplayTopics",
    "Replayed",
    "VerdictLines",
    "prepared_again",
    "replayed_log",
    "require_empty",
]

ANSWER_S = 60.0
CLOSE_S = 5.0
POLL_MS = 200
AT_ONCE = 500
HELD_RECORDS = 1000
FETCH_BYTES = 4 << 20


class PageRefetcher:
    """The records of `topic` as they stand now; what comes later is not looked for."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self._topic = topic
        self._consumer = consumer(connection, FETCH_BYTES)
        numbers = self._consumer.partitions_for_topic(topic) or set()
        partitions = [TopicPartition(topic, number) for number in numbers]
        self._consumer.assign(partitions)
        self._begin = dict(self._consumer.beginning_offsets(partitions)) if partitions else {}
        self._end = dict(self._consumer.end_offsets(partitions)) if partitions else {}
        for at, offset in self._begin.items():
            self._consumer.seek(at, offset)
        self._position = dict(self._begin)
        self._held: dict[TopicPartition, deque[ConsumerRecord]] = {at: deque() for at in partitions}

    def find(self, source: Source) -> ConsumerRecord | None:
        """Return the record at `source`, None where it is kept no longer, or was asked for before.

        Raises UnreachableError where the brokers do not give it within 60 s, NotAuthorisedError where they refuse.
        """
        at = TopicPartition(source.topic, source.partition)
        if self.is_gone(source):
            return None
        held, deadline = self._held[at], time.monotonic() + ANSWER_S
        while True:
            while held and held[0].offset < source.offset:
                held.popleft()
            if held:
                return held.popleft() if held[0].offset == source.offset else None
            if self._position[at] > source.offset or self._position[at] >= self._end[at]:
                return None
            if time.monotonic() > deadline:
                raise UnreachableError(f"{self._topic}, partition {source.partition} is not given; are its brokers up?")
            self._read()

    def is_gone(self, source: Source) -> bool:
        """Whether the record at `source` is of another topic, or was deleted."""
        begin = self._begin.get(TopicPartition(source.topic, source.partition))
        return begin is None or source.offset < begin

    def close(self) -> None:
        """Let go of the connection."""
        internals.close_consumer(self._consumer, CLOSE_S)

    def _read(self) -> None:
        full = {at for at, held in self._held.items() if len(held) >= HELD_RECORDS}
        self._consumer.resume(*(self._consumer.paused() - full))
        self._consumer.pause(*full)
        try:
            batches = self._consumer.poll(timeout_ms=POLL_MS, max_records=AT_ONCE)
        except errors.OffsetOutOfRangeError:  # deleted while we were reading: go on with what is left
            self._begin = dict(self._consumer.beginning_offsets(list(self._held)))
            for at, offset in self._begin.items():
                if self._position[at] < offset:
                    self._consumer.seek(at, offset)
                    self._position[at] = offset
            return
        except TRANSIENT as error:
            if found := permanent_error(error, f"to read {self._topic}"):
                raise found from error
            time.sleep(POLL_MS / 1000)
            return
        for at, records in batches.items():
            self._held[at].extend(records)
        for at, before in self._position.items():
            self._position[at] = internals.position(self._consumer, at, before)


WAIT_S = 0.5
BATCH_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What shall be other than it was; None leaves it. log: identity of the log that is made, None for none."""

    rule: MatchRule | None = None
    action: Action | None = None
    space_id: str | None = None
    log: str | None = None

    def applied_to(self, record: PolicyRecord) -> PolicyRecord:
        """Return the policy record as wished."""
        old = record.policy
        new = Policy(self.rule or old.rule, self.action or old.action, self.space_id or old.space_id)
        return replace(record, policy=new, log=record.log and (self.log or record.log))


@dataclass(frozen=True, slots=True)
class Replayed:
    """A record of the log as it is replayed. sequence: the one it has there. page: its content, if that was read."""

    sequence: int
    record: LogRecord
    page: ConsumerRecord | None = None


@dataclass(slots=True)
class Missing:
    """Pages that cannot be prepared again. first: the first of them."""

    count: int = 0
    first: Source | None = field(default=None)


class ReplaySink(Protocol):
    """Who takes what is replayed, in order."""

    def take(self, batch: Sequence[Replayed]) -> None:
        """Decide a batch, and pass its verdicts on."""
        ...


def replayed_log(log: LogConsumer, wish: ReplayOptions, read: Read) -> Iterator[list[Replayed]]:
    """Yield what the log has now, in batches, with the policies as wished. read: is told how far it is."""
    end, begun = log.end(), False
    while (position := log.position) < end:
        read(position, end)
        batch = []
        for at in log.poll(WAIT_S, AT_ONCE):
            record = decode(at.value or b"")
            if isinstance(record, PolicyRecord):
                if record.initial and begun:
                    continue  # void: another service began the log first
                record, begun = wish.applied_to(record), True
            batch.append(Replayed(at.offset, record))
        yield batch
    read(end, end)


def prepared_again(
    batches: Iterable[Sequence[Replayed]], pages: PageRefetcher, preparer: Preparer, space_id: str, missing: Missing
) -> Iterator[list[Replayed]]:
    """Yield the batches with each page prepared anew, in `space_id`; those that are gone are counted in `missing`."""

    def submit(part: list[Replayed]) -> Future[list[Answer]]:
        return preparer.submit(
            [PageMessage(page.topic, page.partition, page.offset, page.value) for page in _pages(part)]
        )

    for part, answers in submit_ahead(submit, _with_content(batches, pages, missing), preparer.depth):
        yield _answered(part, answers, space_id)


class VerdictLines:
    """A sink that writes the verdicts as lines, as the topic `verdicts` would have them."""

    def __init__(self, write: "Write", replica: Replica) -> None:
        self._write = write
        self._replica = replica

    def take(self, batch: Sequence[Replayed]) -> None:
        """Decide a batch and write its lines."""
        outcomes = (self._replica.apply(item.sequence, item.record) for item in batch)
        decided = ((outcome.verdict, outcome.source) for outcome in outcomes if outcome is not None)
        self._write([verdict_value(verdict, source) + b"\n" for verdict, source in decided if verdict is not None])


class Write(Protocol):
    """Writes some lines whole, or raises."""

    def __call__(self, chunks: Sequence[bytes]) -> None:
        """Write `chunks`."""
        ...


def _with_content(
    batches: Iterable[Sequence[Replayed]], pages: PageRefetcher, missing: Missing
) -> Iterator[list[Replayed]]:
    """Yield the records with the content of their pages, cut so that no part holds much."""
    for batch in batches:
        part: list[Replayed] = []
        size = 0
        for item in batch:
            source = item.record.source if isinstance(item.record, PageRecord | RejectedRecord) else None
            if source is None:
                part.append(item)
                continue
            page = pages.find(source)
            if page is None:
                if pages.is_gone(source):  # else the log has it twice
                    missing.count += 1
                    missing.first = missing.first or source
                continue
            part.append(replace(item, page=page))
            size += len(page.value or b"")
            if size >= BATCH_BYTES:
                yield part
                part, size = [], 0
        yield part


def _pages(part: Sequence[Replayed]) -> list[ConsumerRecord]:
    return [item.page for item in part if item.page is not None]


def _answered(part: Sequence[Replayed], answers: Sequence[Answer], space_id: str) -> list[Replayed]:
    given = iter(answers)
    return [item if item.page is None else _anew(item, next(given), space_id) for item in part]


def _anew(item: Replayed, answer: Answer, space_id: str) -> Replayed:
    assert item.page is not None
    source = Source(item.page.topic, item.page.partition, item.page.offset)
    if isinstance(answer, BadRecord):
        return replace(item, record=RejectedRecord(source, answer.problem))
    return replace(item, record=PageRecord(source, answer, space_id))


TRANSACTION_BYTES = 8 << 20


class ReplayInterruptedError(StateError):
    """A replay broke off, its topics are not whole. Remove them, make them anew, and start the replay again."""


class ReplayTopics:
    """A sink that fills `topics`."""

    def __init__(self, topics: Topics, transactions: TransactionalProducer, replica: Replica) -> None:
        self._topics = topics
        self._transactions = transactions
        self._replica = replica

    def take(self, batch: Sequence[Replayed]) -> None:
        """Append a batch to the log, decide it, write its outputs. ReplayInterruptedError where the brokers lose it."""
        if not batch:
            return
        placed = self._commit([self._record(item.record) for item in batch])
        outcomes = [
            (self._replica.apply(offset, item.record), item) for (_, offset), item in zip(placed, batch, strict=True)
        ]
        outputs = (
            message for outcome, item in outcomes if outcome is not None for message in self._outputs(outcome, item)
        )
        for part in _parts(outputs):
            self._commit(part)

    def _record(self, record: LogRecord) -> Message:
        key = page_key(record.prepared.page.canonical_url) if isinstance(record, PageRecord) else None
        log = self._topics.fingerprints
        return Message(log, encode(record), key, log_headers(record, log), partition=0)

    def _outputs(self, outcome: Outcome, item: Replayed) -> Iterator[Message]:
        """The verdict; with the page at hand, all that a service writes."""
        pending = PendingOutcome.of(outcome)
        if item.page is not None:
            yield from outputs_of(self._topics, item.page, pending)
        elif outcome.verdict is not None:
            headers = verdict_headers(outcome.source, self._topics.verdicts)
            yield Message(self._topics.verdicts, pending.value, pending.key, headers)

    def _commit(self, messages: Sequence[Message]) -> list[tuple[int, int]]:
        try:
            return self._transactions.commit(messages) or []
        except TransactionLostError as error:
            raise ReplayInterruptedError(
                f"the replay broke off: {error}; the topics {self._topics.prefix}… are not whole: remove them, make "
                "them anew with `twinsieve topics create`, and start the replay again"
            ) from error


def require_empty(connection: Connection, topics: Topics) -> None:
    """StateError where the log of `topics` has records: a replay begins a log, it does not mix two."""
    log = LogConsumer(connection, topics.fingerprints)
    try:
        if log.read_one(0) is not None:
            raise StateError(
                f"{topics.fingerprints} has records already: give another --to-prefix, or remove its topics and make "
                "them anew"
            )
    finally:
        log.close()


def _parts(messages: Iterator[Message]) -> Iterator[list[Message]]:
    part: list[Message] = []
    size = 0
    for message in messages:
        part.append(message)
        size += message.size_bytes
        if size >= TRANSACTION_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part
