"""What is written of one input record, once its outcome is known.

A page: its verdict, and, unless the action drops it, the page as it came (value, key and headers, ours added) to
`pages.unique` or `pages.duplicate`. A record that is no page: itself, to `pages.dlq`, with the reason.

The deciding step: the log in order → outcomes → outputs, each written once.

How: every process reads the whole log, read-committed, and applies it to its replica; so each knows all outcomes. The
partitions of `pages` are shared out in the group `<group>.decide`; who has one reads its pages, joins each with its
outcome, and writes the outputs in order of offset, in transactions that commit these offsets for the group.
Where a transaction may be lost, everything in hand is dropped and read again from the committed offsets.

Invariants: a record's outputs are written by the owner of its partition only, in the transaction that commits its
offset (docs/adr/0012 walks through every crash point). One thread uses the readers and the producer.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dedup_service.core.decision.replica import Outcome
from dedup_service.core.log_records import Source
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.events import BatchEvent, IndexEvent, Observer, PageDecided, ProblemEvent, RemovalEvent
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord, TopicPartition
from dedup_service.runtime.kafka.client.errors import BrokerError, TransactionLostError
from dedup_service.runtime.kafka.client.group_consumer import GroupConsumer
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.client.retry import pause_after
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.messages.headers import STATS_KEY, passed_on, stats_headers, verdict_headers
from dedup_service.runtime.kafka.messages.log_record import decode
from dedup_service.runtime.kafka.messages.page import dead_letter
from dedup_service.runtime.kafka.messages.verdict import stats_value
from dedup_service.runtime.kafka.state.local_state import LocalState, tail_of
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome
from dedup_service.runtime.kafka.state.restore import RestoredReplica
from dedup_service.runtime.kafka.status import StepStatus, StepTimings
from dedup_service.runtime.kafka.steps.page_buffer import PageBuffer, Ready
from dedup_service.runtime.kafka.steps.replica_queries import ReplicaQueries
from dedup_service.runtime.kafka.topics import Topics

__all__ = ["DecideSettings", "DecideStep", "outputs_of"]

STORED = frozenset({VerdictKind.UNIQUE, VerdictKind.UPDATED, VerdictKind.UNDECIDED})
"""Verdicts whose pages go to `pages.unique`. The store behind Kafka cannot lose a page, so `unchanged` does not."""


def outputs_of(topics: Topics, record: ConsumerRecord, outcome: PendingOutcome) -> Iterator[Message]:
    """Yield the messages of the consumed `record`."""
    source = Source(record.topic, record.partition, record.offset)
    if outcome.kind is None:
        error = outcome.value.decode("utf-8", "replace")
        value, headers = dead_letter(record.value, record.headers, source, outcome.sequence, error)
        yield Message(topics.dlq, value, record.key, headers)
        return
    yield Message(topics.verdicts, outcome.value, outcome.key, verdict_headers(source, topics.verdicts))
    if not outcome.drop:
        target = topics.unique if outcome.kind in STORED else topics.duplicate
        headers = passed_on(
            record.headers, source, outcome.sequence, verdict=outcome.kind, original_url=outcome.original_url
        )
        yield Message(target, record.value, outcome.key if record.key is None else record.key, headers)


_LOG = logging.getLogger(__name__)
_PATIENCE_S = 0.06  # a page's outcome takes longer
_PAUSE_S = 0.05  # the longest an idle turn waits for either topic
_LINGER_S = 0.25
_SHORT_LINGER_S = 0.1
_REFRESH_S = 5.0
_STATS_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideSettings:
    """Bounds of the step.

    batch_records, batch_bytes: of a transaction. log_records: applied between two transactions.
    held_records, held_bytes: pages that wait for the log. held_outcomes: outcomes that wait for their pages, above
    which the log is not read on as long as any can be written.
    """

    batch_records: int = 500
    batch_bytes: int = 8 << 20
    log_records: int = 250
    held_records: int = 2_000
    held_bytes: int = 32 << 20
    held_outcomes: int = 100_000


class DecideStep:
    """Runs in one thread. restored: where to begin; log: the reader that was used for it, which stands there."""

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        group: str,
        local: LocalState,
        restored: RestoredReplica,
        log: LogConsumer,
        transactions: TransactionalProducer,
        observer: Observer,
        *,
        settings: DecideSettings | None = None,
        session_timeout_s: float = 6.0,
    ) -> None:
        self._settings = settings or DecideSettings()
        self._topics = topics
        self._local = local
        self._replica = restored.replica
        self._replica.take_removals()  # before our time
        self._outcomes = restored.outcomes
        self._tail = restored.tail
        self._log = log
        self._transactions = transactions
        self._observer = observer
        self._contents = PageBuffer(self._settings.held_records, self._settings.held_bytes)
        self._reader = GroupConsumer(
            connection,
            topics.pages,
            f"{group}.decide",
            local.instance,
            on_revoked=self._revoked,
            on_assigned=self._assigned,
            session_timeout_s=session_timeout_s,
            patience_s=_PATIENCE_S,
        )
        self._parts = StepTimings()
        self._failures = 0
        self._written_at = self._linger_s = 0.0
        self._refresh_at = self._stats_at = time.monotonic()
        self.ticked_at = time.monotonic()
        self.questions = ReplicaQueries()

    @property
    def status(self) -> StepStatus:
        """Return where the step stands."""
        assigned = tuple(sorted(at.partition for at in self._reader.assigned))
        return StepStatus(step="decide", ticked_at=self.ticked_at, assigned=assigned)

    def run(self, stop: threading.Event, drain_s: float = 0.0) -> None:
        """Take turns until `stop` is set, and then until all that the log has is written, for `drain_s` at most."""
        try:
            self._transactions.open(stop)
            while not stop.is_set():
                self.turn(stop)
            self._drain(drain_s)
            self._take_snapshot()
        finally:
            self._close()

    def _drain(self, drain_s: float) -> None:
        deadline = time.monotonic() + drain_s
        try:
            end = self._log.end() if drain_s else 0
        except BrokerError as error:
            self._observer.problem(ProblemEvent("decide", "not_drained", str(error)))
            return
        while time.monotonic() < deadline and (self._log.position < end or self._owes()):
            self.turn(threading.Event())

    def _owes(self) -> bool:
        """Whether outcomes of our own partitions wait to be written."""
        mine = self._reader.assigned
        return any(TopicPartition(*key) in mine for key in self._outcomes.partitions)

    def turn(self, stop: threading.Event) -> int:
        """Read on, decide, write, look after the state; return how many records were written. `stop` ends a pause."""
        self.ticked_at = time.monotonic()
        self.questions.answer(self._replica)
        applied, read = self._read_log(0.0), self._read_pages(0.0)
        written = self._write(stop, behind=applied == self._settings.log_records)
        if not applied and not read and not written:
            self._wait()
        self._look_after_state()
        return written

    def _wait(self) -> None:
        """Nothing to do: wait for the log where pages wait for it, for pages otherwise."""
        if self._contents.records:
            self._read_log(_PAUSE_S)
        else:
            self._read_pages(_PAUSE_S)

    def _read_log(self, timeout_s: float) -> int:
        """Apply what the log has, unless too many outcomes wait and some of them can be written."""
        if len(self._outcomes) >= self._settings.held_outcomes and self._contents.ready(self._outcomes, 1, 1):
            return 0
        with self._parts.timed("read_log"):
            records = self._log.poll(timeout_s, self._settings.log_records)
        with self._parts.timed("decide"):
            read = [(record.offset, decode(record.value or b"")) for record in records]
            outcomes = [outcome for outcome in self._replica.apply_many(read) if outcome is not None]
            for outcome in outcomes:
                self._outcomes.add(outcome)
        if records:
            self._tail = tail_of(records[-1].value)
            self._tell_of_log(outcomes)
        return len(records)

    def _read_pages(self, timeout_s: float) -> int:
        """Queue pages of our partitions; while too much is queued, only stay in the group."""
        assigned = self._reader.assigned
        if self._contents.full:
            self._reader.pause(assigned - self._reader.paused)
        elif self._reader.paused:
            self._reader.resume(self._reader.paused & assigned)
        with self._parts.timed("read_pages"):
            records = self._reader.poll(timeout_s, self._settings.batch_records)
        self._contents.put(records)
        return len(records)

    def _write(self, stop: threading.Event, *, behind: bool) -> int:
        """Write the outputs of all pages whose outcome is known, in one transaction; return how many pages.

        behind: the log has more to read, so that a larger transaction is worth waiting for; otherwise one waits as long
        as the one before took, since it costs some 10 ms of processor time, however small.
        """
        ready = self._contents.ready(self._outcomes, self._settings.batch_records, self._settings.batch_bytes)
        linger_s = _LINGER_S if behind else self._linger_s
        early = time.monotonic() < self._written_at + linger_s and len(ready) < self._settings.batch_records
        if not ready or early:
            return 0
        with self._parts.timed("outputs"):
            messages = [message for record, outcome in ready for message in outputs_of(self._topics, record, outcome)]
            messages += self._stats()
        offsets = {TopicPartition(record.topic, record.partition): record.offset + 1 for record, _ in ready}
        began = time.monotonic()
        try:
            with self._parts.timed("commit"):
                self._transactions.commit(messages, offsets, self._reader.group_metadata())
        except TransactionLostError as error:
            self._lose(error, stop)
            return 0
        self._failures, self._written_at = 0, time.monotonic()
        self._linger_s = min(_SHORT_LINGER_S, self._written_at - began)
        self._contents.done(ready)
        for record, _ in ready:
            self._outcomes.forget(record.topic, record.partition, record.offset)
        self._tell(ready)
        return len(ready)

    def _stats(self) -> Iterator[Message]:
        """Yield the stats record that is due: the owner of partition 0 speaks for all."""
        first = TopicPartition(self._topics.pages, 0)
        if time.monotonic() < self._stats_at or first not in self._reader.assigned:
            return
        self._stats_at = time.monotonic() + _STATS_S
        value = stats_value(self._replica, self._local.instance, self._lag())
        yield Message(self._topics.stats, value, STATS_KEY, stats_headers(self._replica.sequence, self._topics.stats))

    def _lose(self, error: TransactionLostError, stop: threading.Event) -> None:
        """Count everything in hand as not read, wait a little, and read on from the committed offsets.

        Also where `stop` ends the pause: the transaction may have been committed, and a drain must not write it again.
        """
        self._failures += 1
        self._observer.problem(ProblemEvent("decide", "transaction_lost", str(error)))
        pause_after(self._failures, stop)
        self._assigned(self._reader.rewind())

    def _assigned(self, positions: Mapping[TopicPartition, int]) -> None:
        """Begin with partitions at their committed positions; nothing known to be written is written again."""
        for at, position in positions.items():
            self._outcomes.written_below(at.topic, at.partition, position)
            self._contents.begin(at.partition, self._outcomes.written.get((at.topic, at.partition), 0))

    def _revoked(self, partitions: frozenset[TopicPartition]) -> None:
        for at in partitions:
            self._contents.end(at.partition)

    def _look_after_state(self) -> None:
        """Now and then: forget outcomes that other processes wrote; take a snapshot where one is due."""
        if time.monotonic() >= self._refresh_at:
            self._refresh_at = time.monotonic() + _REFRESH_S
            self._forget_others()
            self._tell_of_index()
        if self._local.snapshot_due(self._replica.sequence, len(self._replica)):
            self._take_snapshot()

    def _take_snapshot(self) -> None:
        with self._parts.timed("snapshot"):
            self._local.take_snapshot(self._replica, self._outcomes, self._tail)

    def _forget_others(self) -> None:
        others = {TopicPartition(*key) for key in self._outcomes.partitions} - self._reader.assigned
        try:
            for at, offset in self._reader.committed(others).items() if others else ():
                self._outcomes.written_below(at.topic, at.partition, offset)
        except BrokerError as error:  # what waits too long costs memory, and is asked about again
            if not error.retryable:
                raise
            self._observer.problem(ProblemEvent("decide", "offsets_unknown", str(error)))

    def _close(self) -> None:
        self._reader.close()
        self._transactions.close()
        self._log.close()

    def _tell_of_log(self, outcomes: Sequence[Outcome]) -> None:
        """Tell of every page that the log brought, whoever writes its outputs."""
        decided = [PageDecided(at.verdict, at.title, at.original) for at in outcomes if at.verdict is not None]
        self._observer.decided(decided)
        for kind, url in self._replica.take_removals():
            self._observer.removed(RemovalEvent(kind, url))

    def _tell_of_index(self) -> None:
        sizes = self._replica.sizes()
        if sizes is not None:
            self._observer.index(IndexEvent(entries=len(self._replica), channels=sizes.channels, keys=sizes.keys))

    def _tell(self, ready: list[Ready]) -> None:
        kinds = Counter(outcome.kind for _, outcome in ready)
        rejected = kinds.pop(None, 0)
        self._observer.batch(
            BatchEvent(
                step="decide",
                records=len(ready),
                seconds=self._parts.take(),
                verdicts={kind: count for kind, count in kinds.items() if kind is not None},
                rejected=rejected,
                repeated=self._contents.repeated,
                sequence=self._replica.sequence,
                entries=len(self._replica),
                lag=self._lag(),
            )
        )
        self._contents.repeated = 0

    def _lag(self) -> dict[str, int]:
        return {f"{at.topic}-{at.partition}": lag for at, lag in self._reader.lag().items()}
