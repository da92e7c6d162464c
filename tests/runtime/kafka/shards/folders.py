"""Shards in folders, over a log in memory: as `ShardStep` takes their snapshots, and as a start restores them."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dedup_service.core.log_records import Policy, PolicyRecord
from dedup_service.core.shards.outcomes import MessageOutcome
from dedup_service.core.shards.shard import Shard, ShardNumber
from dedup_service.runtime.kafka.messages.log_record import decode
from dedup_service.runtime.kafka.messages.shard_messages import answer_parts
from dedup_service.runtime.kafka.shards.restore import restore_shard
from dedup_service.runtime.kafka.state.deciding_store import tail_of
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes
from dedup_service.runtime.kafka.state.shard_state import ShardReplica
from dedup_service.runtime.kafka.topics import Topics
from tests.runtime.kafka.state.list_log import ListLog
from tests.sharded_run import LoggedMessage, parts_of

LOG = "a-log"
TOPICS = Topics("")


class MessageLog(ListLog):
    """A log with these messages. seeks: where names were read."""

    def __init__(self, messages: Sequence[LoggedMessage]) -> None:
        super().__init__([])
        self.records = list(messages)  # type: ignore[arg-type]
        self.seeks: list[int] = []

    def seek(self, offset: int) -> None:
        self.seeks.append(offset)
        super().seek(offset)


def policy_of(messages: Sequence[LoggedMessage]) -> Policy:
    """The first policy of a log."""
    (record,) = decode(messages[0].value)
    assert isinstance(record, PolicyRecord)
    return record.policy


class FolderShard:
    """Shard `number` in `folder`; outcomes_at: the place in the topic of outcomes behind those that it has learned."""

    def __init__(self, number: ShardNumber, local: LocalState, messages: Sequence[LoggedMessage]) -> None:
        self.local, self.messages = local, messages
        self.log = MessageLog(messages)
        restored = restore_shard(
            number,
            local,
            self.log,  # type: ignore[arg-type]
            LOG,
            policy_of(messages),
            TOPICS,
            answered=-1,
            stop=threading.Event(),
        )
        assert restored is not None
        self.shard: Shard = restored.shard
        self.outcomes_at = restored.outcomes_at
        self.log.seeks.clear()

    def answer(self, message: LoggedMessage, outcomes: Sequence[MessageOutcome]) -> list[bytes]:
        """The answer to the next message, as it is sent."""
        self.shard.begin(message.offset, parts_of(message))
        while not self.shard.is_ready:
            self.shard.learn(outcomes[self.outcomes_at])
            self.outcomes_at += 1
        return list(answer_parts(self.shard.answer(), self.shard.number, LOG))

    def answer_to(self, end: int, outcomes: Sequence[MessageOutcome]) -> dict[int, list[bytes]]:
        """The answers to all messages up to before number `end`, by offset."""
        return {
            message.offset: self.answer(message, outcomes)
            for message in self.messages[:end]
            if message.offset > self.shard.offset
        }

    def learn(self, outcomes: Sequence[MessageOutcome]) -> None:
        """Learn all outcomes of messages that the shard has answered to."""
        while self.outcomes_at < len(outcomes) and outcomes[self.outcomes_at].offset <= self.shard.offset:
            self.shard.learn(outcomes[self.outcomes_at])
            self.outcomes_at += 1

    def snapshot(self) -> None:
        """Take a snapshot, and wait until it is durable."""
        written = PendingOutcomes()
        written.written_below(TOPICS.outcomes, 0, self.outcomes_at)
        tail = tail_of(next(message.value for message in self.messages if message.offset == self.shard.offset))
        self.local.take_snapshot(ShardReplica(self.shard), written, tail)
        assert self.local.pages.wait()


@contextmanager
def opened(number: str, folder: Path, messages: Sequence[LoggedMessage]) -> Iterator[FolderShard]:
    """Open a shard in its folder, as a start does."""
    with LocalState.open(folder) as local:
        yield FolderShard(ShardNumber.parse(number), local, messages)
