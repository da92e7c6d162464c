"""What a rebalance changed, kept until the reader's own thread asks for it.

The library calls a listener on its network thread, where a blocking call (`commit`, `position`) would raise, and a
slow one would stop the heartbeat. So the listener only takes notes.

One member of a consumer group: records of the partitions that are ours, and word of those that are no longer.

How: the library's consumer, with its gaps closed.
- What a rebalance changed is told in `poll`, on the caller's thread, before any record is handed out (`rebalancing`).
- `group_metadata()` is what it was when that was last told. The library's own changes in the background, and records
  read under one generation would be committed under the next, by which time others may have done them.
- Where membership was lost and regained between two polls the library may hand retained partitions on without a word
  (`_on_join_prepare_async` runs once per rejoin). A new member id, or a generation that was missed, shows it: such
  partitions are told as lost, and begin again at the committed offset.
- A partition begins where the group has committed, asked until the answer is final; nothing of it is handed out before.
- A join that is answered between two polls leaves the member half in: while a join is under way `poll` waits for it for
  up to a second, whatever timeout it was given, and one that was missed is done once more (`inside.is_joining`). After
  20 s outside the group, with its coordinator there, the consumer is made anew. The topic's partitions are asked for
  before the first join.
- Positions that the brokers no longer have: counted (`expired`) and moved to the beginning where the topic's retention
  deleted records; LogChangedError where the topic ends before them.
- Being fenced is no proof of a second process under our instance name: a member that lost its answer to a join, or
  that committed as the member it was before, is fenced by itself. So it joins again; InstanceInUseError follows where
  it is fenced three times within a minute. Of two processes, the one that was there first comes to three first.
- While brokers are away `poll` returns nothing, complains in the log every half minute, and goes on afterwards.

Invariant: between `on_revoked` and `on_assigned` of a partition no record of it is returned.
One thread uses an instance. Source: KIP-429, KIP-447, KIP-345; kafka-python 3.0.12, coordinator/, consumer/.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka import AsyncConsumerRebalanceListener, KafkaConsumer, errors
from kafka.consumer.fetcher import ConsumerRecord
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.structs import ConsumerGroupMetadata, MemberState, TopicPartition

from dedup_service.runtime.kafka.client import internals
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import consumer
from dedup_service.runtime.kafka.client.errors import BrokerError, InstanceInUseError, LogChangedError, UnreachableError
from dedup_service.runtime.kafka.client.group_offsets import committed, leave_group, moved
from dedup_service.runtime.kafka.client.retry import TRANSIENT, ThrottledWarning, permanent_error, reasons

__all__ = ["Change", "Changes", "GroupConsumer"]


@dataclass(frozen=True, slots=True)
class Change:
    """gained: partitions that are ours from now on; otherwise no longer (given away, or lost with the membership)."""

    gained: bool
    partitions: frozenset[TopicPartition]


class Changes(AsyncConsumerRebalanceListener):  # type: ignore[misc]
    """The notes, in order; `take` empties them."""

    def __init__(self) -> None:
        self._notes: deque[Change] = deque()

    def take(self) -> list[Change]:
        """Return what has changed since the last call."""
        return [self._notes.popleft() for _ in range(len(self._notes))]

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Take note."""
        self._notes.append(Change(gained=False, partitions=frozenset(revoked)))

    async def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        """Take note: others may have them already."""
        self._notes.append(Change(gained=False, partitions=frozenset(lost)))

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Take note."""
        self._notes.append(Change(gained=True, partitions=frozenset(assigned)))


_LOG = logging.getLogger(__name__)

_ANSWER_S = 15.0
"""How long to ask for committed offsets: an open transaction holds them back until it ends or times out (10 s)."""
_CONNECT_MS = 5_000
_CLOSE_S = 5.0
_PAUSE_S = 0.1
_TURN_S = 0.01
_JOIN_S = 1.0
_LONGEST_JOIN_S = 20.0
_MAX_FENCES = 3
_FENCES_WITHIN_S = 60.0

_A_FEW = 128 << 10
"""Bytes, compressed: what is worth an answer at once."""


class GroupConsumer:
    """Committed records of one topic, as the group hands its partitions out (cooperative, static membership).

    on_revoked(partitions): no longer ours, or to be read again from the committed offsets; forget what is in hand.
    on_assigned(positions): ours, read from these offsets on. Both are called inside `poll` (on_revoked also inside
    `rewind`). session_timeout_s: after which a silent member's partitions are another's. max_poll_interval_s: after
    which a member that does not poll leaves. fetch_bytes: see `consumers` for what that bounds. patience_s: how long
    the broker waits for more than a few records: an answer costs both sides a millisecond, however little it holds.
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
        session_timeout_s: float = 6.0,
        heartbeat_s: float = 0.5,
        max_poll_interval_s: float = 60.0,
        fetch_bytes: int = 8 << 20,
        patience_s: float = 0.0,
    ) -> None:
        self._connection = connection
        self._topic, self._group, self._instance = topic, group, instance
        self._on_revoked = on_revoked
        self._on_assigned = on_assigned or (lambda _: None)
        self._fetch_bytes = fetch_bytes
        self._configs = {
            "group_id": group,
            "group_instance_id": instance,
            "partition_assignment_strategy": [CooperativeStickyAssignor],
            "session_timeout_ms": int(session_timeout_s * 1000),
            "heartbeat_interval_ms": int(heartbeat_s * 1000),
            "max_poll_interval_ms": int(max_poll_interval_s * 1000),
            "bootstrap_timeout_ms": _CONNECT_MS,
        }
        if patience_s:
            self._configs |= {"fetch_min_bytes": _A_FEW, "fetch_max_wait_ms": int(patience_s * 1000)}
        self._consumer: KafkaConsumer | None = None
        self._changes = Changes()
        self._unsettled: frozenset[TopicPartition] = frozenset()
        self._held: frozenset[TopicPartition] = frozenset()
        self._told = ConsumerGroupMetadata(group)
        self._complaint = ThrottledWarning(
            _LOG, f"group {group}: brokers are away or it is being rearranged", after_s=5.0
        )
        self._outside_since: float | None = None
        self._fences: deque[float] = deque(maxlen=_MAX_FENCES)
        self.expired = 0

    def poll(self, timeout_s: float, max_records: int) -> list[ConsumerRecord]:
        """Return the next records, in order within each partition; [] where there are none for now.

        Raises what will not pass by itself: InstanceInUseError, NotAuthorisedError, ConfigurationError,
        LogChangedError. Takes `timeout_s`, plus up to 5 s where it has to connect, or a second while it joins.
        """
        reader = self._connected(timeout_s)
        if reader is None:
            return []
        batches = self._fetched(reader, timeout_s, max_records)
        if self._consumer is not reader:
            return []
        self._tell_changes(reader)
        fresh = self._unsettled
        self._settle(reader, max(1.0, timeout_s))
        self._look_at_membership(reader)
        if self._consumer is None:
            return []
        return [record for at, batch in batches.items() if at not in fresh for record in batch]

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """What this member reads now."""
        return frozenset(self._consumer.assignment()) if self._consumer else frozenset()

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """What is paused of it."""
        return frozenset(self._consumer.paused()) if self._consumer else frozenset()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no more of these; `poll` goes on keeping the membership alive."""
        if self._consumer:
            self._consumer.pause(*self.assigned.intersection(partitions))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these again."""
        if self._consumer:
            self._consumer.resume(*self.assigned.intersection(partitions))

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where the group goes on in each, the beginning where it has not been.

        Raises BrokerError where no final answer comes within 15 s.
        """
        reader = self._connected(_ANSWER_S)
        if reader is None:
            raise UnreachableError(f"the offsets of group {self._group} cannot be asked for: no broker answers")
        return committed(reader, self._group, frozenset(partitions), _ANSWER_S)

    def rewind(self) -> dict[TopicPartition, int]:
        """Go back to the committed offset of every partition that is ours, and return them.

        Where they cannot be had within 15 s: {}, after `on_revoked` for all; `on_assigned` follows in a later `poll`.
        """
        mine = self.assigned
        try:
            positions = self.committed(mine) if mine else {}
        except BrokerError as error:
            self._complaint.about(error)
            self._begin_again(mine)
            return {}
        for at, position in positions.items():
            self._seek(at, position)
        self._unsettled -= mine
        return positions

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return what fences transactions with records of this reader: as of the last `poll`, see the module."""
        return self._told

    def lag(self) -> dict[TopicPartition, int]:
        """Return how many records of each partition are not read yet, as last heard; without asking anybody."""
        known = internals.positions_and_ends(self._consumer) if self._consumer else {}
        return {at: max(0, end - position) for at, (position, end) in known.items()}

    def close(self, leave: bool = False) -> None:
        """Stop reading. The partitions stay ours until the session ends, so that a quick restart moves nothing.

        leave: hand them over at once.
        """
        if self._consumer is not None:
            internals.close_consumer(self._consumer, _CLOSE_S)
            self._consumer = None
        if leave:
            leave_group(self._connection, self._group, self._instance)

    def _connected(self, timeout_s: float) -> KafkaConsumer | None:
        """Return the consumer, made where there is none; None where no broker answers."""
        if self._consumer is not None:
            return self._consumer
        try:
            made = consumer(self._connection, self._fetch_bytes, **self._configs)
        except BrokerError as error:
            if not error.retryable:
                raise
            self._complaint.about(error)
            time.sleep(min(_PAUSE_S, timeout_s))
            return None
        try:
            internals.refresh_metadata(made, self._topic, _CONNECT_MS / 1000)
        except TRANSIENT as error:
            self._complaint.about(error)
            internals.close_consumer(made, _CLOSE_S)
            return None
        made.subscribe([self._topic], listener=self._changes)
        self._consumer, self._outside_since = made, None
        return made

    def _fetched(self, reader: KafkaConsumer, timeout_s: float, max_records: int) -> dict[TopicPartition, Any]:
        internals.release_paused_records(reader)
        if internals.is_joining(reader):
            timeout_s = max(timeout_s, _JOIN_S)
        try:
            found: dict[TopicPartition, Any] = reader.poll(timeout_ms=int(timeout_s * 1000), max_records=max_records)
        except errors.NoOffsetForPartitionError:
            self._unsettled |= internals.partitions_without_position(reader)
            return {}
        except errors.OffsetOutOfRangeError as error:
            self._move(reader, error)
            return {}
        except errors.LogTruncationError as error:
            raise LogChangedError(f"{self._topic} lost records that were read: {error}; look at the topic") from error
        except TRANSIENT as error:
            self._bear(reader, error, timeout_s)
            return {}
        if not internals.has_coordinator(reader):
            self._outside_since = None
            self._complaint.about("no coordinator at the moment")
        elif reader.group_metadata().state is MemberState.STABLE:
            self._outside_since = None
            self._complaint.over()
        elif not found:
            self._wait_outside()
        return found

    def _wait_outside(self) -> None:
        """Wait to be let into the group, and knock again where that takes too long."""
        self._complaint.about("not a member at the moment")
        now = time.monotonic()
        self._outside_since = self._outside_since or now
        if now - self._outside_since > _LONGEST_JOIN_S:
            _LOG.warning("group %s: no member after %g s: joining anew", self._group, _LONGEST_JOIN_S)
            self._outside_since = None
            self._let_go()
        time.sleep(_TURN_S)  # the client turns round at once in this state

    def _bear(self, reader: KafkaConsumer, error: BaseException, timeout_s: float) -> None:
        """Raise what is for good; for the rest complain and go on, with a new consumer where this one is dead."""
        if found := permanent_error(error, f"to read {self._topic} as group {self._group}"):
            raise found from error
        self._complaint.about(f"{type(error).__name__}: {error}")
        if any(isinstance(reason, errors.FencedInstanceIdError) for reason in reasons(error)):
            self._join_again()
        elif internals.is_dead(reader):
            self._let_go()
        time.sleep(min(_PAUSE_S, timeout_s))

    def _let_go(self) -> None:
        """Give the consumer up, and with it what it had; the next `poll` makes a new one."""
        self.close()
        self._changes.take()
        self._unsettled = frozenset()
        self._take_away(self._held)

    def _join_again(self) -> None:
        """Come back as a new member under our name, unless that is not ours alone."""
        now = time.monotonic()
        self._fences.append(now)
        if len(self._fences) == _MAX_FENCES and now - self._fences[0] < _FENCES_WITHIN_S:
            raise InstanceInUseError(
                f"another process is in group {self._group} as {self._instance}, which is our name: stop one of both, "
                "or give each a state folder or --instance of its own"
            )
        self._let_go()

    def _tell_changes(self, reader: KafkaConsumer) -> None:
        for change in self._changes.take():
            if change.gained:
                self._begin_again(change.partitions)
            else:
                self._unsettled -= change.partitions
                self._take_away(change.partitions)
        now = reader.group_metadata()
        known = self._told
        if now.state is MemberState.STABLE and known.state is MemberState.STABLE:
            missed = now.generation_id > known.generation_id + 1 or now.member_id != known.member_id
            if missed and (kept := self.assigned - self._unsettled):
                self._begin_again(kept)

    def _begin_again(self, partitions: frozenset[TopicPartition]) -> None:
        """Read partitions from the committed offsets on; a rebalance may hand out what was ours already."""
        self._unsettled |= partitions
        self._take_away(partitions)

    def _take_away(self, partitions: frozenset[TopicPartition]) -> None:
        """Tell of those of `partitions` that were begun with and not taken away since."""
        gone = self._held & partitions
        self._held -= gone
        if gone:
            self._on_revoked(gone)

    def _settle(self, reader: KafkaConsumer, timeout_s: float) -> None:
        """Begin with new partitions where the group has committed, as soon as that can be known."""
        self._unsettled &= self.assigned
        if not self._unsettled:
            return
        try:
            positions = committed(reader, self._group, self._unsettled, timeout_s)
        except BrokerError as error:
            if not error.retryable:
                raise
            self._complaint.about(error)
            return
        for at, position in positions.items():
            self._seek(at, position)
        self._unsettled -= positions.keys()
        self._held |= positions.keys()
        self._on_assigned(positions)

    def _seek(self, partition: TopicPartition, position: int) -> None:
        if self._consumer and partition in self.assigned:
            self._consumer.seek(partition, position)

    def _move(self, reader: KafkaConsumer, error: errors.OffsetOutOfRangeError) -> None:
        """Go on where records begin, where retention has deleted those that were next."""
        for at, (position, beginning) in moved(reader, error, self._complaint).items():
            self.expired += beginning - position
            _LOG.error(
                "%s-%d: %d records from offset %d on were deleted before they were read: reading goes on at %d; "
                "give the topic a longer retention",
                at.topic, at.partition, beginning - position, position, beginning,
            )  # fmt: skip
            self._seek(at, beginning)

    def _look_at_membership(self, reader: KafkaConsumer) -> None:
        if internals.is_fenced_member(reader):
            self._join_again()
            return
        now = reader.group_metadata()
        if now.state is MemberState.STABLE:
            self._told = now
