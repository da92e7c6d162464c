"""A resolver goes on from its folder, and begins again if the folder is damaged."""

import shutil
import threading
from pathlib import Path

import pytest

from dedup_service.core.log_records import sequence_at
from dedup_service.runtime.kafka.messages.log_record import log_parts
from dedup_service.runtime.kafka.shards.restore import RestoredResolver, restore_resolver
from dedup_service.runtime.kafka.state.deciding_store import tail_of
from dedup_service.runtime.kafka.state.local_state import PAGES_FOLDER, LocalState
from dedup_service.runtime.kafka.topics import Topics
from tests.runtime.kafka.state.list_log import ListLog, first

TOPICS = Topics()
POSITIONS = {(TOPICS.candidates, 0): 7, (TOPICS.candidates, 1): 3}


def restored_in(local: LocalState, log: ListLog, shards: int = 2) -> RestoredResolver:
    """The resolver of a folder."""
    found = restore_resolver(
        shards,
        local,
        log,  # type: ignore[arg-type]
        "a-log",
        first().policy,
        {},
        TOPICS,
        stop=threading.Event(),
    )
    assert found is not None
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a resolver that has read the first message of its log."""
    folder, log = tmp_path_factory.mktemp("resolver"), ListLog([first()])
    with LocalState.open(folder) as local:
        restored = restored_in(local, log).restored
        messages = log.poll(0.0, 1)
        restored.replica.apply_parts(log_parts(messages))  # type: ignore[arg-type]
        outcomes = restored.pending_outcomes.copy()
        outcomes.written.update(POSITIONS)
        local.take_snapshot(restored.replica, outcomes, tail_of(messages[0].value), nameless_to=None)
    return folder


def test_answers_are_read_from_where_the_snapshot_says(folder: Path) -> None:
    """Answers of another number of shards begin elsewhere, so that their partitions are read from their beginnings."""
    with LocalState.open(folder) as local:
        restored = restored_in(local, ListLog([first()]))
        assert (restored.done, restored.positions) == (0, {0: 7, 1: 3})
    with LocalState.open(folder) as local:
        restored = restored_in(local, ListLog([first()]), shards=1)
        assert (restored.done, restored.positions) == (0, None)


def test_damage_to_a_folder_costs_a_resolver_time_alone(folder: Path, tmp_path: Path) -> None:
    """Whichever file is damaged, the resolver goes on from the snapshot or from the beginning of the log."""
    dones = set()
    names = [path.name for path in (folder / PAGES_FOLDER).iterdir()]
    for name in names:
        copy = tmp_path / name
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("lock"))
        path = copy / PAGES_FOLDER / name
        path.write_bytes(b"rubbish")
        with LocalState.open(copy) as local:
            restored = restored_in(local, ListLog([first()]))
        assert restored.restored.replica.sequence == (sequence_at(0) if restored.done == 0 else -1)
        dones.add(restored.done)
    assert -1 in dones
