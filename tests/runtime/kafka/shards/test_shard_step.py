"""The step of a shard with topics in memory: it survives damage to its folder, and takes snapshots while it waits."""

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dedup_service.core.log_records import LogRecord
from dedup_service.core.shards.outcomes import REMOVAL, MessageOutcome
from dedup_service.core.shards.shard import ShardNumber
from dedup_service.runtime.events import Observers
from dedup_service.runtime.kafka.messages.shard_messages import encode_outcome
from dedup_service.runtime.kafka.shards.restore import restore_shard
from dedup_service.runtime.kafka.shards.shard_step import ShardStep
from dedup_service.runtime.kafka.state.local_state import PAGES_FOLDER, LocalState
from dedup_service.runtime.kafka.topics import Topics
from tests.runtime.kafka.state.list_log import ListLog, Stored, first, page

SHARD = ShardNumber(1, 1)
TOPICS = Topics()
WINDOW = first().policy.layout.window


class ClosableLog(ListLog):
    """A log in memory for a step that closes it. others: messages in place of records of the log."""

    def __init__(self, records: Sequence[LogRecord] = (), others: Iterable[bytes] = ()) -> None:
        super().__init__(records)
        self.records += [Stored(2 * number, value) for number, value in enumerate(others)]

    def close(self) -> None:
        pass


class Answers:
    """Keeps what is appended."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []

    def open(self, stop: threading.Event | None = None) -> None:
        pass

    def append(self, messages: Iterable[Any]) -> list[int]:
        self.values += [message.value for message in messages]
        return list(range(len(self.values)))

    def close(self) -> None:
        pass


def log_of(pages: int) -> list[LogRecord]:
    """A log of so many pages, all of them of other stories, each in a message of its own."""
    return [first(), *(page(number, f"u{number}", number) for number in range(pages))]


def outcomes_of(pages: int) -> list[bytes]:
    """The outcomes of that log, in which all pages are kept."""
    none = np.empty(0, REMOVAL)
    outcomes = [MessageOutcome(0, 0, np.empty(0, np.bool_), none)]
    outcomes += [MessageOutcome(2 * number + 2, number, np.ones(1, np.bool_), none) for number in range(pages)]
    return [encode_outcome(outcome, "a-log") for outcome in outcomes]


def step_of(local: LocalState, log: ClosableLog, outcomes: ClosableLog, answers: Answers) -> ShardStep:
    """The step, as a service makes it."""
    restored = restore_shard(
        SHARD,
        local,
        log,
        "a-log",
        first().policy,
        TOPICS,
        answered=-1,
        stop=threading.Event(),  # type: ignore[arg-type]
    )
    assert restored is not None
    outcomes.seek(restored.outcomes_at)
    return ShardStep(TOPICS, local, restored, log, outcomes, answers, Observers([]))  # type: ignore[arg-type]


def run_once(folder: Path, log: list[LogRecord], outcomes: list[bytes]) -> list[bytes | None]:
    """Run a shard until it has read all, and return its answers; a snapshot is in the folder then."""
    answers = Answers()
    with LocalState.open(folder) as local:
        step = step_of(local, ClosableLog(log), ClosableLog(others=outcomes), answers)
        with local.pages.in_use():
            while step.turn(threading.Event()):
                pass
            step._take_snapshot()
    return answers.values


@pytest.mark.parametrize("name", ["*.evidence", "*.rows", "manifest*"])
def test_damage_to_a_folder_costs_a_shard_time_alone(tmp_path: Path, name: str) -> None:
    """A shard whose folder is damaged begins again from the log and the outcomes, and gives the same answers."""
    pages = 4 * WINDOW
    expected = run_once(tmp_path, log_of(pages), outcomes_of(pages))
    names = [path.name for path in (tmp_path / PAGES_FOLDER).glob(name)]
    assert names, list((tmp_path / PAGES_FOLDER).iterdir())
    for path in (tmp_path / PAGES_FOLDER).glob(name):
        content = path.read_bytes()
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    assert run_once(tmp_path, log_of(pages), outcomes_of(pages)) == expected


def test_a_shard_that_waits_for_outcomes_all_the_time_takes_snapshots(tmp_path: Path) -> None:
    """A shard that is always a window ahead has a message that is not ready at the end of each turn."""
    pages = 20 * WINDOW
    outcomes, answers = ClosableLog(), Answers()
    with LocalState.open(tmp_path, snapshot_every=2) as local:
        step = step_of(local, ClosableLog(log_of(pages)), outcomes, answers)
        with local.pages.in_use():
            for number, value in enumerate(outcomes_of(pages)[: pages // 2]):
                outcomes.records.append(Stored(2 * number, value))
                outcomes.position = min(outcomes.position, 2 * number)
                step.turn(threading.Event())
                local.pages.wait()
    with LocalState.open(tmp_path) as local:
        stored = local.pages.stored()
    assert stored is not None
