"""One member of a consumer group: records of its partitions, and word of those it gained or lost.

How: the library's consumer, with its gaps closed.
- Rebalances. The library calls a listener on its network thread, where a blocking call (`commit`,
  `position`) would raise and a slow one would stop the heartbeat. So the listener (`_RebalanceListener`)
  only records, and `poll` reports the changes on the caller's thread, before it returns any record.
- `group_metadata()` is a snapshot from the time of the last report. The library's own changes in the
  background, and records read under one generation would be committed under the next, when others may have
  processed them already.
- Where membership was lost and regained between two polls, the library may keep partitions without reporting
  it (`_on_join_prepare_async` runs once per rejoin). A new member id, or a missed generation, shows it: such
  partitions are reported as lost, and start again at the committed offset.
- A partition starts where the group has committed, or where the caller says that is (`positions`); that is
  asked until the answer is final, and no record of the partition is returned before.
- A join that is answered between two polls leaves the member half in: while a join is under way `poll` waits
  for it for up to a second, whatever timeout it was given, and a missed one is repeated
  (`internals.is_joining`). After 20 s outside the group, with its coordinator reachable, the consumer is
  replaced. The topic's partitions are requested before the first join.
- A leader that comes back under its name would not know that it is the leader, and partitions that are added would
  belong to nobody: it joins twice (`internals.join_again_as_leader`).
- Positions that the brokers no longer have: reported (`on_expired`) and moved to the beginning if the topic's
  retention deleted records. LogChangedError if the topic is another one under its name, or ends before them
  for half a minute: a broker that comes back may not know the end at once.
- Being fenced is no proof of a second process under our instance name: a member that lost its answer to a
  join, or that committed as the member it was before, has fenced itself. So it joins again;
  InstanceInUseError follows if it is fenced three times within a minute. Of two processes, the one that
  was there first reaches three first.
- A consumer `on_demand` fetches nothing but what `read_only` asks for, and is a member like any other.
- While brokers are away `poll` returns nothing, warns in the log every half minute, and continues
  afterwards.

Invariant: between `on_revoked` and `on_assigned` of a partition no record of it is returned.
One thread uses an instance. Source: KIP-429, KIP-447, KIP-345; kafka-python 3.0.12, coordinator/, consumer/.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kafka import AsyncConsumerRebalanceListener, KafkaConsumer, errors
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.structs import MemberState

from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.admin import leave_group
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerGroupMetadata, ConsumerRecord, TopicPartition, consumer
from dedup_service.runtime.kafka.client.errors import BrokerError, InstanceInUseError, LogChangedError
from dedup_service.runtime.kafka.client.retry import (
    TRANSIENT,
    ThrottledWarning,
    permanent_error,
    reasons,
    transient_error,
)

_LOG = logging.getLogger(__name__)

_OFFSETS_TIMEOUT_S = 15.0
"""How long to ask for committed offsets: an open transaction holds them back until it ends or times out (10 s)."""
_ASK_S = 5.0
_CONNECT_MS = 5_000
_HEARTBEAT_MS = 500
_MAX_POLL_INTERVAL_MS = 60_000  # a member that does not poll for so long leaves
_FETCH_BYTES = 8 << 20
_COMMIT_S = 2.0
_CLOSE_S = 5.0
_PAUSE_S = 0.1
_OUTSIDE_PAUSE_S = 0.01
_JOIN_S = 1.0
_LONGEST_JOIN_S = 20.0
_MAX_FENCES = 3
_PATIENCE_S = 30.0
_FENCES_WITHIN_S = 60.0

_FETCH_MIN_BYTES = 128 << 10
"""Compressed: what is worth an answer at once."""

_ON_DEMAND_BYTES = 16 << 10
"""What is fetched of a partition at a time on demand, if its next batch is not larger: a marker takes 78 bytes."""


Positions = Callable[[Mapping[TopicPartition, int | None]], Mapping[TopicPartition, int | None]]


@dataclass(frozen=True, slots=True)
class _Change:
    """Partitions that this member gained, or else lost: given away, or lost with the membership."""

    gained: bool
    partitions: frozenset[TopicPartition]


class _RebalanceListener(AsyncConsumerRebalanceListener):  # type: ignore[misc]
    """A rebalance listener that records changes in order; `take` empties it."""

    def __init__(self) -> None:
        self._changes: deque[_Change] = deque()

    def take(self) -> list[_Change]:
        """Return what has changed since the last call."""
        return [self._changes.popleft() for _ in range(len(self._changes))]

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Record partitions that were given away."""
        self._changes.append(_Change(gained=False, partitions=frozenset(revoked)))

    async def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        """Record partitions that other members may have already."""
        self._changes.append(_Change(gained=False, partitions=frozenset(lost)))

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Record partitions that were gained."""
        self._changes.append(_Change(gained=True, partitions=frozenset(assigned)))


class GroupConsumer:
    """Committed records of one topic, as the group assigns its partitions (cooperative, static membership).

    on_revoked(partitions): no longer ours, or to be read again from the committed offsets; drop what is in
    flight. on_assigned(positions): ours, read from these offsets on. Both are called inside `poll`
    (on_revoked also inside `rewind`). positions(committed): where to start partitions, given the group's offset of
    each, None where there is none; it returns the same, and may raise BrokerError to be asked again.
    on_expired(partition, start, end): these offsets were deleted before they were read. topic_id: the identity
    that the topic must have, None for any. session_timeout_s: after which a silent member's partitions are
    reassigned. fetch_max_wait_s: how long the broker waits for more than 128 KiB: an answer
    costs both sides a millisecond, however little it holds. on_demand: fetch only what `read_only` asks for.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        group: str,
        instance: str,
        *,
        on_revoked: Callable[[frozenset[TopicPartition]], None],
        on_assigned: Callable[[Mapping[TopicPartition, int]], None] | None = None,
        positions: Positions | None = None,
        on_expired: Callable[[TopicPartition, int, int], None] | None = None,
        topic_id: str | None = None,
        session_timeout_s: float = 6.0,
        fetch_max_wait_s: float = 0.0,
        on_demand: bool = False,
    ) -> None:
        self._connection = connection
        self._topic, self._group, self._instance = topic, group, instance
        self._on_revoked = on_revoked
        self._on_assigned = on_assigned or (lambda _: None)
        self._positions = positions or dict
        self._on_expired = on_expired or (lambda _partition, _start, _end: None)
        self._topic_id = topic_id
        self._configs: dict[str, Any] = {
            "group_id": group,
            "group_instance_id": instance,
            "partition_assignment_strategy": [CooperativeStickyAssignor],
            "session_timeout_ms": int(session_timeout_s * 1000),
            "heartbeat_interval_ms": _HEARTBEAT_MS,
            "max_poll_interval_ms": _MAX_POLL_INTERVAL_MS,
            "bootstrap_timeout_ms": _CONNECT_MS,
        }
        if fetch_max_wait_s:
            self._configs |= {"fetch_min_bytes": _FETCH_MIN_BYTES, "fetch_max_wait_ms": int(fetch_max_wait_s * 1000)}
        if on_demand:
            self._configs["partition_fetch_bytes"] = _ON_DEMAND_BYTES
        self._on_demand = on_demand
        self._ends: Mapping[TopicPartition, int] = {}
        self._committed_ends: dict[TopicPartition, int] = {}
        self._consumer: KafkaConsumer | None = None
        self._changes = _RebalanceListener()
        self._unplaced: frozenset[TopicPartition] = frozenset()
        self._started: frozenset[TopicPartition] = frozenset()
        self._reached: Mapping[TopicPartition, int] = {}
        self._metadata = ConsumerGroupMetadata(group)
        self._warning = ThrottledWarning(_LOG, f"group {group}: brokers are away, or it is rebalancing", after_s=5.0)
        self._outside_since: float | None = None
        self._fences: deque[float] = deque(maxlen=_MAX_FENCES)
        self._beyond_since: dict[TopicPartition, float] = {}

    def poll(self, timeout_s: float, max_records: int) -> list[ConsumerRecord]:
        """Return the next records, in order within each partition; [] if there are none for now.

        Raises what no second try changes: InstanceInUseError, NotAuthorisedError, ConfigurationError,
        LogChangedError. Takes `timeout_s`, plus up to 5 s if it has to connect, or a second while it
        joins.
        """
        self._reached = {}
        reader = self._connected(timeout_s)
        if reader is None:
            return []
        lost: Mapping[TopicPartition, int] = {}
        try:
            batches = self._fetched(reader, timeout_s, max_records)
        except errors.OffsetOutOfRangeError as error:
            batches, lost = {}, internals.lost_positions(error)
        if self._consumer is not reader:
            return []
        # Before changes are reported: a position that the library itself has set since belongs to one of them.
        reached = internals.positions(reader)
        self._check_identity(reader)
        self._report_changes(reader)
        unplaced = self._unplaced
        self._place(reader, max(1.0, timeout_s))
        # The library's own position of a partition that was gained in this call is not where it starts.
        if lost := {partition: position for partition, position in lost.items() if partition not in unplaced}:
            self._move_expired(reader, lost)
        self._check_membership(reader)
        if self._consumer is None:
            return []
        old = self._started - unplaced
        self._reached = {partition: position for partition, position in reached.items() if partition in old}
        return [record for partition, batch in batches.items() if partition not in unplaced for record in batch]

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """The partitions of this member."""
        return frozenset(self._consumer.assignment()) if self._consumer else frozenset()

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """Those of them that are paused."""
        return frozenset(self._consumer.paused()) if self._consumer else frozenset()

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """The offset up to which the last `poll` had returned all records, of each partition that had started before.

        Markers of transactions and aborted records below it are passed.
        """
        return self._reached

    @property
    def behind(self) -> frozenset[TopicPartition]:
        """The partitions of this member that have records to read, and those whose end is not known yet."""
        positions = internals.positions(self._consumer) if self._consumer else {}
        ends = self._committed_ends
        return frozenset(at for at in self.assigned if at not in ends or positions.get(at, -1) < ends[at])

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no more records of these; `poll` still keeps the membership alive."""
        if self._consumer:
            self._consumer.pause(*self.assigned.intersection(partitions))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records of these again."""
        if self._consumer:
            self._consumer.resume(*self.assigned.intersection(partitions))

    def read_only(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> None:
        """Fetch only these partitions from now on, each from the first offset to before the second.

        The next `poll` begins there. What a fetch has beyond the end is returned, too. A partition that has not
        started yet is left out. For a consumer `on_demand`.
        """
        self._ends = {}
        if self._consumer is None:
            return
        ranges = {
            at: part for at, part in ranges.items() if at in self._started - self._unplaced and at in self.assigned
        }
        for partition, (start, _) in ranges.items():
            if internals.position(self._consumer, partition, -1) != start:
                self._seek(partition, start)
        self._ends = {partition: end for partition, (_, end) in ranges.items()}

    def rewind(self) -> dict[TopicPartition, int]:
        """Go back to where every assigned partition starts now, and return these offsets.

        Where they cannot be read within 15 s: {}, after `on_revoked` for all; `on_assigned` follows in a
        later `poll`.
        """
        self._reached = {}
        mine, reader = self.assigned, self._consumer
        try:
            positions = self._starts(reader, mine, _OFFSETS_TIMEOUT_S) if mine and reader else {}
        except BrokerError as error:
            self._warning.about(error)
            self._start_again(mine)
            return {}
        for partition, position in positions.items():
            self._seek(partition, position)
        self._unplaced -= mine
        self._started |= positions.keys()
        return positions

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets for the group; a warning if the brokers do not take them, which the next ones make good."""
        if self._consumer is None or not offsets:
            return
        try:
            internals.commit_offsets(self._consumer, offsets, _COMMIT_S)
        except TRANSIENT as error:
            self._warning.about(f"the group's offsets are not committed: {type(error).__name__}: {error}")

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return what fences transactions with records of this consumer, as of the last `poll`.

        See the module.
        """
        return self._metadata

    def close(self, leave: bool = False) -> None:
        """Stop reading.

        The partitions stay assigned until the session ends, so that a quick restart moves nothing.
        leave: leave the group at once.
        """
        if self._consumer is not None:
            internals.close_consumer(self._consumer, _CLOSE_S)
            self._consumer = None
        if leave:
            leave_group(self._connection, self._group, self._instance)

    def _connected(self, timeout_s: float) -> KafkaConsumer | None:
        """Return the consumer, creating it if there is none; None if no broker answers."""
        if self._consumer is not None:
            return self._consumer
        try:
            fresh = consumer(self._connection, _FETCH_BYTES, **self._configs)
        except BrokerError as error:
            if not error.retryable:
                raise
            self._warning.about(error)
            time.sleep(min(_PAUSE_S, timeout_s))
            return None
        fresh.subscribe([self._topic], listener=self._changes)
        try:
            internals.refresh_metadata(fresh, self._topic, _CONNECT_MS / 1000)
        except TRANSIENT as error:
            internals.close_consumer(fresh, _CLOSE_S)
            if found := permanent_error(error, f"to read {self._topic}", needs="Read"):
                raise found from error
            self._warning.about(error)
            return None
        internals.join_again_as_leader(fresh)
        if self._on_demand:
            internals.fetch_only_below(fresh, lambda: self._ends)
        self._committed_ends = internals.note_ends(fresh)
        self._consumer, self._outside_since = fresh, None
        return fresh

    def _fetched(self, reader: KafkaConsumer, timeout_s: float, max_records: int) -> dict[TopicPartition, Any]:
        """Return the library's next records; raises OffsetOutOfRangeError, and what no second try changes."""
        internals.release_paused_records(reader)
        if internals.is_joining(reader):
            timeout_s = max(timeout_s, _JOIN_S)
        try:
            found: dict[TopicPartition, Any] = reader.poll(timeout_ms=int(timeout_s * 1000), max_records=max_records)
        except errors.NoOffsetForPartitionError:
            self._unplaced |= internals.partitions_without_position(reader)
            return {}
        except errors.OffsetOutOfRangeError:
            raise
        except errors.LogTruncationError as error:
            raise LogChangedError(f"{self._topic} lost records that were read: {error}; inspect the topic") from error
        except Exception as error:
            self._survive(reader, error, timeout_s)
            return {}
        if not internals.has_coordinator(reader):
            self._outside_since = None
            self._warning.about("no coordinator at the moment")
        elif reader.group_metadata().state is MemberState.STABLE:
            self._outside_since = None
            self._warning.over()
        elif not found:
            self._wait_outside()
        return found

    def _wait_outside(self) -> None:
        """Wait to be admitted to the group, and replace the consumer if that takes too long."""
        self._warning.about("not a member at the moment")
        now = time.monotonic()
        self._outside_since = self._outside_since or now
        if now - self._outside_since > _LONGEST_JOIN_S:
            _LOG.warning("group %s: not admitted after %g s: joining again", self._group, _LONGEST_JOIN_S)
            self._outside_since = None
            self._discard_consumer()
        time.sleep(_OUTSIDE_PAUSE_S)  # the library returns at once in this state

    def _survive(self, reader: KafkaConsumer, error: Exception, timeout_s: float) -> None:
        """Raise what is permanent, or no error of brokers.

        For the rest warn and continue, with a new consumer if this one is dead, whatever ended it.
        """
        if not isinstance(error, TRANSIENT) and not internals.is_dead(reader):
            raise error
        if found := permanent_error(error, f"to read {self._topic} as group {self._group}", needs="Read"):
            raise found from error
        self._warning.about(f"{type(error).__name__}: {error}")
        if any(isinstance(reason, errors.FencedInstanceIdError) for reason in reasons(error)):
            self._join_again()
        elif internals.is_dead(reader):
            self._discard_consumer()
        time.sleep(min(_PAUSE_S, timeout_s))

    def _discard_consumer(self) -> None:
        """Close the consumer and report its partitions as revoked; the next `poll` creates a new one."""
        self.close()
        self._changes.take()
        self._unplaced = frozenset()
        self._report_revoked(self._started)

    def _join_again(self) -> None:
        """Join as a new member under our name, unless another process keeps taking it."""
        now = time.monotonic()
        self._fences.append(now)
        if len(self._fences) == _MAX_FENCES and now - self._fences[0] < _FENCES_WITHIN_S:
            raise InstanceInUseError(
                f"another process is in group {self._group} as {self._instance}, which is our name: stop one of the "
                "two, or give each its own state folder or --instance"
            )
        self._discard_consumer()

    def _report_changes(self, reader: KafkaConsumer) -> None:
        for change in self._changes.take():
            if change.gained:
                self._start_again(change.partitions)
            else:
                self._unplaced -= change.partitions
                for partition in change.partitions:
                    self._committed_ends.pop(partition, None)  # it grows while others read it
                self._report_revoked(change.partitions)
        now = reader.group_metadata()
        known = self._metadata
        if now.state is MemberState.STABLE and known.state is MemberState.STABLE:
            missed = now.generation_id > known.generation_id + 1 or now.member_id != known.member_id
            if missed and (kept := self.assigned - self._unplaced):
                self._start_again(kept)

    def _start_again(self, partitions: frozenset[TopicPartition]) -> None:
        """Read partitions from the committed offsets on; a rebalance may assign what was ours already."""
        self._unplaced |= partitions
        self._report_revoked(partitions)

    def _report_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Call `on_revoked` for those of `partitions` that `on_assigned` was last called for."""
        revoked = self._started & partitions
        self._started -= revoked
        if revoked:
            self._on_revoked(revoked)

    def _place(self, reader: KafkaConsumer, timeout_s: float) -> None:
        """Start new partitions where the group has committed, as soon as that is known."""
        self._unplaced &= self.assigned
        if not self._unplaced:
            return
        try:
            positions = self._starts(reader, self._unplaced, timeout_s)
        except BrokerError as error:
            if not error.retryable:
                raise
            self._warning.about(error)
            return
        for partition, position in positions.items():
            self._seek(partition, position)
        self._unplaced -= positions.keys()
        self._started |= positions.keys()
        self._on_assigned(positions)

    def _starts(
        self, reader: KafkaConsumer, partitions: frozenset[TopicPartition], timeout_s: float
    ) -> dict[TopicPartition, int]:
        """Return where to start each partition: its beginning if neither the group nor the caller has an offset.

        Offsets in open transactions are waited for. Raises BrokerError if no answer comes within `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        with self._asking_for_offsets(reader):
            offsets = internals.committed(reader, partitions, timeout_s)
        starts = self._positions({partition: offsets.get(partition) for partition in partitions})
        missing = [partition for partition, start in starts.items() if start is None]
        left_s = max(0.5, deadline - time.monotonic())
        with self._asking_for_offsets(reader):
            beginnings = reader.beginning_offsets(missing, timeout_ms=left_s * 1000) if missing else {}
        return {partition: beginnings[partition] if start is None else start for partition, start in starts.items()}

    @contextmanager
    def _asking_for_offsets(self, reader: KafkaConsumer) -> Iterator[None]:
        """Raise the library's errors as ours."""
        try:
            yield
        except Exception as error:
            if not isinstance(error, TRANSIENT) and not internals.is_dead(reader):
                raise
            action = f"to read the offsets of group {self._group}"
            raise (permanent_error(error, action, needs="Read") or transient_error(error, action)) from error

    def _check_identity(self, reader: KafkaConsumer) -> None:
        """Raise LogChangedError if the topic was deleted and created again: its offsets mean other records."""
        now = internals.topic_id(reader, self._topic)
        if self._topic_id is not None and now is not None and str(now) != self._topic_id:
            raise LogChangedError(
                f"{self._topic} was deleted and created again: its identity is {now}, the log was begun with "
                f"{self._topic_id}, so its offsets mean other records now. Stop the crawl's publishing, make a new set "
                "with `twinsieve topics create --prefix NEW` (`twinsieve replay --to-prefix NEW` keeps what is known), "
                "and publish and serve with that prefix"
            )

    def _seek(self, partition: TopicPartition, position: int) -> None:
        if self._consumer and partition in self.assigned:
            self._consumer.seek(partition, position)

    def _move_expired(self, reader: KafkaConsumer, lost: Mapping[TopicPartition, int]) -> None:
        """Continue at the beginning of partitions where retention deleted the next records.

        lost: positions that the brokers do not have.
        """
        for partition, (position, beginning) in self._expired(reader, lost).items():
            self._on_expired(partition, position, beginning)
            _LOG.error(
                "%s-%d: %d records from offset %d on were deleted before they were read: reading continues at %d; "
                "give the topic a longer retention",
                partition.topic, partition.partition, beginning - position, position, beginning,
            )  # fmt: skip
            self._seek(partition, beginning)

    def _expired(
        self, reader: KafkaConsumer, lost: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Return (position, beginning) of partitions whose next records were deleted; {} if no broker answers.

        Raises LogChangedError if a partition has ended before the position for `_PATIENCE_S`.
        """
        try:
            beginnings = reader.beginning_offsets(list(lost), timeout_ms=_ASK_S * 1000)
            ends = reader.end_offsets(list(lost), timeout_ms=_ASK_S * 1000)
        except TRANSIENT as second:
            self._warning.about(second)
            return {}
        now = time.monotonic()
        beyond = [partition for partition, position in lost.items() if position > ends[partition]]
        self._beyond_since = {partition: self._beyond_since.get(partition, now) for partition in beyond}
        for partition, since in self._beyond_since.items():
            text = (
                f"{partition.topic}-{partition.partition} was read up to offset {lost[partition]} and ends at "
                f"{ends[partition]}: the topic was created again or lost its end"
            )
            if now - since > _PATIENCE_S:
                raise LogChangedError(f"{text}; its offsets mean other records now: use a new group and a new log")
            self._warning.about(text)
            time.sleep(_PAUSE_S)
        return {
            partition: (position, beginnings[partition])
            for partition, position in lost.items()
            if position < beginnings[partition]
        }

    def _check_membership(self, reader: KafkaConsumer) -> None:
        if internals.is_fenced_member(reader):
            self._join_again()
            return
        now = reader.group_metadata()
        if now.state is MemberState.STABLE:
            self._metadata = now
