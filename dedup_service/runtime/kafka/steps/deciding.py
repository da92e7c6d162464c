"""The deciding step: the log in order → outcomes → outputs, each written once.

Every process reads the whole log, read-committed, and applies it to its replica, so each process knows all
outcomes. The partitions of `pages` are divided among the group `<group>.decide`; a process joins it once it has
decided the log to near its end, so that none holds partitions that it cannot work on. The owner of a partition
reads its pages, joins each with its outcome, and writes the outputs in order of offset, in transactions that
commit these offsets twice: for the group, which fences, and in `dedup.offsets`, which says where to continue. While
one is being committed, in a thread, the step reads and decides on; there is never more than one. If a transaction may
be lost, everything in flight is dropped and read again from there.

Outputs (`steps.outputs`). A page: its verdict, and, unless the action drops it, the page itself. A rejected
record: a dead letter. Where verdicts alone are written (`OutputMode.VERDICTS`), outcomes are not joined with pages:
`pages` is read only where an output has a record's bytes, or the log does not say what an offset is
(`steps.needed_pages`).

A page that is in the log and cannot be passed on, because retention deleted it or a topic refuses its size,
becomes a dead letter that says so. If a store should have had it, the same transaction appends its sequence to
the log (`UnwrittenRecord`): every replica removes the entry, and the next copy is kept.

Pages of files (`twinsieve backfill`) are in the log alone; `steps.backfilled` says what is written about them.

Invariants: the outputs of a record are written only by the owner of its partition, in the transaction that
commits its offset (docs/adr/0012 walks through every crash point). No more than `MAX_PENDING_OUTCOMES` are
pending. One thread uses the consumers and the producer.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace

from dedup_service.core.decision.replica import Outcome, Replica
from dedup_service.core.errors import TwinsieveError
from dedup_service.core.log_records import (
    PolicyRecord,
    RejectedRecord,
    Source,
    UnreadableRecord,
    UnwrittenRecord,
    offset_of,
)
from dedup_service.core.record_columns import LogPart, RecordColumns
from dedup_service.runtime.events import (
    BatchEvent,
    IndexEvent,
    Observer,
    PageDecided,
    ProblemEvent,
    RemovalEvent,
    faults_in,
)
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord, TopicPartition
from dedup_service.runtime.kafka.client.errors import (
    BrokerError,
    RecordTooLargeError,
    TransactionLostError,
    UnreachableError,
)
from dedup_service.runtime.kafka.client.group_consumer import GroupConsumer
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.client.retry import pause_after
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.messages.headers import STATS_KEY, stats_headers
from dedup_service.runtime.kafka.messages.log_record import log_message, log_parts, records_in
from dedup_service.runtime.kafka.messages.verdict import read_verdict, stats_value
from dedup_service.runtime.kafka.shards.sharded_log import ShardedLog
from dedup_service.runtime.kafka.state.deciding_store import tail_of
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.pending_outcomes import BACKFILLED
from dedup_service.runtime.kafka.state.restore import RestoredReplica
from dedup_service.runtime.kafka.state.step_offsets import BACKFILL_DECIDED, DECIDE, FINGERPRINT, StepOffsets
from dedup_service.runtime.kafka.status import StepStatus, StepTimings
from dedup_service.runtime.kafka.steps.backfilled import BackfilledPages
from dedup_service.runtime.kafka.steps.background_commit import BackgroundCommit
from dedup_service.runtime.kafka.steps.idle_offsets import IdleOffsets
from dedup_service.runtime.kafka.steps.needed_pages import NeededPages
from dedup_service.runtime.kafka.steps.outputs import STORED_KINDS, Form, lost_output, outputs_of, verdict_output
from dedup_service.runtime.kafka.steps.page_buffer import PASSED_OVER, PageBuffer, Ready
from dedup_service.runtime.kafka.steps.replica_queries import ReplicaQueries
from dedup_service.runtime.kafka.topics import OutputMode, Topics
from dedup_service.runtime.memory_limit import MemoryLimitError, ProcessMemoryLimit

_FETCH_MAX_WAIT_S = 0.06
"""How long a broker may wait for a full fetch of `pages`. It delays no page: the outcome takes longer."""

_PAUSE_S = 0.05  # the longest that an idle turn waits for either topic
_READ_PAUSE_S = 0.005  # that an idle turn waits for pages that it needs: a marker does not end the consumer's wait
_COMMIT_PAUSE_S = 0.01  # that an idle turn waits for a transaction before it looks for more to read
_LINGER_S = 0.25
_SHORT_LINGER_S = 0.1
_LINGER_SHARE = 0.3  # of the time of a transaction; the step decides meanwhile
_NEAR_MESSAGES = 64  # before the end of the log at which a process joins: a second's work at most
_REVOKE_S = 60.0  # a transaction ends, committed or given up, long before
_REFRESH_S = 5.0
_STATS_S = 1.0
_MAX_LOST = 10_000
"""Pages of one record: some 100 KB."""


_BATCH_RECORDS, _BATCH_BYTES = 500, 8 << 20
"""Of a transaction, without the verdicts on pages of files, which are as many records at most."""

_LOG_MESSAGES, _SHARDED_MESSAGES = 2, 8
"""Read between two transactions: each has the records of one append, or a part of them. The latter with shards."""

_BUFFER_RECORDS, _BUFFER_BYTES = 2_000, 32 << 20
"""Pages that wait for their outcomes."""

MAX_PENDING_OUTCOMES = 100_000
"""Outcomes that wait for their pages, here or in the process that has their partition; from this number on the log is
not read. Each page of ours can be read whatever the others wait for, so ours get fewer; those of other processes do
with their next transactions."""


class DecideStep:
    """The deciding step; runs in one thread.

    restored: the state to start from. log: the consumer that restored it, at its position. offsets: how far the
    step is; the step closes it. topic_id: identity of `pages`. lag: returns the step's lag by partition ("pages-0"),
    as last measured, for its events and stats. check: raises if the replica, at the end of the log, is not one that
    this process may continue. memory: limit on the memory of this process. outputs: what is written for a page.
    sharded: the log with the answers of all shards, if the entries are there; the step closes it. queries: from other
    threads. retracted: returns which pages the bases of the log have retracted since.
    """

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        group: str,
        local: LocalState,
        restored: RestoredReplica,
        log: LogConsumer,
        producer: TransactionalProducer,
        observer: Observer,
        *,
        offsets: StepOffsets,
        topic_id: str | None,
        lag: Callable[[], Mapping[str, int]] = dict,
        check: Callable[[Replica], None] | None = None,
        memory: ProcessMemoryLimit | None = None,
        outputs: OutputMode = OutputMode.PAGES,
        sharded: ShardedLog | None = None,
        session_timeout_s: float = 6.0,
        retracted: Callable[[], AbstractSet[int]] = frozenset,
    ) -> None:
        self._sharded = sharded
        self._check: Callable[[Replica], None] | None = check
        self._check_at = self._joins_at = restored.end
        self._joined = sharded is None  # the restore has read the log to its end, or as far as it can be without pages
        self._memory = memory
        self._new_policy: PolicyRecord | None = None
        self._retracted, self._lost_of_bases = retracted, frozenset[int]()
        self._loss_of_bases: UnwrittenRecord | None = None
        self._offsets = offsets
        self._topics = topics
        self._local = local
        self._replica = restored.replica
        self._replica.take_removals()  # they happened before this start
        self._expired = self._replica.expired
        self._pending_outcomes = restored.pending_outcomes
        self._tail = restored.tail
        self._log = log
        self._producer = producer
        self._observer = observer
        all_pages = outputs is OutputMode.PAGES
        limits = _BUFFER_RECORDS, _BUFFER_BYTES
        self._page_buffer = PageBuffer(topics.pages, *limits) if all_pages else NeededPages(topics.pages, *limits)
        self._backfilled = BackfilledPages(restored.replica)
        self._first = TopicPartition(topics.pages, 0)
        self._logged: dict[TopicPartition, int] = {}
        self._logged_end = 0
        self._idle_offsets = IdleOffsets()
        self._consumer = GroupConsumer(
            connection,
            topics.pages,
            f"{group}.decide",
            local.instance,
            on_revoked=self._revoked,
            on_assigned=self._assigned,
            positions=self._positions,
            on_expired=lambda partition, _start, end: self._page_buffer.skip(partition.partition, end),
            topic_id=topic_id,
            session_timeout_s=session_timeout_s,
            fetch_max_wait_s=_FETCH_MAX_WAIT_S if all_pages else 0.0,
            on_demand=not all_pages,
        )
        self._lag = lag
        self._status_parts: tuple[tuple[int, ...], int, int] = ((), 0, 0)
        self._timings = StepTimings()
        self._failures = 0
        self._commit = BackgroundCommit()
        self._in_flight: _InFlight | None = None
        self._forms: dict[Source, tuple[Form, str]] = {}
        self._written_below: dict[TopicPartition, int] = {}
        self._written_at = self._linger_s = 0.0
        self._refresh_at = self._stats_at = time.monotonic()
        self.ticked_at = time.monotonic()
        self.queries = ReplicaQueries()

    @property
    def status(self) -> StepStatus:
        """Return the status of the step, as of its last turn; may be called from any thread."""
        assigned, pages, size_bytes = self._status_parts
        waits_for, waits_s = ("", 0.0) if self._sharded is None else self._sharded.waits
        if not (self._joined or waits_for):
            waits_for = f"joins when it has decided the log, and is at {self._position:,} of {self._joins_at:,}"
        return StepStatus(
            step="decide",
            ticked_at=self.ticked_at,
            assigned=assigned,
            buffered_pages=pages,
            buffered_bytes=size_bytes,
            waiting_outcomes=len(self._pending_outcomes),
            waiting_outcomes_limit=MAX_PENDING_OUTCOMES,
            waits_for=waits_for,
            waits_s=waits_s,
        )

    def run(self, stop: threading.Event, drain_until: Callable[[], float] = time.monotonic) -> None:
        """Run the step's loop until `stop` is set; then write all up to the end of the log, until `drain_until()`.

        That is a time of the monotonic clock, asked for after `stop`. Raises what ends the step; whatever was not
        committed is done again after the next start.
        """
        try:
            with self._local.pages.in_use():
                self._producer.open(stop)
                while not stop.is_set():
                    self.turn(stop)
                self._drain(drain_until())
                self._take_snapshot()
        finally:
            self._close()

    def _drain(self, deadline: float) -> None:
        if time.monotonic() >= deadline or not self._joined:
            return
        try:
            end = self._log.end()
        except BrokerError as error:
            self._observer.problem(ProblemEvent("decide", "not_drained", str(error)))
            return
        while time.monotonic() < deadline and (self._position < end or self._has_own_pending()):
            self.turn(threading.Event())

    def _has_own_pending(self) -> bool:
        """Whether outcomes of our own partitions are pending."""
        mine = self._consumer.assigned
        pending = self._pending_outcomes.partitions
        return any((self._first if key == BACKFILLED else TopicPartition(*key)) in mine for key in pending)

    def turn(self, stop: threading.Event) -> int:
        """Read, decide, write, maintain the state; return the number of records written.

        stop: cuts the pause after a failure short.
        """
        self.ticked_at = time.monotonic()
        self.queries.answer(self._replica)
        applied, read = self._read_log(0.0), self._read_pages(0.0)
        self._note_status()
        written = self._write(stop, behind=applied >= _BATCH_RECORDS)
        if not applied and not read and not written:
            self._wait()
        self._maintain_state()
        return written

    def _note_status(self) -> None:
        """Keep what `status` returns: other threads must not look into what this one changes."""
        assigned = tuple(sorted(assigned.partition for assigned in self._consumer.assigned))
        self._status_parts = (assigned, self._page_buffer.records, self._page_buffer.size_bytes)

    def _keep_memory(self, records: int) -> None:
        """Bound the kept pages if memory is used up, with the next transaction. records: that were applied.

        MemoryLimitError if the log keeps all pages; a snapshot has what was decided.
        """
        policy = self._replica.policy
        if self._memory is None or policy is None or self._local.pages.is_writing():
            return
        try:
            lower = self._memory.step(records, len(self._replica), policy.keep, self._held_bytes)
        except MemoryLimitError:
            self._take_snapshot()
            raise
        if lower is not None:
            new = replace(policy, keep=lower, lowered=policy.lowered or policy.keep)
            self._new_policy = PolicyRecord(new, replaces=self._replica.policy_sequence)
            self._observer.problem(ProblemEvent("decide", "memory_limit", self._memory.bounded(lower)))

    def _held_bytes(self) -> int:
        sizes = self._replica.sizes()
        return 0 if sizes is None else sum(sizes.memory.values())

    def _wait(self) -> None:
        """Wait for the transaction in flight, for the log if pages wait for their outcomes, or for pages."""
        buffer = self._page_buffer
        if not self._joined:
            self._read_log(_PAUSE_S)
        elif self._in_flight is not None:
            self._commit.done(_COMMIT_PAUSE_S)
        elif isinstance(buffer, NeededPages) and buffer.reading:
            self._read_pages(_READ_PAUSE_S)
        elif buffer.records or (isinstance(buffer, NeededPages) and self._room > 0):
            self._read_log(_PAUSE_S)
        else:
            self._read_pages(_PAUSE_S)

    @property
    def _room(self) -> int:
        """How many more outcomes may be pending."""
        return MAX_PENDING_OUTCOMES - len(self._pending_outcomes)

    @property
    def _position(self) -> int:
        """Offset of the first message of the log that was not applied."""
        return self._log.position if self._sharded is None else self._sharded.position

    def _decided_messages(self, timeout_s: float) -> tuple[list[ConsumerRecord], list[LogPart], list[Outcome]]:
        """Read and apply the next messages of the log; return them with their parts and outcomes."""
        sharded = self._sharded
        with self._timings.timed("read_log"):
            if sharded is None:
                messages = self._log.poll(timeout_s, _LOG_MESSAGES)
            else:
                messages = sharded.poll(timeout_s, _SHARDED_MESSAGES)
        parts: list[LogPart] = []
        outcomes: list[Outcome] = []
        with self._timings.timed("decide"):
            if sharded is None:
                parts = log_parts(messages)
                outcomes = self._replica.apply_parts(parts)
            else:
                for message in messages:
                    of_message, decided = sharded.apply(self._replica, message)
                    parts += of_message
                    outcomes += decided
        if sharded is not None:
            with self._timings.timed("outcomes"):
                sharded.flush()
        return messages, parts, outcomes

    def _read_log(self, timeout_s: float) -> int:
        """Apply new records of the log, unless too many outcomes are pending."""
        if self._room <= 0:
            self._learn_of_others()
            return 0
        messages, parts, outcomes = self._decided_messages(timeout_s)
        records = records_in(parts)
        with self._timings.timed("decide"):
            for outcome in outcomes:
                self._pending_outcomes.add(outcome)
        if messages:
            self._backfilled.applied(parts)
            self._tail = tail_of(messages[-1].value)
            self._report_decided(outcomes)
            self._report_unreadable(parts)
            self._keep_memory(records)
            self._local.pages.note_applied(records)
        if self._check is not None and self._position >= self._check_at:
            self._check(self._replica)
            self._check = None
        return records

    def _read_pages(self, timeout_s: float) -> int:
        """Queue pages that outputs need, of partitions that have room; the poll also keeps us in the group."""
        if not (self._joined or self._joins()):
            return 0
        buffer = self._page_buffer
        if isinstance(buffer, NeededPages):
            wanted = buffer.wanted(self._pending_outcomes)
            self._consumer.read_only({TopicPartition(self._topics.pages, at): part for at, part in wanted.items()})
        else:
            self._pause_full(buffer)
        with self._timings.timed("read_pages"):
            records = self._consumer.poll(timeout_s, _BATCH_RECORDS)
        if isinstance(buffer, NeededPages):
            reached = {at.partition: offset for at, offset in self._consumer.positions.items()}
            buffer.put(records, reached, self._pending_outcomes)
        else:
            buffer.put(records)
        return len(records)

    def _joins(self) -> bool:
        """Whether the log is decided to near its end, or as far as it can be without pages; from then on we are in."""
        if self._room <= 0:
            self._learn_of_others()
            self._joined = self._room <= 0
        elif self._position >= self._joins_at:
            with suppress(UnreachableError):  # the next turn asks again
                self._joins_at = self._log.end(0.0)
                self._joined = self._position >= self._joins_at - _NEAR_MESSAGES
        return self._joined

    def _pause_full(self, buffer: PageBuffer) -> None:
        assigned, paused = self._consumer.assigned, self._consumer.paused
        numbers = buffer.full([partition.partition for partition in assigned])
        full = {partition for partition in assigned if partition.partition in numbers}
        self._consumer.pause(full - paused)
        self._consumer.resume((paused - full) & assigned)

    def _write(self, stop: threading.Event, *, behind: bool) -> int:
        """Begin to write the outputs of all pages with a known outcome, in one transaction.

        Meanwhile the step reads and decides. Return how many records the transaction had that has ended, 0 if none
        has. behind: the log has more to read, so a larger transaction is worth a longer wait. Otherwise the step
        waits a part of the time that the previous transaction took: one costs about 10 ms of processor time, however
        small.
        """
        if self._in_flight is not None:
            return self._finish(stop) if self._commit.done() else 0
        ready = self._page_buffer.ready(self._pending_outcomes, _BATCH_RECORDS, _BATCH_BYTES)
        linger_s = _LINGER_S if behind else self._linger_s
        early = time.monotonic() < self._written_at + linger_s and len(ready) < _BATCH_RECORDS
        if early:
            return 0
        backfilled, decided_below = self._of_files()
        passed = self._passed(due=bool(ready or decided_below))
        loss = self._loss_of_bases
        if not (ready or passed or self._new_policy or loss) and decided_below is None:
            return 0
        with self._timings.timed("outputs"):
            batch = _Batch(self._topics, ready, self._forms, backfilled)
            offsets = {**passed, **batch.offsets}
            own = [record for record in (self._new_policy, loss) if record is not None]
            own_records = [log_message(self._topics.fingerprints, record) for record in own]
            messages = [*batch.messages, *own_records, *self._stats(), *self._offsets.messages(DECIDE, offsets)]
            if decided_below is not None:
                messages += self._offsets.messages(BACKFILL_DECIDED, {TopicPartition(*BACKFILLED): decided_below})
                offsets.setdefault(self._first, self._idle_offsets.at(self._first))  # it fences
        self._in_flight = _InFlight(batch, ready, offsets, self._new_policy, time.monotonic(), decided_below, loss)
        group = self._consumer.group_metadata()
        self._commit.start(lambda: self._producer.commit(messages, offsets, group))
        return 0

    def _of_files(self) -> tuple[list[Ready], int | None]:
        """Return the verdicts on pages of files to write now, and the sequence below which all is written then.

        Nothing if another process has partition 0, or that is known already.
        """
        if self._first not in self._consumer.assigned:
            return [], None
        ready = self._backfilled.ready(self._pending_outcomes, _BATCH_RECORDS)
        return ready, self._backfilled.decided_below(ready, self._pending_outcomes)

    def _finish(self, stop: threading.Event) -> int:
        """Wait for the end of the transaction that was begun; return how many records it had, 0 if it was lost."""
        in_flight, self._in_flight = self._in_flight, None
        assert in_flight is not None
        try:
            self._commit.result()
        except TransactionLostError as error:
            self._rewind_after(error, stop)
            return 0
        except RecordTooLargeError as error:
            self._refuse(in_flight.batch, error)
            return 0
        ready = in_flight.ready
        self._failures, self._written_at = 0, time.monotonic()
        if self._new_policy is in_flight.policy:
            self._new_policy = None
        if self._loss_of_bases is in_flight.loss:
            self._loss_of_bases = None
        took_s = self._written_at - in_flight.began
        self._linger_s = min(_SHORT_LINGER_S, _LINGER_SHARE * took_s)
        self._timings.add("commit", took_s)
        self._idle_offsets.committed(in_flight.offsets)
        self._page_buffer.done(ready)
        for item in ready:
            self._pending_outcomes.forget(item.source, item.end)
        if in_flight.decided_below is not None:
            self._pending_outcomes.written_below(*BACKFILLED, in_flight.decided_below)
        self._forms.clear()
        self._report_losses(in_flight.batch)
        written = [*ready, *in_flight.batch.backfilled]
        if written:
            self._report_batch(written)
        return len(written)

    def _passed(self, *, due: bool) -> dict[TopicPartition, int]:
        """Return where partitions without anything to write are, if they have passed what is no record.

        due: do not wait until nothing was committed for a while.
        """
        if not (due or self._idle_offsets.due):
            return {}
        buffer = self._page_buffer
        if isinstance(buffer, NeededPages):
            passed = buffer.passed(self._pending_outcomes)
            return self._idle_offsets.moved({TopicPartition(self._topics.pages, at): end for at, end in passed.items()})
        positions = self._consumer.positions
        return self._idle_offsets.moved({at: end for at, end in positions.items() if buffer.is_done(at.partition)})

    def _refuse(self, batch: "_Batch", error: RecordTooLargeError) -> None:
        """Write a record in a smaller form from now on: a topic has refused its outputs."""
        item = batch.owner_of(error.position)
        form, _ = (Form.BARE, "") if item is None else self._forms.get(item.source, (Form.PAGE, ""))
        smaller = None if item is None else form.smaller(item.outcome)
        if item is None or smaller is None:
            raise error
        self._forms[item.source] = (smaller, str(error))

    def _stats(self) -> Iterator[Message]:
        """Yield a stats record if one is due; the owner of partition 0 writes it for all processes."""
        if time.monotonic() < self._stats_at or self._first not in self._consumer.assigned:
            return
        self._stats_at = time.monotonic() + _STATS_S
        value = stats_value(self._replica, self._local.instance, self._lag())
        yield Message(self._topics.stats, value, STATS_KEY, stats_headers(self._replica.sequence, self._topics.stats))

    def _rewind_after(self, error: TransactionLostError, stop: threading.Event) -> None:
        """Drop everything in flight, pause, and continue from the committed offsets.

        It rewinds even if `stop` ends the pause: the transaction may have been committed, and a drain must
        not write it again.
        """
        self._failures += 1
        self._observer.problem(ProblemEvent("decide", "transaction_lost", str(error)))
        pause_after(self._failures, stop)
        self._assigned(self._consumer.rewind())

    def _positions(self, committed: Mapping[TopicPartition, int | None]) -> Mapping[TopicPartition, int | None]:
        positions = self._offsets.positions(DECIDE, committed)
        self._written_below |= {partition: position or 0 for partition, position in positions.items()}
        return positions

    def _assigned(self, positions: Mapping[TopicPartition, int]) -> None:
        """Start partitions at their positions; skip outputs that are known to be written.

        Where nothing was written yet, the first position is where the partition begins now: outcomes below it have
        lost their pages.
        """
        self._idle_offsets.begin(positions)
        for (topic, partition), position in positions.items():
            written = self._written_below.get(TopicPartition(topic, partition), position)
            self._pending_outcomes.written_below(topic, partition, written)
            self._page_buffer.begin(partition, self._pending_outcomes.written.get((topic, partition), 0))
            self._page_buffer.skip(partition, position)
        if self._first in positions:
            self._learn_of_backfills()

    def _revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Give partitions up, after the end of the transaction in flight: the next owner begins where it ended."""
        if self._in_flight is not None:
            self._commit.done(_REVOKE_S)
        self._idle_offsets.end(partitions)
        for revoked in partitions:
            self._page_buffer.end(revoked.partition)

    def _maintain_state(self) -> None:
        """From time to time, forget outcomes that other processes wrote; take a snapshot if one is due.

        Raises StoreFullError if the disk does not take the state: the next start continues from the last snapshot.
        """
        if time.monotonic() >= self._refresh_at:
            self._refresh_at = time.monotonic() + _REFRESH_S
            self._learn_of_others()
            self._learn_what_is_logged()
            self._learn_what_bases_lost()
            self._report_index()
        if self._logged and self._position >= self._logged_end:
            self._note_logged()
        self._local.step()
        if self._local.pages.due:
            self._take_snapshot()

    def _take_snapshot(self) -> None:
        outcomes, nameless_to = self._pending_outcomes, None
        if self._sharded is not None:
            if not self._sharded.flush():  # a shard would wait for an outcome that no one writes again
                return
            outcomes = self._pending_outcomes.copy()
            for partition, offset in self._sharded.answers.positions().items():
                outcomes.written[self._topics.candidates, partition] = offset
            nameless_to = self._sharded.nameless_to
        with self._timings.timed("snapshot"):
            self._local.take_snapshot(self._replica, outcomes, self._tail, nameless_to=nameless_to)

    def _learn_of_others(self) -> None:
        """Forget the outcomes that other processes have written."""
        mine = self._consumer.assigned
        try:
            self._offsets.poll()
        except BrokerError as error:  # outcomes that stay too long only cost memory; the next refresh asks again
            if not error.retryable:
                raise
            self._observer.problem(ProblemEvent("decide", "offsets_unknown", str(error)))
        for partition, offset in self._offsets.of(DECIDE).items():
            if partition not in mine:
                self._pending_outcomes.written_below(partition.topic, partition.partition, offset)
        if self._first not in mine:
            self._learn_of_backfills()

    def _learn_of_backfills(self) -> None:
        """Forget the outcomes of pages of files that are known to be written."""
        for place, sequence in self._offsets.of(BACKFILL_DECIDED).items():
            self._pending_outcomes.written_below(place.topic, place.partition, sequence)

    def _learn_what_is_logged(self) -> None:
        """Ask for the end of the log once all records of our partitions are in it up to where fingerprinting is."""
        if isinstance(self._page_buffer, PageBuffer) or self._logged:
            return
        offsets, mine = self._offsets.of(FINGERPRINT), self._consumer.assigned
        try:
            self._logged_end = self._log.end(0.0)
        except BrokerError as error:  # an offset before markers only looks as if it stood still
            if not error.retryable:
                raise
            return
        self._logged = {partition: offset for partition, offset in offsets.items() if partition in mine}

    def _learn_what_bases_lost(self) -> None:
        """Let the log say which pages its bases have retracted: every replica removes them at the same place."""
        lost = sorted(self._retracted() - self._lost_of_bases)[:_MAX_LOST]
        if self._loss_of_bases is None and lost:
            self._lost_of_bases |= set(lost)
            self._loss_of_bases = UnwrittenRecord(tuple(lost), "retracted in a base")

    def _note_logged(self) -> None:
        """Let the step's offsets pass what has no outcome by now, up to where fingerprinting was."""
        if isinstance(self._page_buffer, NeededPages):
            for partition, offset in self._logged.items():
                self._page_buffer.note_logged(partition.partition, offset)
        self._logged = {}

    def _close(self) -> None:
        if self._in_flight is not None:
            with suppress(TwinsieveError):  # whatever was not committed is done again after the next start
                self._commit.result()
        self._consumer.close()
        self._producer.close()
        self._offsets.close()
        self._log.close()
        if self._sharded is not None:
            self._sharded.close()

    def _report_decided(self, outcomes: Sequence[Outcome]) -> None:
        """Report every page that the log brought, whichever process writes its outputs."""
        decided = [
            PageDecided(outcome.verdict, outcome.title, outcome.original)
            for outcome in outcomes
            if outcome.verdict is not None
        ]
        self._observer.decided(decided)
        for fault in faults_in(page.verdict for page in decided):
            self._observer.problem(fault)
        for kind, url in self._replica.take_removals():
            self._observer.removed(RemovalEvent(kind, url))

    def _report_unreadable(self, parts: Sequence[LogPart]) -> None:
        singly = (part for part in parts if not isinstance(part, RecordColumns))
        for sequence, record in singly:
            if isinstance(record, UnreadableRecord):
                offset = offset_of(sequence) - self._log.first
                text = f"the message at {offset} of {self._topics.fingerprints} has no effect: {record.problem}"
                self._observer.problem(ProblemEvent("decide", "unreadable", text))

    def _report_losses(self, batch: "_Batch") -> None:
        for kind, items in batch.losses.items():
            first = items[0].source
            text = (
                f"{len(items)} pages of the log, from {first.topic}-{first.partition} offset {first.offset} on, were "
                f"not passed on and are dead letters: {_LOSSES[kind]}"
            )
            self._observer.problem(ProblemEvent("decide", kind, text, len(items)))

    def _report_index(self) -> None:
        sizes = self._replica.sizes()
        if sizes is not None:
            self._observer.index(
                IndexEvent(entries=len(self._replica), channels=sizes.channels, cells=sizes.cells, memory=sizes.memory)
            )

    def _report_batch(self, ready: list[Ready]) -> None:
        kinds = Counter(None if item.is_lost else item.outcome.kind for item in ready)
        rejected = kinds.pop(None, 0)
        before, self._expired = self._expired, self._replica.expired
        self._observer.batch(
            BatchEvent(
                step="decide",
                records=len(ready),
                seconds=self._timings.take(),
                verdicts={kind: count for kind, count in kinds.items() if kind is not None},
                rejected=rejected,
                repeated=self._page_buffer.repeated,
                sequence=self._replica.sequence,
                entries=len(self._replica),
                expired={reason: count - before.get(reason, 0) for reason, count in self._expired.items()},
                lag=self._lag(),
            )
        )
        self._page_buffer.repeated = 0


@dataclass(frozen=True, slots=True)
class _InFlight:
    """A transaction that was begun and has not ended.

    policy: a new one that it has for the log. began: monotonic seconds. decided_below: the sequence that it names for
    pages of files, if it does. loss: what it has for the log of pages that bases have retracted.
    """

    batch: "_Batch"
    ready: list[Ready]
    offsets: Mapping[TopicPartition, int]
    policy: PolicyRecord | None
    began: float
    decided_below: int | None = None
    loss: UnwrittenRecord | None = None


class _Batch:
    """The messages of one transaction, and what each is about.

    ready: what to write. forms: the form and the reason for records whose outputs a topic has refused.
    losses: pages that are not passed on, by kind. backfilled: verdicts to write on pages of files.
    """

    def __init__(
        self,
        topics: Topics,
        ready: Sequence[Ready],
        forms: Mapping[Source, tuple[Form, str]],
        backfilled: Sequence[Ready] = (),
    ) -> None:
        self.backfilled = backfilled
        self.offsets = {TopicPartition(item.source.topic, item.source.partition): item.end for item in ready}
        self.messages: list[Message] = []
        self.losses: dict[str, list[Ready]] = {}
        self._owners: list[Ready] = []
        for item in ready:
            form, reason = forms.get(item.source, (Form.PAGE, ""))
            outputs = _outputs(topics, item, form, reason)
            self.messages += outputs
            self._owners += [item] * len(outputs)
            if (loss := _loss(topics, item, outputs)) is not None:
                self.losses.setdefault(loss, []).append(item)
        for item in backfilled:  # they are in files: nothing is lost with a verdict that a topic refuses
            outputs = _outputs(topics, item, *forms.get(item.source, (Form.PAGE, "")))
            self.messages += outputs
            self._owners += [item] * len(outputs)
        self.messages += self._log_records(topics)

    def owner_of(self, position: int) -> Ready | None:
        """Return what a message is about, None if it is about several records."""
        return self._owners[position] if position < len(self._owners) else None

    def _log_records(self, topics: Topics) -> Iterator[Message]:
        """Yield what the log has to know: pages that no store got, and records that it will never have."""
        for kind in ("expired", "refused"):
            stored = [item for item in self.losses.get(kind, ()) if item.outcome.kind in STORED_KINDS]
            if stored:
                sequences = tuple(item.outcome.sequence for item in stored)
                yield log_message(topics.fingerprints, UnwrittenRecord(sequences, _LOSSES[kind]))
        for item in self.losses.get("passed_over", ()):
            yield log_message(topics.fingerprints, RejectedRecord(item.source, item.outcome.value.decode()))


_LOSSES = {
    "expired": "retention deleted them from `pages`; give it a longer one",
    "refused": "they are larger than an output topic takes",
    "passed_over": "the offset of the fingerprinting group was set past them",
}


def _outputs(topics: Topics, item: Ready, form: Form, reason: str) -> list[Message]:
    """Return the messages to write for an input record."""
    if not item.needs_page:
        of_file = (item.source.topic, item.source.partition) == BACKFILLED
        source = read_verdict(item.outcome.value)[1] if of_file else item.source
        return [verdict_output(topics, source, item.outcome, form, reason)]
    if item.record is None:
        return [lost_output(topics, item.source, item.outcome)]
    return list(outputs_of(topics, item.record, item.outcome, form, reason))


def _loss(topics: Topics, item: Ready, outputs: Sequence[Message]) -> str | None:
    """Return why a page is not passed on, None if it is, or need not be."""
    if item.outcome is PASSED_OVER:
        return "passed_over"
    if item.outcome.kind is None or all(message.topic != topics.dlq for message in outputs):
        return None
    return "expired" if item.is_lost else "refused"
