"""Answers that retention deleted."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from dedup_service.core.errors import StateError
from dedup_service.core.shards.answers import MessageAnswer
from dedup_service.core.shards.shard import ShardNumber
from dedup_service.runtime.kafka.client.assigned_consumer import POSITION_LOST
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.messages.shard_messages import answer_parts
from dedup_service.runtime.kafka.shards import answer_reader
from dedup_service.runtime.kafka.shards.answer_reader import AnswerReader

PARTITION = TopicPartition("candidates", 0)


@dataclass(frozen=True)
class Read:
    """A record as a consumer returns it."""

    partition: int
    offset: int
    value: bytes


class Partition:
    """A partition whose first `deleted` records are gone, as the reader and as the library's consumer see it."""

    def __init__(self, offsets: list[int], deleted: int) -> None:
        values = [next(answer_parts(MessageAnswer(at, 0), ShardNumber(1, 1), "a-log")) for at in offsets]
        self._records = [Read(0, place, value) for place, value in enumerate(values)]
        self._deleted = deleted
        self.positions: dict[TopicPartition, int] = {}

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read from these offsets."""
        self.positions = dict(offsets)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at an offset."""
        self.positions[partition] = offset

    def poll(self, _timeout_s: float, _most: int, paused: Collection[TopicPartition]) -> list[Read]:
        """Return the next two records."""
        at = self.positions[PARTITION]
        if not self._deleted <= at <= len(self._records):
            raise POSITION_LOST[0]
        found = [] if PARTITION in paused else self._records[at : at + 2]
        self.positions[PARTITION] += len(found)
        return found

    def ask(self, request: Callable[[Any], Any], _what: str, _timeout_s: float) -> Any:
        """Return what a request returns."""
        return request(self)

    def beginning_offsets(self, _partitions: list[TopicPartition], timeout_ms: float) -> dict[TopicPartition, int]:
        """Return the first offset."""
        assert timeout_ms
        return {PARTITION: self._deleted}

    def end_offsets(self, _partitions: list[TopicPartition], timeout_ms: float) -> dict[TopicPartition, int]:
        """Return the offset behind the last record."""
        assert timeout_ms
        return {PARTITION: len(self._records)}

    def known_end(self, _partition: TopicPartition, _otherwise: int) -> int:
        """Return the offset behind the last record."""
        return len(self._records)


def reader_of(monkeypatch: pytest.MonkeyPatch, partition: Partition, done: int, position: int | None) -> AnswerReader:
    """A resolver's reader of a partition."""
    monkeypatch.setattr(answer_reader, "AssignedConsumer", lambda *_: partition)
    positions = {} if position is None else {0: position}
    return AnswerReader(Connection("nowhere:9092"), "candidates", 1, "a-log", done=done, positions=positions)


def poll_until(reader: AnswerReader, offset: int) -> None:
    """Poll until all shards have answered to a message."""
    for _ in range(20):
        if reader.has(offset):
            return
        reader.poll(0.0)
    raise AssertionError(f"the answer to {offset} was not found")


@pytest.mark.parametrize("position", [None, 2])
def test_answers_that_are_not_needed_may_be_deleted(monkeypatch: pytest.MonkeyPatch, position: int | None) -> None:
    """A resolver that begins with another number of shards, or whose position is gone, goes on where it can."""
    reader = reader_of(monkeypatch, Partition([0, 2, 4, 6, 8, 10], deleted=3), done=5, position=position)
    poll_until(reader, 6)


@pytest.mark.parametrize("room", [1 << 20, 0])
def test_answers_that_come_again_are_found_behind_later_ones(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """What a shard answers again with --answer-all is read, also if later answers have filled the memory by then."""
    monkeypatch.setattr(answer_reader, "_MAX_WAITING_BYTES", room)
    reader = reader_of(monkeypatch, Partition([0, 2, 4, 6, 8, 10, 2, 4, 6, 8, 10], deleted=3), done=0, position=1)
    for offset in (2, 4, 6, 8, 10):
        poll_until(reader, offset)
        assert [answer.offset for answer in reader.take(offset)] == [offset]


def test_a_resolver_stops_if_an_answer_that_it_needs_was_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the message, the shard, and what to do."""
    reader = reader_of(monkeypatch, Partition([0, 2, 4, 6, 8], deleted=3), done=0, position=1)
    with pytest.raises(StateError, match=r"shard 1/1 to message 2 .* any more.*--answer-all"):
        poll_until(reader, 2)


def test_a_partition_that_ends_before_the_position_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that lost records, or was created again, is not read from its beginning."""
    reader = reader_of(monkeypatch, Partition([0, 2], deleted=0), done=0, position=5)
    with pytest.raises(StateError, match="ends at 2 in partition 0"):
        poll_until(reader, 2)
