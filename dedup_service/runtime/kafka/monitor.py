"""Measure from outside how far the steps of the service are behind: by step and partition of `pages`.

A step that is stuck reports nothing, so its own figures would stop with it. `BacklogMonitor` therefore has a thread
and clients that no step uses. Every few seconds it reads how far each step is (`dedup.offsets`), where each partition
begins and ends, and the oldest record that each step has not done. It measures all partitions, whichever process has
them: a partition without an owner is seen too.

- The position of a step in a partition is that in `dedup.offsets`; where there is none, its group's; else where the
  partition began when it was first seen. It is read before the ends, so a lag is overstated rather than hidden.
- Lag counts offsets: from the first committed record at or after the position to the last stable offset. The markers
  of transactions in between count; where no record follows, nothing waits and the lag is 0.
- The age of the oldest record is counted from its timestamp, by the clock of this machine. A producer sets that
  timestamp (CreateTime): one in the future counts as no age, one in the past makes the record look older than it is.
  A record that this monitor has seen waiting is at least as old as that.
- Records in or behind an open transaction of a publisher cannot be read: they are no lag, since they may be aborted,
  but a step that has done all others stands still (`blocked`).
- If a step has stood still for half a minute, or the measurement itself fails, which reads `dedup.offsets`, the brokers
  are asked which transactions keep the topics from being read (`blocking_transactions`).
- `stalled_s` needs no timestamp: the time since the position was last seen to move, while records wait.

Invariants: while the brokers do not answer, the last measurement stays as it was and `measured_at` says how old it
is. Nothing that goes wrong here reaches the service.

Transactions that keep the service from reading its own topics: which, whose, and since when.

Readers of committed records stop at the first record of an open transaction. One of the service ends within its
timeout of 10 s, or is ended by the brokers; one that is open for longer hangs (`hanging_transactions`), or belongs to
a publisher that takes its time. Whichever it is, the steps stand still and see no reason.

How: the leaders of the partitions say which transactions are open, and the coordinators whose they are. The first
needs *Read* on the topics, which a service has; without *Describe* on a transactional id its name stays unknown.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from dedup_service.core.errors import TwinsieveError
from dedup_service.runtime.kafka.client.admin import administration, committed_offsets
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.client.errors import BrokerError, UnreachableError
from dedup_service.runtime.kafka.client.log_consumer import PartitionReader
from dedup_service.runtime.kafka.client.retry import ThrottledWarning
from dedup_service.runtime.kafka.state.step_offsets import DECIDE, FINGERPRINT, StepOffsets
from dedup_service.runtime.kafka.status import Backlog, BlockingTransaction, Member, PartitionBacklog
from dedup_service.runtime.kafka.topics import Topics

_UNKNOWN = "unknown"


def blocking_transactions(
    connection: Connection, topics: Topics, before_ms: int | None = None
) -> tuple[BlockingTransaction, ...]:
    """Return the transactions that are open on the topics that the steps read, the oldest first.

    before_ms: only those whose producers last wrote before, in Unix milliseconds. Raises BrokerError.
    """
    with administration(connection) as admin:
        read = admin.partitions_of([topics.pages, topics.fingerprints, topics.offsets])
        found = [one for one in admin.open_transactions(read) if before_ms is None or one.last_write_ms < before_ms]
        names = admin.transactions_of(one.producer_id for one in found)
    rows = []
    for one in found:
        name, state = names.get(one.producer_id, (_UNKNOWN, _UNKNOWN))
        rows.append(
            BlockingTransaction(
                topic=one.partition.topic,
                partition=one.partition.partition,
                offset=one.offset,
                since_ms=one.last_write_ms,
                producer_id=one.producer_id,
                transactional_id=name,
                state=state,
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.since_ms, row.topic, row.partition)))


_LOG = logging.getLogger(__name__)

_LONGEST_INTERVAL_S = 5.0
_SHORTEST_INTERVAL_S = 0.5
_MEASUREMENTS_TO_STALL = 10

_ANSWER_S = 15.0
_POLL_S = 0.1
_JOIN_S = 1.0
_ASK_GROUPS_S = 60.0
"""Time between two requests for the groups' offsets: each needs a new connection, and only a new partition asks."""

_OPEN_S = 30.0
"""Without a write for longer than any transaction of the service may last: then it is named."""

_ASK_TRANSACTIONS_S = 15.0

_ASK_MEMBERS_S = 30.0

_FETCH_BYTES = 64 << 10
"""One record of each partition is wanted; a broker sends a larger batch whole."""

Place = tuple[TopicPartition, int]


def watch_interval_s(stall_s: float) -> float:
    """Return how often to measure, so that a stall of `stall_s` is seen in time: at most every 5 s."""
    return min(_LONGEST_INTERVAL_S, max(_SHORTEST_INTERVAL_S, stall_s / _MEASUREMENTS_TO_STALL))


@dataclass(frozen=True, slots=True)
class _Oldest:
    """The first record at or after a position. offset: None if there was none up to `end`."""

    end: int
    offset: int | None
    timestamp_ms: int = -1


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Since when (monotonic seconds) records were seen to wait while a step is at `offset`."""

    offset: int
    since: float


class BacklogMonitor:
    """Measures the backlog of the service of `group` on `topics`, in a thread, every `interval_s`.

    clock: monotonic seconds. wall_clock: Unix seconds, compared with the timestamps of records.
    """

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        group: str,
        *,
        interval_s: float = _LONGEST_INTERVAL_S,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._connection = connection
        self._topics = topics
        self._groups = {FINGERPRINT: group, DECIDE: f"{group}.decide"}
        self._interval_s = interval_s
        self._clock, self._wall_clock = clock, wall_clock
        self._backlog = Backlog()
        self._make_clients()
        self._oldest: dict[Place, _Oldest] = {}
        self._waiting: dict[tuple[str, TopicPartition], _Waiting] = {}
        self._begun: dict[TopicPartition, int] = {}
        self._committed: dict[str, Mapping[TopicPartition, int]] = {}
        self._ask_groups_at = clock()
        self._warning = ThrottledWarning(_LOG, "the lag of the steps cannot be measured", after_s=30.0)
        self._open = ThrottledWarning(_LOG, "a topic cannot be read on", every_s=300.0)
        self._ask_transactions_at = self._ask_members_at = clock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def backlog(self) -> Backlog:
        """Return the last measurement; may be called from any thread."""
        return self._backlog

    def start(self) -> None:
        """Start to measure, once; further calls have no effect."""
        if self._thread is None:
            self._backlog = Backlog(measured_at=self._clock())
            self._thread = threading.Thread(target=self._run, name="twinsieve-monitor", daemon=True)
            self._thread.start()

    def close(self, timeout_s: float) -> None:
        """Stop measuring; wait for the thread for up to a second, and no longer than `timeout_s`.

        A request that is under way ends by itself, and with it the thread and its connections.
        """
        self._stop.set()
        if self._thread is not None:
            self._thread.join(min(_JOIN_S, timeout_s))

    def measure(self) -> Backlog:
        """Measure now, in this thread, which must be the only one to do so; return what `backlog` returns from now on.

        Raises BrokerError, LogChangedError, ConfigurationError.
        """
        partitions = self._pages.partitions_of(self._topics.pages)
        if not partitions:
            raise UnreachableError(f"the topic {self._topics.pages} is not there")
        self._offsets.catch_up(_ANSWER_S)
        ends = self._pages.ends(partitions)
        beginnings = {partition: self._pages.beginnings[partition] for partition in partitions}
        positions = {step: self._positions(step, beginnings, ends) for step in self._groups}
        watermarks = self._watermarks.ends(partitions)
        places = {
            (partition, max(offset, beginnings[partition]))
            for of_step in positions.values()
            for partition, offset in of_step.items()
        }
        self._oldest = self._oldest_at(places, ends)
        rows = [
            self._row(step, partition, offset, beginnings[partition], ends[partition], watermarks[partition])
            for step, of_step in positions.items()
            for partition, offset in sorted(of_step.items())
        ]
        is_stalled = any(row.stalled_s >= _OPEN_S for row in rows)
        known = self._backlog.transactions if is_stalled else ()
        members = self._members()
        self._backlog = Backlog(partitions=tuple(rows), measured_at=self._clock(), transactions=known, members=members)
        if is_stalled:
            self.look_for_transactions()
        else:
            self._open.over()
        return self._backlog

    def look_for_transactions(self) -> None:
        """Ask which transactions keep the topics from being read, unless that was asked 15 s ago; see `measure`."""
        if self._clock() < self._ask_transactions_at:
            return
        self._ask_transactions_at = self._clock() + _ASK_TRANSACTIONS_S
        try:
            before_ms = int(1000 * (self._wall_clock() - _OPEN_S))
            found = blocking_transactions(self._connection, self._topics, before_ms)
        except TwinsieveError as error:  # what was known stays
            _LOG.debug("open transactions are not known: %s", error)
            return
        self._backlog = replace(self._backlog, transactions=found)
        if found:
            self._open.about("; ".join(map(str, found)))
        else:
            self._open.over()

    def _members(self) -> tuple[Member, ...]:
        """Return which processes there are, as asked up to half a minute ago; as before if nobody says it."""
        if self._clock() < self._ask_members_at:
            return self._backlog.members
        self._ask_members_at = self._clock() + _ASK_MEMBERS_S
        try:
            with administration(self._connection) as admin:
                found = admin.members_of(list(self._groups.values()), self._topics.pages)
        except TwinsieveError as error:
            _LOG.debug("which processes there are is not known: %s", error)
            return self._backlog.members
        return tuple(Member(step, *one) for step, group in self._groups.items() for one in found.get(group, ()))

    def disconnect(self) -> None:
        """Close the connections; the next measurement opens new ones."""
        clients: tuple[PartitionReader | StepOffsets, ...] = self._pages, self._watermarks, self._offsets
        self._make_clients()
        for client in clients:
            client.close()

    def _make_clients(self) -> None:
        """Make clients, each of which connects on first use."""
        connection = self._connection
        self._pages = PartitionReader(connection, fetch_bytes=_FETCH_BYTES, timeout_s=_ANSWER_S)
        self._watermarks = PartitionReader(connection, fetch_bytes=_FETCH_BYTES, timeout_s=_ANSWER_S, committed=False)
        self._offsets = StepOffsets(connection, self._topics)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._try_to_measure()
            self._stop.wait(self._interval_s)
        self._guard(self.disconnect)

    def _try_to_measure(self) -> None:
        try:
            self.measure()
        except Exception as error:  # whatever it is, the service goes on, and the age of the last figures shows it
            text = str(error) if isinstance(error, TwinsieveError) else f"{type(error).__name__}: {error}"
            self._backlog = replace(self._backlog, problem=text)
            self._warning.about(text)
            if isinstance(error, BrokerError):
                self._guard(self.look_for_transactions)
            if not (isinstance(error, BrokerError) and error.retryable):
                self._guard(self.disconnect)
        else:
            self._warning.over()

    def _guard(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception:
            _LOG.warning("the monitor of the lag could not close a connection, or look for transactions", exc_info=True)

    def _positions(
        self, step: str, beginnings: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Return where `step` is in each partition."""
        known = self._offsets.of(step)
        if any(partition not in known and beginnings[partition] < end for partition, end in ends.items()):
            known = {**self._group_offsets(step), **known}
        for partition, beginning in beginnings.items():
            self._begun.setdefault(partition, beginning)
        return {partition: known.get(partition, self._begun[partition]) for partition in beginnings}

    def _group_offsets(self, step: str) -> Mapping[TopicPartition, int]:
        """Return the offsets of the group of `step`, of up to a minute ago: where new partitions start."""
        if self._clock() >= self._ask_groups_at:
            self._ask_groups_at = self._clock() + _ASK_GROUPS_S
            self._committed.clear()
        if step not in self._committed:
            self._committed[step] = committed_offsets(self._connection, self._groups[step], self._topics.pages)
        return self._committed[step]

    def _row(
        self, step: str, partition: TopicPartition, offset: int, beginning: int, end: int, watermark: int
    ) -> PartitionBacklog:
        now, key = self._clock(), (step, partition)
        oldest = self._oldest.get((partition, max(offset, beginning)))
        lag = 0 if oldest is None or oldest.offset is None else max(0, end - oldest.offset)
        stalled_s = age_s = 0.0
        blocked = lag == 0 and watermark > end
        if lag == 0 and not blocked:
            self._waiting.pop(key, None)
        else:
            waiting = self._waiting.get(key)
            if waiting is None or waiting.offset != offset:
                waiting = self._waiting[key] = _Waiting(offset, now)
            stalled_s = now - waiting.since
            if oldest is not None and oldest.timestamp_ms >= 0:
                age_s = self._wall_clock() - oldest.timestamp_ms / 1000
        return PartitionBacklog(
            step=step,
            partition=f"{partition.topic}-{partition.partition}",
            number=partition.partition,
            offset=offset,
            lag=lag,
            deleted=max(0, beginning - offset),
            oldest_s=max(age_s, stalled_s, 0.0),
            stalled_s=stalled_s,
            blocked=blocked,
        )

    def _oldest_at(self, places: set[Place], ends: Mapping[TopicPartition, int]) -> dict[Place, _Oldest]:
        """Return the first record at or after each place that is not at the end; known ones are not read again."""
        found: dict[Place, _Oldest] = {}
        unread: list[Place] = []
        for place in sorted(places):
            partition, offset = place
            known = self._oldest.get(place)
            if known is not None and (known.offset is not None or known.end == ends[partition]):
                found[place] = known
            elif offset < ends[partition]:
                unread.append(place)
        while unread:  # a reader has one position in a partition, and the steps may be at two
            wanted = dict(reversed(unread))
            found.update(self._read(wanted, ends))
            unread = [place for place in unread if place not in found]
        return found

    def _read(self, wanted: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> dict[Place, _Oldest]:
        """Return the first record from each offset on, if there is one before the end."""
        reader, deadline = self._pages, self._clock() + _ANSWER_S
        found: dict[TopicPartition, _Oldest] = {}
        reader.assign(wanted)
        while len(found) < len(wanted):
            for record in reader.poll(_POLL_S, 1, paused=found):
                partition = TopicPartition(record.topic, record.partition)
                found.setdefault(partition, _Oldest(ends[partition], record.offset, record.timestamp))
            for partition, position in reader.positions.items():
                if partition not in found and position >= ends[partition]:
                    found[partition] = _Oldest(ends[partition], None)
            if len(found) < len(wanted) and (self._clock() > deadline or self._stop.is_set()):
                missing = ", ".join(f"{at.topic}-{at.partition}" for at in sorted(set(wanted) - set(found)))
                raise UnreachableError(f"{missing}: the oldest waiting record cannot be read; try again")
        return {(partition, wanted[partition]): oldest for partition, oldest in found.items()}
