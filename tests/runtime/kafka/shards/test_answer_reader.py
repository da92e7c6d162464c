"""Answers of shards are put together in whatever order and pieces they come."""

from collections.abc import Callable, Collection, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from dedup_service.core.errors import StateError
from dedup_service.core.shards.answers import MessageAnswer
from dedup_service.core.shards.candidates import AnswersDifferError
from dedup_service.core.shards.shard import ShardNumber
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.connect import TopicPartition
from dedup_service.runtime.kafka.messages import shard_messages
from dedup_service.runtime.kafka.messages.shard_messages import answer_parts
from dedup_service.runtime.kafka.shards import answer_reader
from dedup_service.runtime.kafka.shards.answer_reader import AnswerReader

PARTITION = TopicPartition("candidates", 0)


class Topic:
    """A topic in memory with one partition; records come one at a time. begins: its first offset."""

    values: ClassVar[list[bytes]] = []
    begins = 0

    def __init__(self, *_arguments: Any) -> None:
        self.positions: dict[TopicPartition, int] = {}

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.positions = dict(offsets)

    def ask(self, request: Callable[[Any], dict[TopicPartition, int]], *_arguments: Any) -> dict[TopicPartition, int]:
        return request(self)

    def beginning_offsets(self, *_arguments: Any, **_named: Any) -> dict[TopicPartition, int]:
        return {PARTITION: self.begins}

    def end_offsets(self, *_arguments: Any, **_named: Any) -> dict[TopicPartition, int]:
        return {PARTITION: self.begins + len(self.values)}

    def poll(self, _timeout_s: float, _records: int, paused: Collection[TopicPartition]) -> list[Any]:
        at = self.positions[PARTITION]
        if paused or at - self.begins >= len(self.values):
            return []
        self.positions[PARTITION] = at + 1
        return [SimpleNamespace(value=self.values[at - self.begins], partition=0, offset=at)]


def parts_of(*offsets: int) -> list[bytes]:
    """The answers of shard 1/1 to some messages, which have no pages."""
    return [part for at in offsets for part in answer_parts(MessageAnswer(at, 0), ShardNumber(1, 1), "a-log")]


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> type[Topic]:
    """The topic that readers read."""
    monkeypatch.setattr(answer_reader, "AssignedConsumer", Topic)
    monkeypatch.setattr(Topic, "values", [])
    monkeypatch.setattr(Topic, "begins", 0)
    return Topic


def read(reader: AnswerReader, offset: int) -> None:
    """Read until the answer to a message is there."""
    while not reader.has(offset):
        assert reader.poll(0.0, offset), f"message {offset} is not answered"


def test_answers_that_are_given_again_come_behind_more_than_there_is_room_for(
    topic: type[Topic], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later answers that fill the room make way for the one that is needed next, and come again behind it."""
    monkeypatch.setattr(answer_reader, "_MAX_WAITING_BYTES", 30)
    topic.values, topic.begins = parts_of(*range(50, 80), *range(80)), 100
    reader = AnswerReader(Connection("nowhere:1"), "candidates", 1, "a-log", positions={})
    for offset in range(80):
        read(reader, offset)
        assert [answer.offset for answer in reader.take(offset)] == [offset]
        assert reader.size_bytes < 60


def test_answers_are_lost_if_nothing_is_left_to_read_and_later_ones_came(topic: type[Topic]) -> None:
    """Until all is read, or while nobody has answered to a later message, they may come."""
    topic.values = parts_of(0, 2)
    reader = AnswerReader(Connection("nowhere:1"), "candidates", 1, "a-log", positions={})
    read(reader, 0)
    reader.take(0)
    reader.require(1)
    reader.poll(0.0, 1)
    with pytest.raises(StateError, match=r"not have all answers behind message 0 .*another resolver.*--answer-all"):
        reader.require(1)
    topic.values = [*topic.values, *parts_of(1)]
    reader.require(1)
    read(reader, 1)
    reader.require(1)


def test_answers_are_lost_if_all_were_deleted_before_the_first_was_read(topic: type[Topic]) -> None:
    """Shards wait for outcomes then, so no later answer comes. One that is taken shows that others follow."""
    topic.begins = 100
    reader = AnswerReader(Connection("nowhere:1"), "candidates", 1, "a-log", positions={0: 40}, done=6)
    with pytest.raises(StateError, match="not have all answers behind message 6 "):
        reader.require(7)
    topic.values = parts_of(7)
    read(reader, 7)
    reader.take(7)
    reader.require(8)


def test_parts_of_replicas_make_one_answer(topic: type[Topic], monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica that is killed between two parts leaves the rest to another one, or to its next start."""
    monkeypatch.setattr(shard_messages, "MAX_PART_BYTES", 1)
    one = parts_of(7)
    assert len(one) > 2
    topic.values = [*one[:2], *one]
    reader = AnswerReader(Connection("nowhere:1"), "candidates", 1, "a-log", positions={}, verify=True)
    read(reader, 7)
    assert [answer.offset for answer in reader.take(7)] == [7]
    assert reader.compared == 2
    assert reader.positions() == {0: len(topic.values)}


@pytest.mark.parametrize(("based_on", "passes"), [(0, False), (31, False), (32, True)])
def test_replicas_may_differ_in_what_they_say_of_pages_of_bases(
    topic: type[Topic], based_on: int, passes: bool
) -> None:
    """A base loses a page between the answers of two replicas; any other difference is a fault."""
    names = ("32", "https://corpus.test/32"), ("https://corpus.test/#erased-32",) * 2
    answers = [MessageAnswer(7, 0, names={32: name}) for name in names]
    topic.values = [part for answer in answers for part in answer_parts(answer, ShardNumber(1, 1), "a-log")]
    reader = AnswerReader(
        Connection("nowhere:1"), "candidates", 1, "a-log", positions={}, verify=True, based_on=based_on
    )
    read(reader, 7)
    if passes:
        reader.poll(0.0, 7)
        assert reader.take(7)[0].names == {32: names[0]}
    else:
        with pytest.raises(AnswersDifferError, match="different answers"):
            reader.poll(0.0, 7)
