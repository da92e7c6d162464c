"""The fingerprinting step: records of `pages` → prepared by workers → the log `fingerprints`.

One thread polls, hands chunks of records to the workers, and appends the results to the log. Once they are
acknowledged it commits the offsets of the input. Some chunks are with the workers meanwhile. If an append may be
lost, or a partition moves to another process, its records in flight are dropped; the next owner of the partition
reads them again from the committed offsets. It needs no transaction (docs/adr/0026-appends.md).

A record that is not a page, or is oversized, is rejected by `messages.page`: it becomes a rejection record
in the log, and the deciding step moves it to `pages.dlq`. `dead_letter_limit` bounds the share of such
records.

Records that retention deleted before they were read become one record of the log together
(`ExpiredRecord`), at their place between the others of the partition.

Where nothing of a partition is in flight, the consumer's position is committed, too: markers of transactions and
aborted records before it are no records (`idle_offsets`).

Before the pages of a minute the step appends the time (`TimeRecord`), by which kept pages expire.

Invariants: each input record gives a record of the log, a page or a rejection, or its part of one; those of an append
share messages (`page_batch`). The records of a
partition come in order: where one is for the first time, all before it are. An offset is committed only when all
records below it are in the log, for the group and in `dedup.offsets`, where a partition continues; it is true whoever
commits it, and however late. A record that is in the log again (nobody knew that it was, or two processes read its
partition for a while) is skipped by every reader (`core.decision.replica`). A record is never rejected because of a
transient error, only because it does not describe a page.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from dedup_service.core.log_records import (
    ExpiredRecord,
    LogRecord,
    PageRecord,
    RejectedRecord,
    Source,
    TimeRecord,
    sequence_at,
)
from dedup_service.runtime.events import BatchEvent, Observer, ProblemEvent
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.client.errors import AppendLostError
from dedup_service.runtime.kafka.client.group_consumer import GroupConsumer
from dedup_service.runtime.kafka.client.log_appender import LogAppender
from dedup_service.runtime.kafka.client.retry import pause_after
from dedup_service.runtime.kafka.messages.log_record import MAX_EXPIRED, log_messages
from dedup_service.runtime.kafka.messages.page import PageMessage
from dedup_service.runtime.kafka.state.step_offsets import FINGERPRINT, StepOffsets
from dedup_service.runtime.kafka.status import StepStatus, StepTimings
from dedup_service.runtime.kafka.steps.dead_letter_limit import RejectionLimit, RejectionTracker
from dedup_service.runtime.kafka.steps.idle_offsets import IdleOffsets
from dedup_service.runtime.kafka.steps.in_flight import Answered, InFlight, InFlightLimits
from dedup_service.runtime.kafka.topics import Topics
from dedup_service.runtime.workers.preparation import Answer, BadRecord, Preparer

_FETCH_MAX_WAIT_S = 0.025
"""How long a broker may wait for a full fetch of `pages`; a page takes at least 0.1 s end to end."""

_AWAITED_S = 2.0
"""How long records of partitions that are behind wait for one that nothing comes from: its leader may be away."""

_IDLE_S = 0.1  # nothing in flight: the poll returns early when a record arrives
_BUSY_S = 0.01  # results of the workers are seen that much later; a poll costs 0.3 to 0.5 ms
_MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class FingerprintSettings:
    """Limits of the step.

    batch_records: of an append. in_flight: of the records in flight.
    min_linger_s, max_linger_s, backlog_linger_s: how long an append waits after the previous one for more
    records, unless half a batch is ready. If the workers keep up, it waits twice as long as the previous append
    took, between the minimum and the maximum; if as many records wait for the workers, it waits `backlog_linger_s`. An
    append costs some milliseconds of processor time here, and in every reader of the log.
    """

    batch_records: int = 500
    min_linger_s: float = 0.02
    max_linger_s: float = 0.15
    backlog_linger_s: float = 0.25
    in_flight: InFlightLimits = field(default_factory=InFlightLimits)


class FingerprintStep:
    """The fingerprinting step; runs in one thread, which alone uses `appender`.

    space_id: of the fingerprints that `preparer` makes. offsets: how far the step is; the step closes it.
    topic_id: identity of `pages`. assigned: its partitions. lag: returns the step's lag by partition ("pages-0"),
    as last measured, for its events. first: what the first message of the log is numbered.
    """

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        group: str,
        instance: str,
        space_id: str,
        preparer: Preparer,
        appender: LogAppender,
        rejection_limit: RejectionLimit,
        observer: Observer,
        *,
        offsets: StepOffsets,
        topic_id: str | None,
        lag: Callable[[], Mapping[str, int]] = dict,
        settings: FingerprintSettings | None = None,
        session_timeout_s: float = 6.0,
        first: int = 0,
    ) -> None:
        self._offsets, self._first = offsets, first
        self._settings = settings or FingerprintSettings()
        self._topics = topics
        self._space_id = space_id
        self._preparer = preparer
        self._appender = appender
        self._rejections = RejectionTracker(rejection_limit)
        self._observer = observer
        self._in_flight = InFlight(self._settings.in_flight)
        self._idle_offsets = IdleOffsets()
        self._consumer = GroupConsumer(
            connection,
            topics.pages,
            group,
            instance,
            on_revoked=self._revoked,
            on_assigned=self._idle_offsets.begin,
            positions=lambda committed: offsets.positions(FINGERPRINT, committed),
            on_expired=self._note_expired,
            topic_id=topic_id,
            session_timeout_s=session_timeout_s,
            fetch_max_wait_s=_FETCH_MAX_WAIT_S,
        )
        self._timings = StepTimings()
        self._failures = 0
        self._committed_at = 0.0
        self._linger_s = self._settings.min_linger_s
        self._minute = -1
        self.assigned: frozenset[TopicPartition] = frozenset()
        self._lag = lag
        self._buffered = (0, 0)
        self._silent_since: dict[TopicPartition, float] = {}
        self._unread: frozenset[TopicPartition] = frozenset()
        self.ticked_at = time.monotonic()

    @property
    def status(self) -> StepStatus:
        """Return the status of the step; may be called from any thread."""
        assigned = tuple(sorted(assigned.partition for assigned in self.assigned))
        pages, size_bytes = self._buffered
        return StepStatus(
            step="fingerprint",
            ticked_at=self.ticked_at,
            assigned=assigned,
            buffered_pages=pages,
            buffered_bytes=size_bytes,
        )

    def run(self, stop: threading.Event, drain_until: Callable[[], float] = time.monotonic) -> None:
        """Run the loop of the step until `stop` is set; then commit the started chunks, until `drain_until()`.

        That is a time of the monotonic clock, asked for after `stop`. Raises RejectionRateError,
        RecordTooLargeError, NotAuthorisedError, LogChangedError and InstanceInUseError: an operator has to fix
        these. Whatever was not committed is read again by the next owner of the partitions.
        """
        with closing(self._offsets), closing(self._appender), closing(self._consumer):
            self._appender.open(stop)
            while not stop.is_set():
                self.turn(stop)
            self._drain(drain_until())

    def turn(self, stop: threading.Event) -> int:
        """Read, start chunks, commit; return the number of records committed.

        stop: cuts the pause after a failure short.
        """
        self.ticked_at = time.monotonic()
        self._read()
        with self._timings.timed("prepare"):
            self._in_flight.start(self._preparer.submit)
        self._buffered = (self._in_flight.records, self._in_flight.size_bytes)
        return self._commit(stop)

    def _read(self) -> None:
        """Read records of the partitions that are not full; the poll also keeps the process in the group."""
        self._pause(self._in_flight.full(self._consumer.assigned))
        before = self._consumer.behind
        with self._timings.timed("poll"):
            records = self._consumer.poll(_BUSY_S if self._in_flight.records else _IDLE_S, self._settings.batch_records)
        self.assigned = self._consumer.assigned
        behind = self._consumer.behind
        mine = (record for record in records if (record.topic, record.partition) in self.assigned)
        self._in_flight.put(mine, before | behind)
        now, since = time.monotonic(), self._silent_since
        self._silent_since = {partition: since.get(partition, now) for partition in behind - self._in_flight.partitions}
        self._unread = behind - {partition for partition, at in self._silent_since.items() if now > at + _AWAITED_S}

    def _revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self._in_flight.drop(partitions)
        self._idle_offsets.end(partitions)

    def _note_expired(self, partition: TopicPartition, start: int, end: int) -> None:
        """Put records about deleted input records in their place."""
        for first in range(start, end, MAX_EXPIRED):
            record = ExpiredRecord(Source(partition.topic, partition.partition, first), min(end, first + MAX_EXPIRED))
            self._in_flight.put_expired(partition, record)

    def _pause(self, full: frozenset[TopicPartition]) -> None:
        paused = self._consumer.paused
        if full - paused:
            self._consumer.pause(full - paused)
        if paused - full:
            self._consumer.resume((paused - full) & self._consumer.assigned)

    def _commit(self, stop: threading.Event, *, at_once: bool = False) -> int:
        """Commit the finished chunks, unless waiting for more pays; return the number of records."""
        ready = self._in_flight.ready(self._settings.batch_records, self._unread)
        count = sum(len(part.messages) for part in ready)
        settings = self._settings
        backlog = self._in_flight.waiting >= settings.batch_records
        linger_s = settings.backlog_linger_s if backlog else self._linger_s
        early = time.monotonic() < self._committed_at + linger_s and 2 * count < settings.batch_records
        if early and not at_once:
            return 0
        # A drain ignores what its polls return, so the positions say nothing then.
        passed = {} if at_once else self._passed(due=bool(ready))
        if not ready and not passed:
            return 0
        pairs = [pair for part in ready for pair in zip(part.messages, part.answers, strict=True)]
        problems = [_problem(message, answer) for message, answer in pairs]
        self._rejections.check(problems)
        try:
            last = self._append(ready, passed)
        except AppendLostError as error:
            self._rewind_after(error, stop)
            return 0
        self._failures = 0
        self._in_flight.committed(ready)
        rejections = self._rejections.accept(problems)
        for part in ready:
            if part.expired is not None:
                self._report_expired(part.expired)
        if ready:
            self._report_batch(count, sum(problem is not None for problem in problems), rejections, last)
        return count

    def _passed(self, *, due: bool) -> dict[TopicPartition, int]:
        """Return where partitions without anything in flight are, if they have passed what is no record.

        due: do not wait until nothing was committed for a while.
        """
        if not (due or self._idle_offsets.due):
            return {}
        busy, positions = self._in_flight.partitions, self._consumer.positions
        return self._idle_offsets.moved({at: offset for at, offset in positions.items() if at not in busy})

    def _append(self, ready: Sequence[Answered], passed: Mapping[TopicPartition, int]) -> int | None:
        """Append to the log, then commit the input offsets; return the sequence of the last record.

        passed: offsets without a record in between, of other partitions than those of `ready`.
        """
        with self._timings.timed("encode"):
            minute = int(time.time() // _MINUTE_S)
            records = [record for part in ready for record in self._records(part)]
            if records and minute > self._minute:
                records.insert(0, TimeRecord(minute))
            messages = log_messages(self._topics.fingerprints, records)
            # The last part of a partition wins.
            offsets = {**passed, **{part.partition: part.end for part in ready}}
        started, settings = time.monotonic(), self._settings
        with self._timings.timed("commit"):
            positions = self._appender.append(message for message, _ in messages)
            self._appender.append(self._offsets.messages(FINGERPRINT, offsets))
            self._consumer.commit(offsets)
        self._committed_at = time.monotonic()
        if positions:
            self._minute = minute
        self._idle_offsets.committed(offsets)
        took_s = self._committed_at - started
        self._linger_s = min(settings.max_linger_s, max(settings.min_linger_s, 2 * took_s))
        return sequence_at(self._first + positions[-1], messages[-1][1] - 1) if positions else None

    def _records(self, part: Answered) -> Iterator[LogRecord]:
        """Yield the records of the log for it."""
        if part.expired is not None:
            yield part.expired
        for message, answer in zip(part.messages, part.answers, strict=True):
            source = Source(message.topic, message.partition, message.offset)
            if isinstance(answer, BadRecord):
                yield RejectedRecord(source, answer.problem)
            else:
                yield PageRecord(source, answer, self._space_id)

    def _rewind_after(self, error: AppendLostError, stop: threading.Event) -> None:
        """Drop everything in flight, pause, and continue from the committed offsets."""
        self._in_flight.drop_all()
        self._failures += 1
        self._observer.problem(ProblemEvent("fingerprint", "append_lost", str(error)))
        if not pause_after(self._failures, stop):
            self._idle_offsets.begin(self._consumer.rewind())

    def _drain(self, deadline: float) -> None:
        """Commit the chunks that were started; the others are left to the next owner of the partitions.

        So are records of partitions that are behind, if others may be older that were not read, or not started.
        """
        self._unread = self._in_flight.drop_waiting() | self._consumer.behind
        no_retry = threading.Event()
        no_retry.set()  # an append that fails during the drain is not repeated
        while self._in_flight.records and time.monotonic() < deadline:
            self.ticked_at = time.monotonic()
            self._pause(self._consumer.assigned)
            self._consumer.poll(
                _BUSY_S, 1
            )  # to stay in the group; all partitions are paused, and what it may return is ignored
            if not self._commit(no_retry, at_once=True) and not self._in_flight.busy:
                break

    def _report_expired(self, record: ExpiredRecord) -> None:
        """Report records that were deleted unread, once the log says so: another try would count them again."""
        source, count = record.source, record.end - record.source.offset
        text = (
            f"{count} records of {source.topic}-{source.partition} from offset {source.offset} on were deleted before "
            "they were read: increase its retention"
        )
        self._observer.problem(ProblemEvent("fingerprint", "expired", text, count))

    def _report_batch(self, records: int, rejected: int, rejections: Sequence[str], last: int | None) -> None:
        event = BatchEvent(
            step="fingerprint",
            records=records,
            seconds=self._timings.take(),
            rejected=rejected,
            rejections=rejections,
            sequence=last,
            lag=self._lag(),
        )
        self._observer.batch(event)


def _problem(message: PageMessage, answer: Answer) -> str | None:
    return f"{message.place}: {answer.problem}" if isinstance(answer, BadRecord) else None
