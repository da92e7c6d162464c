"""Reads the answers of all shards, and says which are missing.

Partition I - 1 of `candidates` has the answers of shard I, of all its replicas; the first one counts. Answers of
another number of shards, which are there while an index is spread over more of them, are passed over.

With `verify`, the answers of later replicas are compared with the first: they must be the same bytes. Those of the
latest messages are kept for that, within a bound. Pages that a base loses are an exception: what a replica says of them
depends on when it asks, until the log says that they are lost.

Memory: shards are at most a window ahead of the resolver, so that many answers wait. A partition that has more than
its share is paused.

Answers that are needed and were deleted, by retention, may be given again: they come behind later ones then. Until
somebody does so, `require` says that they are lost.
"""

import logging
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from dedup_service._native import found_in_answer
from dedup_service.core.errors import StateError
from dedup_service.core.shards.answers import MessageAnswer
from dedup_service.core.shards.candidates import AnswersDifferError, differing
from dedup_service.runtime.kafka.client.assigned_consumer import POSITION_LOST, AssignedConsumer
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import ConsumerRecord, TopicPartition
from dedup_service.runtime.kafka.client.errors import UnreachableError
from dedup_service.runtime.kafka.messages.shard_messages import AnswerPart, decode_answer, decode_answer_part

_LOG = logging.getLogger(__name__)

_FETCH_BYTES = 8 << 20
_AT_ONCE = 500
_ANSWER_S = 30.0
_ASK_S = 5
_MAX_WAITING_BYTES = 256 << 20
"""Of answers that wait, of all shards."""

_VERIFIED_BYTES = 64 << 20
"""Of answers that are kept for comparison."""


@dataclass(slots=True)
class _Waiting:
    """Parts of the answers of one shard: by offset of the log and number, with their offsets in the partition."""

    parts: dict[int, dict[int, tuple[bytes, int]]] = field(default_factory=dict)
    complete: dict[int, int] = field(default_factory=dict)
    size_bytes: int = 0

    def put(self, part: AnswerPart, at: int) -> bool:
        """Keep a part; return False if it is there."""
        parts = self.parts.setdefault(part.offset, {})
        if part.part in parts:
            return False
        parts[part.part] = part.answer, at
        self.size_bytes += len(part.answer)
        if len(parts) == part.parts:
            self.complete[part.offset] = part.parts
        return True

    def clear(self) -> None:
        """Drop all answers."""
        self.parts.clear()
        self.complete.clear()
        self.size_bytes = 0

    def drop(self, offset: int) -> None:
        """Drop the answers up to an offset of the log."""
        for earlier in [one for one in self.parts if one <= offset]:
            self.size_bytes -= sum(len(answer) for answer, _ in self.parts.pop(earlier).values())
            self.complete.pop(earlier, None)


class AnswerReader:
    """Reads `topic` for so many shards of the log with an identity.

    done: offset of the last message of the log whose answers are not needed. positions: of the partitions, from which
    on all later answers are there; 0 where there is none. None: those of other shards are known, so each partition is
    read from where it begins now. verify: compare replicas. based_on: the last sequence of the log's bases; 0: none.

    Raises as `connect`, and UnreachableError if no broker says where partitions begin.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        shards: int,
        log: str,
        *,
        done: int = -1,
        positions: Mapping[int, int] | None = None,
        verify: bool = False,
        based_on: int = 0,
    ) -> None:
        self._topic, self._shards, self._log, self._done, self._verify = topic, shards, log, done, verify
        self._based_on = based_on
        self._waiting = [_Waiting() for _ in range(shards)]
        self._kept: OrderedDict[tuple[int, int, int], bytes] = OrderedDict()
        self._kept_bytes = 0
        self._newest = [-1] * shards
        self._cut: set[int] = set()
        self.compared = 0
        """Parts that replicas have answered alike."""
        self._reader = AssignedConsumer(connection, _FETCH_BYTES, topic)
        try:
            self._reader.assign(self._begin(positions))
        except BaseException:
            self._reader.close()
            raise

    @property
    def size_bytes(self) -> int:
        """Bytes of the answers that wait."""
        return sum(waiting.size_bytes for waiting in self._waiting)

    def poll(self, timeout_s: float, next_message: int | None = None) -> int:
        """Read answers; return how many messages came. next_message: of the log, whose answers are taken next.

        AnswersDifferError if replicas differ; StateError for answers of another log, and if answers that are needed
        were deleted.
        """
        try:
            records = self._reader.poll(timeout_s, _AT_ONCE, self._full(next_message)) or []
        except POSITION_LOST as error:
            raise StateError(self._lost()) from error
        for record in records:
            self._take(record)
        return len(records)

    def has(self, offset: int) -> bool:
        """Whether all shards have answered to the message at `offset` of the log."""
        return all(offset in waiting.complete for waiting in self._waiting)

    def missing(self, offset: int) -> list[str]:
        """Return the names of the shards that have not answered to the message at `offset`."""
        return [
            f"{index + 1}/{self._shards}"
            for index, waiting in enumerate(self._waiting)
            if offset not in waiting.complete
        ]

    def take(self, offset: int) -> list[MessageAnswer]:
        """Return the answers of all shards to a message, which `has` them; earlier ones are dropped."""
        answers = []
        for waiting in self._waiting:
            parts = waiting.parts[offset]
            answers.append(decode_answer(offset, [parts[part][0] for part in range(waiting.complete[offset])]))
            waiting.drop(offset)
        self._done = offset
        self._cut.clear()
        return answers

    def require(self, offset: int) -> None:
        """Raise StateError if the answers to the message at `offset` are lost.

        They are if a shard has answered to later ones alone, or where it began was deleted, and nothing is left to
        read. If no broker says so, nothing is known.
        """
        lost = [
            TopicPartition(self._topic, index)
            for index, waiting in enumerate(self._waiting)
            if offset not in waiting.complete and (index in self._cut or self._newest[index] > offset)
        ]
        if not lost:
            return
        with suppress(UnreachableError):
            ends = self._reader.ask(
                lambda reader: dict(reader.end_offsets(lost, timeout_ms=_ASK_S * 1000)), f"where {self._topic} ends", 0
            )
            if any(self._reader.positions[partition] >= end for partition, end in ends.items()):
                raise StateError(self._lost())

    def positions(self) -> dict[int, int]:
        """Return where in each partition the answers begin that were not taken."""
        now = {partition.partition: offset for partition, offset in self._reader.positions.items()}
        for index, waiting in enumerate(self._waiting):
            needed = [at for parts in waiting.parts.values() for _, at in parts.values()]
            now[index] = min([*needed, now[index]])
        return now

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    def _full(self, next_message: int | None) -> list[TopicPartition]:
        """Return the partitions that have more than their share, and what is needed next."""
        full = []
        for index, waiting in enumerate(self._waiting):
            if waiting.size_bytes <= _MAX_WAITING_BYTES // self._shards or not waiting.complete:
                continue
            if next_message is None or next_message in waiting.complete:
                full.append(TopicPartition(self._topic, index))
            elif next_message not in waiting.parts:  # it was lost: who answers to it again answers to all later ones
                waiting.clear()
        return full

    def _begin(self, positions: Mapping[int, int] | None) -> dict[TopicPartition, int]:
        """Return where to begin in each partition: at its position, or where it begins if that is gone."""
        partitions = [TopicPartition(self._topic, index) for index in range(self._shards)]
        begins = self._reader.ask(
            lambda reader: dict(reader.beginning_offsets(partitions, timeout_ms=_ASK_S * 1000)),
            f"where {self._topic} begins",
            _ANSWER_S,
        )
        if positions is None:
            return begins
        wanted = {partition: positions.get(partition.partition, 0) for partition in partitions}
        self._cut = {partition.partition for partition, at in wanted.items() if begins[partition] > at}
        if self._cut:
            _LOG.warning("%s", self._lost())
        return {partition: max(at, begins[partition]) for partition, at in wanted.items()}

    def _lost(self) -> str:
        return (
            f"{self._topic} does not have all answers behind message {self._done} of the log any more: continue from a "
            "copy of the --state of another resolver, or let the shards answer again (`serve --steps shard "
            "--answer-all`, with an empty --state if theirs is of a later message), and give the topic a longer "
            "retention. A resolver that asked another number of shards before goes on with that number (--shards) first"
        )

    def _take(self, record: ConsumerRecord) -> None:
        part = decode_answer_part(record.value)
        if part.number.of != self._shards:
            return
        if part.number.index - 1 != record.partition or part.log != self._log:
            raise StateError(
                f"{self._topic} has answers of shard {part.number} of log {part.log} in partition {record.partition}; "
                f"this is the resolver of log {self._log}: give that shard the right --prefix and --bootstrap"
            )
        self._newest[record.partition] = max(self._newest[record.partition], part.offset)
        first = self._verify and not self._compare(part)
        if part.offset > self._done and self._waiting[part.number.index - 1].put(part, record.offset) and first:
            self._keep(part)

    def _compare(self, part: AnswerPart) -> bool:
        """Compare a part with that of an earlier replica; return whether there was one."""
        earlier = self._kept.get((part.number.index, part.offset, part.part))
        if earlier is None:
            return False
        place = differing(earlier, part.answer)
        if place is None:
            self.compared += 1
        elif not self._of_bases(part, earlier):
            raise AnswersDifferError(self._difference(part, earlier, place))
        return True

    def _of_bases(self, part: AnswerPart, earlier: bytes) -> bool:
        """Whether a part or an earlier one speaks of pages of bases, as far as a part alone says so."""
        if not self._based_on or part.parts > 1:
            return self._based_on > 0
        answers = (decode_answer(part.offset, [value]) for value in (earlier, part.answer))
        return any(sequence <= self._based_on for answer in answers for sequence in answer.names)

    def _difference(self, part: AnswerPart, earlier: bytes, place: int) -> str:
        around = slice(max(0, place - 40), place + 40)
        pages = ""
        if part.parts == 1:
            pages = _first_difference(decode_answer(part.offset, [earlier]), decode_answer(part.offset, [part.answer]))
        return (
            f"two replicas of shard {part.number} give different answers to message {part.offset} of the log: {pages}"
            f"from byte {place} of part {part.part + 1} on, {earlier[around]!r} and {part.answer[around]!r}. Stop the "
            "replica that is wrong, delete its --state, and start it again; the resolver goes on when it is started"
        )

    def _keep(self, part: AnswerPart) -> None:
        key = part.number.index, part.offset, part.part
        self._kept[key] = part.answer
        self._kept_bytes += len(part.answer)
        while self._kept_bytes > _VERIFIED_BYTES:
            _, value = self._kept.popitem(last=False)
            self._kept_bytes -= len(value)


def _first_difference(one: MessageAnswer, other: MessageAnswer) -> str:
    """Say for which page two answers differ first, and what each has for it."""
    ordinal = one.first
    for ours, theirs in zip(one.batches, other.batches, strict=False):
        for found in zip(found_in_answer(ours), found_in_answer(theirs), strict=False):
            if found[0] != found[1]:
                urls = [
                    [answer.names.get(sequence, ("", str(sequence)))[1] for sequence in sequences]
                    for answer, sequences in zip((one, other), found, strict=True)
                ]
                return f"of the page with ordinal {ordinal}, one has {urls[0]}, the other {urls[1]}; "
            ordinal += 1
    return ""
