"""The step of a shard, with topics in memory."""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.sharded_run import ShardedRun, messages_of
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.shards.shard import Shard, ShardNumber
from dedup_service.runtime.events import Observers
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.shards.shard_step import RestoredShard, ShardStep
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.topics import Topics
from tests.core.shards.test_shards import log_of


@dataclass(frozen=True)
class Read:
    """A record as a consumer returns it."""

    offset: int
    value: bytes


class Reader:
    """Returns some records with each poll."""

    def __init__(self, records: Sequence[Read], at_once: int) -> None:
        self._records, self._at_once, self.next = records, at_once, 0

    def poll(self, _timeout_s: float, most: int) -> list[Read]:
        """Return the next records."""
        found = list(self._records[self.next : self.next + min(most, self._at_once)])
        self.next += len(found)
        return found

    def close(self) -> None:
        """Do nothing."""


class Appender:
    """Keeps what is appended."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def append(self, messages: Iterable[Message]) -> list[int]:
        """Append messages."""
        self.messages += messages
        return []


def test_a_shard_that_always_waits_for_outcomes_takes_snapshots(tmp_path: Path) -> None:
    """While the resolver is the slower one, a message is begun at the end of each turn; a snapshot comes before it."""
    messages = messages_of(list(log_of(5, 200, rule_for(), window=16, most=16)))
    resolved = ShardedRun(1)
    list(resolved.decide(messages))
    outcomes = [Read(place, value) for place, value in enumerate(resolved.outcomes)]
    with LocalState.open(tmp_path / "shard", snapshot_every=32) as local:
        local.names.begin("a-log", -1, lambda _at: {})
        local.pages.begin(None)
        shard = Shard(ShardNumber(1, 1), local.names, entries=local.pages.entries)
        step = ShardStep(
            Topics(""),
            local,
            RestoredShard(shard, "a-log", "", 0),
            Reader([Read(message.offset, message.value) for message in messages], 1000),  # type: ignore[arg-type]
            Reader(outcomes, 1),  # type: ignore[arg-type]
            Appender(),  # type: ignore[arg-type]
            Observers([]),
        )
        while shard.offset < messages[-1].offset // 2:
            step.turn(threading.Event())
            local.pages.wait()
        stored = local.pages.stored()
    assert stored is not None, "there is no snapshot"
