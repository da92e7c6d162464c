"""Restore from a real log, with transactions and their markers."""

from pathlib import Path
from typing import Protocol

from benchmarks.restore import RestoreRun, fill, restored
from dedup_service.runtime.kafka.state.local_state import NAMES_FILE
from dedup_service.runtime.kafka.topics import Topics


class HasBootstrap(Protocol):
    @property
    def bootstrap(self) -> str: ...


def test_a_state_is_restored_from_the_log_and_from_its_snapshot(
    broker: HasBootstrap, topics: Topics, tmp_path: Path
) -> None:
    """The state is the expected one: from the log, from a snapshot, and without page names."""
    run = RestoreRun(broker.bootstrap, topics.prefix, tmp_path, shards=2)
    fill(run, 0, 4_000)
    assert restored(run, 4_000, "log").records == 4_000 + 1 + 3  # the policy, and a marker for each transaction
    fill(run, 4_000, 6_000)
    assert restored(run, 6_000, "both").records == 2_000 + 1 + 1  # the last marker before the snapshot, and one more
    (tmp_path / NAMES_FILE).unlink()
    fill(run, 6_000, 8_000)
    assert restored(run, 8_000, "no names").records == 2_000 + 1 + 1
