"""The kept pages of a service while they are in use: damage, readers in other threads, and the end."""

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from dedup_service._native import Entry
from dedup_service.core.decision.decider import Decider, DeciderState
from dedup_service.core.decision.entries import RemovedEntry
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.decision.replica import Replica, ReplicaState
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import LogRecord, sequence_at
from dedup_service.core.shards.candidates import ShardCandidates
from dedup_service.runtime.kafka.messages.log_record import decode, encode
from dedup_service.runtime.kafka.state.deciding_state import DecidingState
from dedup_service.runtime.kafka.state.deciding_store import DecidingStore, StoredSnapshot
from dedup_service.runtime.kafka.state.local_state import PAGES_FOLDER, LocalState
from dedup_service.runtime.kafka.state.restore import RestoredReplica, restore
from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.page_files import MANIFEST, committed
from tests.page_names import NamesInMemory

from .list_log import ListLog, first, page
from .test_restore import fresh, run

PAGES: list[LogRecord] = [first(rule=None), *(page(number, f"u{number}", number) for number in range(40))]


def restored(local: LocalState, records: Sequence[LogRecord]) -> RestoredReplica:
    """Return the state at the end of a log."""
    found = restore(local, ListLog(records), {})
    assert found is not None
    return found


def sequence_in(folder: Path) -> int:
    """Return the sequence of the snapshot in a folder."""
    manifest = committed(folder)
    assert manifest is not None
    return manifest.sequence


def damage_evidence(folder: Path) -> None:
    """Alter the first evidence."""
    path = folder / PAGES_FOLDER / "evidence"
    with path.open("r+b") as file:
        file.seek(8)
        content = file.read(1)
        file.seek(8)
        file.write(bytes([content[0] ^ 1]))


def apply(replica: Replica, record: LogRecord) -> None:
    """Apply one more record, as it is read from the log."""
    replica.apply_many([(replica.sequence + 2, read) for read in decode(encode(record))])


def test_a_resolver_goes_on_from_a_snapshot_with_removed_entries(tmp_path: Path) -> None:
    """They are in the cells of shards, which have their paths; its own folder has no row and no cell."""
    policy = first().policy
    removed = RemovedEntry(9, Entry(sequence_at(7), None, None, None, 0, indexed=False, ordinal=3, settled=True, row=0))
    begun = DeciderState(ordinal=12, removed=(removed,))
    elsewhere = ShardCandidates(policy, begun, 2)
    resolver = Decider(policy.rule, policy.space_id, NamesInMemory(), state=begun, elsewhere=elsewhere)
    decider = resolver.state()
    assert decider.removed == (removed,)
    pages = DecidingStore(tmp_path / PAGES_FOLDER)
    pages.begin(StoredSnapshot("a-log", sequence_at(8), "", DecidingState(replica=ReplicaState(decider=decider))))
    assert len(pages.entries("a-log", policy).pages) == 0
    pages.close()


def test_damage_found_while_deciding_builds_the_folder_again(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """The service ends with the name of the file; its next start has the state of the log."""
    run(tmp_path, ListLog(PAGES), keep=True)
    log = [*PAGES, page(40, "copy", 0)]
    with LocalState.open(tmp_path) as local:
        state = restored(local, PAGES)
        damage_evidence(tmp_path)
        with pytest.raises(StoreDamagedError, match=r"/evidence.*built again from the log"), local.pages.in_use():
            apply(state.replica, log[-1])
    assert not (tmp_path / PAGES_FOLDER / MANIFEST).exists()
    with caplog.at_level(logging.WARNING):
        assert run(tmp_path, ListLog(log), keep=True) == fresh(tmp_path_factory, log)
    assert "a file of it is damaged" in caplog.text
    assert sequence_in(tmp_path / PAGES_FOLDER) == sequence_at(2 * len(PAGES))


def test_damage_that_a_reader_finds_ends_the_deciding_too(tmp_path: Path) -> None:
    """`why` gets the error, and so does the next step, which is the deciding thread's."""
    run(tmp_path, ListLog(PAGES), keep=True)
    with LocalState.open(tmp_path) as local:
        held = restored(local, PAGES).replica.held()
        damage_evidence(tmp_path)
        with pytest.raises(StoreDamagedError, match="/evidence"):
            list(held)
        with pytest.raises(StoreDamagedError, match="/evidence"):
            local.pages.step()


def test_readers_and_the_deciding_thread_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Other threads read all entries again and again, while pages come, leave, and are stored, and to the end."""
    failures: list[BaseException] = []
    reads = [0, 0]
    enough = threading.Event()

    def read(number: int, held: HeldEntries) -> None:
        try:
            while True:
                sequences = [entry.sequence for entry in held.entries()]
                assert sequences == sorted(sequences)
                reads[number] += 1
                if min(reads) > 3:
                    enough.set()
        except StateError:
            return
        except BaseException as error:
            failures.append(error)

    with LocalState.open(tmp_path, snapshot_every=10) as local:
        state = restored(local, PAGES)
        threads = [threading.Thread(target=read, args=(number, state.replica.held())) for number in range(2)]
        for thread in threads:
            thread.start()
        number = 40
        while number < 140 or not (enough.is_set() or failures):
            apply(state.replica, page(number, f"u{number % 90}", number))
            local.pages.note_applied(1)
            local.pages.step()
            if local.pages.due:
                local.take_snapshot(state.replica, state.pending_outcomes, state.tail)
            number += 1
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_folder_in_use_stays_open(tmp_path: Path) -> None:
    """A deciding step that does not stop in time keeps its files until the process ends; none is unmapped."""
    local = LocalState.open(tmp_path)
    state = restored(local, PAGES)
    with local.pages.in_use():
        closing = threading.Thread(target=local.close, args=(0.0,))
        closing.start()
        closing.join()
        assert len(state.replica) == 40
    local.close()
