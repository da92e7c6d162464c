"""Replay: decide a log again under another policy or in another space, as if a service had begun that way.

How: every record of the log, in its order, goes through a separate replica. Policy records are changed as
`ReplayOptions` say; for another space each page is prepared again from the content that `pages` still has.
Retractions and corrections apply at their place in the log.
- `PageRefetcher` reads `pages` a second time in the order of the log: one reader over all partitions, a
  queue for each, and a partition whose queue is long is paused. Within a partition the log has rising
  offsets, so each record is read once.
- `VerdictLines` writes the verdicts as lines; `replay_topics.ReplayTopics` fills a separate set of topics.

What has no effect (void policies, unreadable messages) is left out; from new topics also pages that were taken down
later (`last_retractions`). Invariants: the log is only read. Pages that `pages` no longer has are left out and counted;
a record that is in the log twice counts once.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType

from dedup_service.core.decision.replica import Replica
from dedup_service.core.log_records import (
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    Source,
    UnreadableRecord,
    sequence_at,
)
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord, TopicPartition
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer, PartitionReader, Progress
from dedup_service.runtime.kafka.control.operator_records import BY, LogBinding
from dedup_service.runtime.kafka.messages.headers import Headers
from dedup_service.runtime.kafka.messages.log_record import MESSAGES_AT_ONCE, decode, numbered
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.kafka.messages.page_batch import is_batch
from dedup_service.runtime.kafka.messages.verdict import verdict_value
from dedup_service.runtime.workers.preparation import Answer, BadRecord, Preparer, submit_ahead

BATCH_RECORDS = 500
BATCH_BYTES = 8 << 20

FETCH_BYTES = 4 << 20
FETCH_TIMEOUT_S = 60.0
MAX_QUEUED_RECORDS = 1000
POLL_S = 0.2


class PageRefetcher:
    """The records of `topic`, found by their place, for as long as the topic keeps them.

    Requests must come in the order of the log. What was published after the start is not looked for.
    """

    def __init__(self, connection: Connection, topic: str) -> None:
        self._topic = topic
        self._reader = PartitionReader(connection, fetch_bytes=FETCH_BYTES, timeout_s=FETCH_TIMEOUT_S)
        self._ends = self._reader.ends(self._reader.partitions_of(topic))
        self._reader.assign(self._reader.beginnings)
        self._queues: dict[TopicPartition, deque[ConsumerRecord]] = {partition: deque() for partition in self._ends}

    def find(self, source: Source) -> ConsumerRecord | None:
        """Return the record at `source`, None if it is no longer kept, or was requested before.

        Raises UnreachableError if no broker gives it within 60 s, NotAuthorisedError if they refuse.
        """
        if self.is_gone(source):
            return None
        partition = TopicPartition(source.topic, source.partition)
        queue, deadline = self._queues[partition], time.monotonic() + FETCH_TIMEOUT_S
        while True:
            while queue and queue[0].offset < source.offset:
                queue.popleft()
            if queue:
                return queue.popleft() if queue[0].offset == source.offset else None
            position = self._reader.positions[partition]
            if position > source.offset or position >= self._ends[partition]:
                return None
            if time.monotonic() > deadline:
                raise UnreachableError(
                    f"{self._topic}, partition {source.partition}, gave no record within {FETCH_TIMEOUT_S:g} s; check "
                    "that its brokers run"
                )
            self._fetch()

    def is_gone(self, source: Source) -> bool:
        """Whether the record at `source` was deleted, or is in another topic."""
        beginning = self._reader.beginnings.get(TopicPartition(source.topic, source.partition))
        return beginning is None or source.offset < beginning

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    def _fetch(self) -> None:
        full = {partition for partition, queue in self._queues.items() if len(queue) >= MAX_QUEUED_RECORDS}
        for record in self._reader.poll(POLL_S, BATCH_RECORDS, paused=full):
            self._queues[TopicPartition(record.topic, record.partition)].append(record)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What to change in the replay; None keeps what the log has.

    log, binding: identity of the log that the replay writes, and what it belongs to; None if it writes none.
    """

    rule: MatchRule | None = None
    action: Action | None = None
    space_id: str | None = None
    keep: Keep | None = None
    log: str | None = None
    binding: LogBinding | None = None

    def applied_to(self, record: PolicyRecord) -> PolicyRecord:
        """Return the record of a policy that came into force, with the changes.

        It replaces any: those that came into force here did so in the log that is replayed.
        """
        old = record.policy
        kept, lowered = (old.keep, old.lowered) if self.keep is None else (self.keep, KEEP_ALL)
        new = replace(
            old,
            rule=self.rule or old.rule,
            action=self.action or old.action,
            space_id=self.space_id or old.space_id,
            keep=kept,
            lowered=lowered,
        )
        if record.log is None:
            return replace(record, policy=new, replaces=None)
        bound = {} if self.binding is None else asdict(self.binding)
        return replace(record, policy=new, log=self.log or record.log, replaces=None, **bound)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A record of the replayed log, changed as the options say.

    sequence: of the record in the log that is replayed. page: its content, where that was read again. headers:
    who added the record, if that is known.
    """

    sequence: int
    record: LogRecord
    page: ConsumerRecord | None = None
    headers: Headers = ()


@dataclass(slots=True)
class LeftOut:
    """What a replay left out.

    missing: pages that cannot be prepared again, because `pages` no longer has them. first: the first of them.
    unreadable: messages of the log that are not records. taken_down: pages that were retracted later.
    """

    missing: int = 0
    first: Source | None = None
    unreadable: int = 0
    taken_down: int = 0


def last_retractions(log: LogConsumer, progress: Progress) -> dict[str, int]:
    """Return the canonical URLs that the log retracts, each with the sequence of its last retraction.

    Reads the log once and goes back to where it was.
    """
    begin = log.position
    last: dict[str, int] = {}
    for messages in log.read_to_end(progress, max_records=MESSAGES_AT_ONCE):
        for message in messages:
            if not is_batch(message.value or b""):
                (record,) = decode(message.value or b"")
                if isinstance(record, RetractionRecord):
                    last[record.url] = sequence_at(message.offset)
    log.seek(begin)
    return last


def replayed_log(
    log: LogConsumer,
    options: ReplayOptions,
    left_out: LeftOut,
    progress: Progress,
    taken_down: Mapping[str, int] = MappingProxyType({}),
) -> Iterator[list[Replayed]]:
    """Yield the records that the log has now, in batches, with the policies changed as `options` say.

    taken_down: `last_retractions`; pages from before them are left out, and so are the retractions, which name them;
    not if the log has bases, where the page may be. Void policies are left out, too, and unreadable messages.
    `left_out` counts pages and messages.
    """
    in_force: Policy | None = None
    since = -1
    for messages in log.read_to_end(progress, max_records=MESSAGES_AT_ONCE):
        batch: list[Replayed] = []
        for message in messages:
            headers = tuple((name, value or b"") for name, value in message.headers if name == BY)
            for sequence, record in numbered([message]):
                if isinstance(record, UnreadableRecord):
                    left_out.unreadable += 1
                    continue
                if isinstance(record, PolicyRecord):
                    if record.is_void(in_force, since):
                        continue
                    in_force, since = record.policy, sequence
                    batch.append(Replayed(sequence, options.applied_to(record), headers=headers))
                elif isinstance(record, PageRecord) and sequence < taken_down.get(
                    record.prepared.page.canonical_url, -1
                ):
                    left_out.taken_down += 1
                elif not isinstance(record, RetractionRecord) or log.first or sequence > taken_down.get(record.url, -1):
                    batch.append(Replayed(sequence, record, headers=headers))
                if len(batch) == BATCH_RECORDS:
                    yield batch
                    batch = []
        yield batch


def prepared_again(
    batches: Iterable[Sequence[Replayed]], pages: PageRefetcher, preparer: Preparer, space_id: str, left_out: LeftOut
) -> Iterator[list[Replayed]]:
    """Yield the batches with each page prepared again in `space_id`.

    Pages no longer kept are left out.
    """

    def submit(part: list[Replayed]) -> Future[list[Answer]]:
        return preparer.submit([PageMessage.of(page) for page in _pages(part)])

    for part, answers in submit_ahead(submit, _with_content(batches, pages, left_out)):
        yield _with_answers(part, answers, space_id)


def _with_content(
    batches: Iterable[Sequence[Replayed]], pages: PageRefetcher, left_out: LeftOut
) -> Iterator[list[Replayed]]:
    """Yield the records with the content of their pages, in parts of about 8 MiB."""
    for batch in batches:
        part: list[Replayed] = []
        size = 0
        for item in batch:
            source = item.record.source if isinstance(item.record, PageRecord | RejectedRecord) else None
            if source is None:
                part.append(item)
                continue
            page = pages.find(source)
            if page is None and isinstance(item.record, RejectedRecord):
                part.append(item)  # it needs no content
                continue
            if page is None:
                if pages.is_gone(source):  # else the log has it twice
                    left_out.missing += 1
                    left_out.first = left_out.first or source
                continue
            part.append(replace(item, page=page))
            size += len(page.value or b"")
            if size >= BATCH_BYTES:
                yield part
                part, size = [], 0
        yield part


def _pages(part: Sequence[Replayed]) -> list[ConsumerRecord]:
    return [item.page for item in part if item.page is not None]


def _with_answers(part: Sequence[Replayed], answers: Sequence[Answer], space_id: str) -> list[Replayed]:
    results = iter(answers)
    return [item if item.page is None else _with_answer(item, next(results), space_id) for item in part]


def _with_answer(item: Replayed, answer: Answer, space_id: str) -> Replayed:
    assert item.page is not None
    source = Source(item.page.topic, item.page.partition, item.page.offset)
    if isinstance(answer, BadRecord):
        return replace(item, record=RejectedRecord(source, answer.problem))
    return replace(item, record=PageRecord(source, answer, space_id))


class VerdictLines:
    """A sink that writes the verdicts as lines, with the values of the topic `verdicts`. write: all of some lines."""

    def __init__(self, write: Callable[[Sequence[bytes]], None], replica: Replica) -> None:
        self._write = write
        self._replica = replica

    def take(self, batch: Sequence[Replayed]) -> None:
        """Decide a batch and write its lines."""
        outcomes = self._replica.apply_many([(item.sequence, item.record) for item in batch])
        decided = ((outcome.verdict, outcome.source) for outcome in outcomes if outcome is not None)
        self._write([verdict_value(verdict, source) + b"\n" for verdict, source in decided if verdict is not None])

    def finish(self) -> None:
        """Do nothing: every line is written."""
