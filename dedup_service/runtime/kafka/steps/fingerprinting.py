"""The fingerprinting step: records of `pages` → prepared in worker processes → the log `fingerprints`.

How: one thread polls, hands chunks to the workers, and commits what came back in transactions that hold the log's
records together with the offsets of the input. A few chunks are with the workers while a transaction is under way.
Where a transaction may be lost, or a partition goes to another process, what is in hand of it is dropped; it is
read again from the committed offsets, by whoever has the partition then.

Invariants: each input record gives one record of the log, a page or a rejection; offsets are committed in order within
a partition, with the log's records or not at all. Should a record be in the log twice all the same (its offsets were
reset), whoever reads the log skips the second (`core.decision.replica`).
Nothing is dead-lettered for a fault that passes: only what describes no page is rejected.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from dedup_service.core.log_records import LogRecord, PageRecord, RejectedRecord, Source
from dedup_service.runtime.events import BatchEvent, Observer, ProblemEvent
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.client.errors import TransactionLostError
from dedup_service.runtime.kafka.client.group_consumer import GroupConsumer
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.client.retry import pause_after
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.messages.log_record import log_message
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.kafka.status import StepStatus, StepTimings
from dedup_service.runtime.kafka.steps.dead_letter_limit import RejectionLimit, RejectionTracker
from dedup_service.runtime.kafka.steps.in_flight import Chunk, InFlight, InFlightLimits
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.workers.preparation import Answer, BadRecord, Preparer

__all__ = ["FingerprintSettings", "FingerprintStep"]

_PATIENCE_S = 0.025  # of the 100 that a page takes at the least
_IDLE_S = 0.1  # nothing in hand: the poll ends early when a record comes
_BUSY_S = 0.01  # what workers finish meanwhile is seen that much later; a poll costs 0.3 to 0.5 ms
_INLINE_S = 0.05  # where pages are prepared in this thread: how long before it looks around again


@dataclass(frozen=True, slots=True, kw_only=True)
class FingerprintSettings:
    """Bounds of the step.

    batch_records: of a transaction. shortest, longer and longest_linger_s: how long one waits for more after the one
    before, unless half a batch is ready: twice as long as that one took, from the first to the second, where the
    workers keep up; the third where pages wait for them. A transaction costs some 10 ms of processor time, and every
    reader of the log something, too.
    """

    batch_records: int = 500
    shortest_linger_s: float = 0.02
    longer_linger_s: float = 0.15
    longest_linger_s: float = 0.25
    in_hand: InFlightLimits = field(default_factory=InFlightLimits)


class FingerprintStep:
    """Runs in one thread, which alone uses the reader and `transactions`. space_id: of what `preparer` makes."""

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        group: str,
        instance: str,
        space_id: str,
        preparer: Preparer,
        transactions: TransactionalProducer,
        rejection_limit: RejectionLimit,
        observer: Observer,
        *,
        settings: FingerprintSettings | None = None,
        session_timeout_s: float = 6.0,
    ) -> None:
        self._settings = settings or FingerprintSettings()
        self._topics = topics
        self._space_id = space_id
        self._preparer = preparer
        self._transactions = transactions
        self._rejections = RejectionTracker(rejection_limit)
        self._observer = observer
        self._in_hand = InFlight(self._settings.in_hand)
        self._reader = GroupConsumer(
            connection,
            topics.pages,
            group,
            instance,
            on_revoked=self._in_hand.drop,
            session_timeout_s=session_timeout_s,
            patience_s=_PATIENCE_S,
        )
        self._parts = StepTimings()
        self._failures = 0
        self._expired = 0
        self._committed_at = 0.0
        self._linger_s = self._settings.shortest_linger_s
        self.assigned: frozenset[TopicPartition] = frozenset()
        self.lag: Mapping[str, int] = {}
        self.ticked_at = time.monotonic()

    @property
    def status(self) -> StepStatus:
        """Return where the step stands; may be asked from any thread."""
        assigned = tuple(sorted(at.partition for at in self.assigned))
        return StepStatus(step="fingerprint", ticked_at=self.ticked_at, assigned=assigned)

    def run(self, stop: threading.Event, drain_s: float = 30.0) -> None:
        """Take turns until `stop` is set, then commit what the workers have begun, for up to `drain_s`, and return.

        Raises RejectionRateError, RecordTooLargeError, NotAuthorisedError and InstanceInUseError: nobody but a person
        can mend these. What was not committed is read again by whoever comes next.
        """
        with closing(self._transactions), closing(self._reader):
            self._transactions.open(stop)
            while not stop.is_set():
                self.turn(stop)
            self._drain(time.monotonic() + drain_s)

    def turn(self, stop: threading.Event) -> int:
        """Read on, start, commit; return how many records were committed. `stop` cuts a pause after a failure short."""
        self.ticked_at = time.monotonic()
        self._read()
        with self._parts.timed("prepare"):
            self._in_hand.start(self._preparer.submit, _INLINE_S)
        return self._commit(stop)

    def _read(self) -> None:
        """Take records in from the partitions that may have more in hand; stay in the group in any case."""
        self._pause(self._in_hand.full(self._reader.assigned))
        with self._parts.timed("poll"):
            records = self._reader.poll(_BUSY_S if self._in_hand.records else _IDLE_S, self._settings.batch_records)
        self.assigned = self._reader.assigned
        self._in_hand.put(record for record in records if (record.topic, record.partition) in self.assigned)
        if self._reader.expired > self._expired:
            count, self._expired = self._reader.expired - self._expired, self._reader.expired
            text = f"{count} records of {self._topics.pages} were deleted before they were read: keep them for longer"
            self._observer.problem(ProblemEvent("fingerprint", "expired", text))

    def _pause(self, full: frozenset[TopicPartition]) -> None:
        paused = self._reader.paused
        if full - paused:
            self._reader.pause(full - paused)
        if paused - full:
            self._reader.resume((paused - full) & self._reader.assigned)

    def _commit(self, stop: threading.Event, *, at_once: bool = False) -> int:
        """Commit what is ready, unless it is worth waiting for more; return how many records."""
        ready = self._in_hand.ready(self._settings.batch_records)
        count = sum(len(chunk.messages) for chunk in ready)
        settings = self._settings
        linger_s = settings.longest_linger_s if self._in_hand.backlog else self._linger_s
        early = time.monotonic() < self._committed_at + linger_s and 2 * count < settings.batch_records
        if not ready or (early and not at_once):
            return 0
        pairs = [pair for chunk in ready for pair in _answered(chunk)]
        problems = [_problem(message, answer) for message, answer in pairs]
        self._rejections.check(problems)
        try:
            last = self._transact(ready, pairs)
        except TransactionLostError as error:
            self._lose(error, stop)
            return 0
        self._failures = 0
        self._in_hand.committed(ready)
        self._rejections.accept(problems)
        self._tell(count, sum(problem is not None for problem in problems), last)
        return count

    def _transact(self, ready: Sequence[Chunk], pairs: Sequence[tuple[PageMessage, Answer]]) -> int | None:
        """Append the log's records and commit their offsets; return the offset of the last record in the log."""
        with self._parts.timed("encode"):
            messages = [self._message(message, answer) for message, answer in pairs]
        offsets = {chunk.at: chunk.messages[-1].offset + 1 for chunk in ready}  # the last chunk of a partition counts
        began, settings = time.monotonic(), self._settings
        with self._parts.timed("commit"):
            placed = self._transactions.commit(messages, offsets, self._reader.group_metadata())
        self._committed_at = time.monotonic()
        took_s = self._committed_at - began
        self._linger_s = min(settings.longer_linger_s, max(settings.shortest_linger_s, 2 * took_s))
        return placed[-1][1] if placed else None

    def _message(self, message: PageMessage, answer: Answer) -> Message:
        source = Source(message.topic, message.partition, message.offset)
        record: LogRecord
        if isinstance(answer, BadRecord):
            record = RejectedRecord(source, answer.problem)
        else:
            record = PageRecord(source, answer, self._space_id)
        return log_message(self._topics.fingerprints, record)

    def _lose(self, error: TransactionLostError, stop: threading.Event) -> None:
        """Drop everything in hand, wait a little, and read on from the committed offsets."""
        self._in_hand.drop_all()
        self._failures += 1
        self._observer.problem(ProblemEvent("fingerprint", "transaction_lost", str(error)))
        if not pause_after(self._failures, stop):
            self._reader.rewind()

    def _drain(self, deadline: float) -> None:
        """Commit what the workers have begun; the rest was not begun and is left to whoever comes next."""
        self._in_hand.drop_waiting()
        over = threading.Event()
        over.set()  # after a failure there is no second try
        while self._in_hand.records and time.monotonic() < deadline:
            self.ticked_at = time.monotonic()
            self._pause(self._reader.assigned)
            self._reader.poll(_BUSY_S, 1)  # stays in the group; nothing that it may give is taken in any more
            self._commit(over, at_once=True)

    def _tell(self, records: int, rejected: int, last: int | None) -> None:
        lag = self._reader.lag()
        self.lag = {f"{at.topic}-{at.partition}": lag[at] + self._in_hand.records_of(at) for at in sorted(lag)}
        fact = BatchEvent(
            step="fingerprint",
            records=records,
            seconds=self._parts.take(),
            rejected=rejected,
            sequence=last,
            lag=self.lag,
        )
        self._observer.batch(fact)


def _answered(chunk: Chunk) -> Iterator[tuple[PageMessage, Answer]]:
    assert chunk.answers is not None
    return zip(chunk.messages, chunk.answers.result(), strict=True)


def _problem(message: PageMessage, answer: Answer) -> str | None:
    return f"{message.place}: {answer.problem}" if isinstance(answer, BadRecord) else None
