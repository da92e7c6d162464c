"""The step of a shard, with topics in memory."""

import shutil
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dedup_service.core.log_records import (
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RetractionRecord,
    Source,
    sequence_at,
)
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.shards.shard import Shard, ShardNumber
from dedup_service.core.verdict import Action
from dedup_service.runtime.kafka.messages.shard_messages import decode_outcome
from dedup_service.runtime.kafka.shards.restore import restore_shard
from dedup_service.runtime.kafka.state.deciding_store import tail_of
from dedup_service.runtime.kafka.state.local_state import LocalState
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes
from dedup_service.runtime.kafka.state.shard_state import ShardReplica
from dedup_service.runtime.kafka.topics import Topics
from tests.core.shards.test_shards import SPACE
from tests.oracle.crawl import Crawl
from tests.sharded_run import LoggedMessage, ShardedRun, messages_of, parts_of


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


class Log(Reader):
    """The log, for a restore."""

    @property
    def position(self) -> int:
        """Offset of the next message."""
        return self._records[self.next].offset if self.next < len(self._records) else self.end()

    def end(self) -> int:
        """Return the offset behind the last message."""
        return self._records[-1].offset + 1

    def seek(self, offset: int) -> None:
        """Go on at an offset."""
        self.next = sum(record.offset < offset for record in self._records)

    def read_one(self, offset: int) -> Read | None:
        """Return the first message at or behind an offset."""
        return next((record for record in self._records if record.offset >= offset), None)


def log_with_a_retraction() -> tuple[Policy, list[LoggedMessage]]:
    """Forty pages in messages of eight; the first page is retracted."""
    policy = Policy(rule_for(), Action.FLAG, SPACE, IndexLayout(slots=8, window=8))
    crawl = Crawl(1, 200)
    pages = [crawl.page() for _ in range(40)]
    batches: list[list[LogRecord]] = [[PolicyRecord(policy, initial=True, log="a-log")]]
    for first in range(0, 40, 8):
        some = enumerate(pages[first : first + 8], first)
        batches.append([PageRecord(Source("pages", 0, at), page, SPACE) for at, page in some])
        if first == 0:
            batches.append([RetractionRecord(pages[0].page.canonical_url, "taken down")])
    return policy, messages_of(batches)


NUMBER = ShardNumber(1, 2)


def snapshot_of(messages: Sequence[LoggedMessage], folder: Path) -> None:
    """Let a folder have the snapshot of a shard at the end of a log."""
    resolved = ShardedRun(NUMBER.of)
    list(resolved.decide(messages))
    outcomes = [decode_outcome(value)[1] for value in resolved.outcomes]
    with LocalState.open(folder) as local:
        local.names.begin("a-log", -1, lambda _at: {})
        local.pages.begin(None)
        shard = Shard(NUMBER, local.names, entries=local.pages.entries)
        for message, outcome in zip(messages, outcomes, strict=True):
            shard.begin(message.offset, parts_of(message))
            shard.answer()
            shard.learn(outcome)
        local.take_snapshot(ShardReplica(shard), PendingOutcomes(), tail_of(messages[-1].value))


def restored_from(local: LocalState, policy: Policy, messages: Sequence[LoggedMessage]) -> Shard:
    """Restore the shard of a folder."""
    log: Any = Log([Read(message.offset, message.value) for message in messages], 1000)
    stop = threading.Event()
    restored = restore_shard(NUMBER, local, log, "a-log", policy, Topics(""), answered=-1, stop=stop)
    assert restored is not None
    return restored.shard


@pytest.mark.parametrize("damage", ["short", "altered"])
def test_a_damaged_file_lets_a_shard_begin_with_the_log_again(tmp_path: Path, damage: str) -> None:
    """Whichever file of the kept pages is damaged, the shard starts: from the snapshot, or with an empty folder."""
    policy, messages = log_with_a_retraction()
    snapshot_of(messages, tmp_path / "whole")
    files = [path.name for path in (tmp_path / "whole" / "pages").iterdir()]
    assert len(files) > 2
    offsets: set[int] = set()
    for name in files:
        folder = tmp_path / f"{name}.damaged"
        shutil.copytree(tmp_path / "whole", folder)
        content = (folder / "pages" / name).read_bytes()
        half = len(content) // 2
        altered = (
            content[:half] if damage == "short" else content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]
        )
        (folder / "pages" / name).write_bytes(altered)
        with LocalState.open(folder) as local:
            offsets.add(restored_from(local, policy, messages).offset)
    assert -1 in offsets


def test_names_that_are_lost_are_read_from_the_log_without_those_of_others(tmp_path: Path) -> None:
    """A name that is missing is read again, and none of a page that was taken down, or is of another shard."""
    policy, messages = log_with_a_retraction()
    snapshot_of(messages, tmp_path / "shard")
    (tmp_path / "shard" / "names.sqlite").unlink()
    with LocalState.open(tmp_path / "shard") as local:
        shard = restored_from(local, policy, messages)
        held = [at for at in range(sequence_at(2), sequence_at(2, 8)) if shard.holds(at)]
        assert len(held) >= 2
        local.names.name(held[0])
        local.names.flush()
    with closing(sqlite3.connect(tmp_path / "shard" / "names.sqlite")) as names:
        assert [sequence for (sequence,) in names.execute("SELECT sequence FROM name ORDER BY 1")] == held
