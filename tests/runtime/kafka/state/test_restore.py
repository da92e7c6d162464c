"""A restore gives the same state from the log alone and from any snapshot, or a clear refusal."""

import logging
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dedup_service._native import Entry
from dedup_service.core.decision.replica import Replica, ReplicaState
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import (
    LogRecord,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    Source,
    TimeRecord,
    sequence_at,
)
from dedup_service.core.rules.keep import Keep
from dedup_service.runtime.embedded.database import ForeignStateError
from dedup_service.runtime.kafka.messages.log_record import numbered
from dedup_service.runtime.kafka.state import restore as restore_module
from dedup_service.runtime.kafka.state.local_state import NAMES_FILE, PAGES_FOLDER, LocalState
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes
from dedup_service.runtime.kafka.state.restore import RestoredReplica, restore
from dedup_service.runtime.memory_limit import MemoryLimitError, ProcessMemoryLimit
from dedup_service.runtime.store.errors import StoreFullError
from dedup_service.runtime.store.page_files import committed
from tests.page_names import NamesInMemory

from .list_log import ListLog, first, page

SOME: list[LogRecord] = [first(), *(page(number, f"u{number}", number % 7) for number in range(20))]


@dataclass(frozen=True)
class Read:
    """Everything that two readers of one log have in common, and what the log was asked for."""

    entries: list[Entry]
    state: ReplicaState
    pending: dict[Source, PendingOutcome]
    position: int
    tail: str
    end: int = field(compare=False)


def read_of(restored: RestoredReplica) -> Read:
    """Return what is compared."""
    replica = restored.replica
    pending = dict(restored.pending_outcomes.items())
    return Read(replica.held().entries(), replica.state(), pending, restored.position, restored.tail, restored.end)


def run(folder: Path, log: ListLog, *, keep: bool = False, written: int = 0) -> Read:
    """Restore in `folder`; take a snapshot if `keep`."""
    with LocalState.open(folder) as local:
        restored = restore(local, log, {("pages", 0): written})
        assert restored is not None
        if keep:
            local.take_snapshot(restored.replica, restored.pending_outcomes, restored.tail)
        return read_of(restored)


def fresh(tmp_path_factory: pytest.TempPathFactory, records: Sequence[LogRecord], written: int = 0) -> Read:
    """Return the state that the log alone gives."""
    return run(tmp_path_factory.mktemp("fresh"), ListLog(records), written=written)


def files_of(folder: Path) -> list[Path]:
    """Return the files of a state folder."""
    return [path for path in folder.rglob("*") if path.is_file()]


def bounded(keep: Keep) -> PolicyRecord:
    """The first policy with other bounds of expiry."""
    return PolicyRecord(replace(first().policy, keep=keep))


keeps = st.builds(Keep, max_pages=st.none() | st.integers(1, 4), max_age_minutes=st.none() | st.integers(1, 9))
records = st.lists(
    st.one_of(
        st.builds(TimeRecord, st.integers(1_000, 1_015)),
        st.builds(bounded, keeps),
        st.builds(page, st.integers(0, 12), st.sampled_from("abcdefgh"), st.integers(0, 4), st.integers(0, 3)),
        st.builds(RejectedRecord, st.builds(Source, st.just("pages"), st.just(0), st.integers(0, 12)), st.just("bad")),
        st.builds(RetractionRecord, st.sampled_from("abcdefgh"), st.just("gone")),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records, st.integers(0, 13))
def test_messages_of_many_records_are_applied_record_by_record(
    tmp_path_factory: pytest.TempPathFactory, some: list[LogRecord], written: int
) -> None:
    """State and pending outcomes are those of a replica that applied every record by itself."""
    log = ListLog([first(), *some], together=True)
    replica, pending = Replica(NamesInMemory()), PendingOutcomes(written={("pages", 0): written})
    for sequence, record in numbered(log.records):
        outcome = replica.apply(sequence, record)
        if outcome is not None:
            pending.add(outcome)
    restored = run(tmp_path_factory.mktemp("together"), log, written=written)
    assert restored.state == replica.state()
    assert restored.entries == replica.held().entries()
    assert restored.pending == dict(pending.items())


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["body", None]), records, st.integers(0, 26), st.integers(0, 13), st.booleans())
def test_a_snapshot_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    rule: str | None,
    some: list[LogRecord],
    cut: int,
    written: int,
    names_lost: bool,
) -> None:
    """Wherever it was taken, with or without names: the state of the log, window and cells too."""
    log, folder = [first(rule=rule), *some], tmp_path_factory.mktemp("cut")
    run(folder, ListLog(log[: cut + 1]), keep=True)
    if names_lost:
        (folder / NAMES_FILE).unlink()
    assert run(folder, ListLog(log), written=written) == fresh(tmp_path_factory, log, written)


def pages_folder(folder: Path) -> Path:
    """Return the folder of the kept pages."""
    return folder / PAGES_FOLDER


def sequence_of(folder: Path) -> int:
    """Return the sequence of the snapshot in a folder."""
    manifest = committed(folder)
    assert manifest is not None
    return manifest.sequence


DAMAGE: dict[str, Callable[[bytes], bytes | None]] = {
    "truncated": lambda content: content[:-1],
    "flipped": lambda content: (
        content[: len(content) // 2] + bytes([content[len(content) // 2] ^ 4]) + content[len(content) // 2 + 1 :]
    ),
    "rubbish": lambda content: b"rubbish",
    "missing": lambda content: None,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_of_any_file_only_costs_time(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    damage: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whichever file of a snapshot is altered, the state is the log's, with a warning unless nothing of it is read."""
    log = [*SOME, page(20, "copy", 3), *(page(number, f"u{number}", number) for number in range(21, 30))]
    expected = fresh(tmp_path_factory, log)
    whole = tmp_path / "whole"
    run(whole, ListLog(SOME), keep=True)
    names = [path.relative_to(whole) for path in files_of(pages_folder(whole))]
    assert len(names) > 3
    for name in names:
        folder = tmp_path / name.name
        shutil.copytree(whole, folder, ignore=shutil.ignore_patterns("lock"))
        altered = DAMAGE[damage]((folder / name).read_bytes())
        (folder / name).unlink()
        if altered is not None:
            (folder / name).write_bytes(altered)
        with caplog.at_level(logging.WARNING):
            assert run(folder, ListLog(log), keep=True) == expected, name
        assert run(folder, ListLog(log)) == expected, name
    assert "is not used" in caplog.text


def test_a_snapshot_of_another_log_is_refused(tmp_path: Path) -> None:
    """A folder that belongs to another log, or to a recreated topic, is not silently overwritten."""
    run(tmp_path, ListLog(SOME), keep=True)
    with pytest.raises(ForeignStateError, match=r"snapshot of log a-log, the topic holds log b-log"):
        run(tmp_path, ListLog([first("b-log"), *SOME[1:]]))


def test_a_log_shorter_than_the_snapshot_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that lost records prevents the start, naming both ends; nothing is deleted."""
    monkeypatch.setattr(restore_module, "_PATIENCE_S", 0.0)
    run(tmp_path, ListLog(SOME), keep=True)
    with pytest.raises(StateError, match=r"snapshot at 40, the log ends at 20"):
        run(tmp_path, ListLog(SOME[:10]))
    assert sequence_of(pages_folder(tmp_path)) == sequence_at(40)


def test_a_log_that_differs_from_the_snapshot_is_read_from_the_start(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """If the log has another message at the snapshot's end, the log decides, names included."""
    run(tmp_path, ListLog([*SOME, page(20, "one", 50)]), keep=True)
    other = [*SOME, page(20, "other", 60), page(21, "copy", 60)]
    with caplog.at_level(logging.WARNING):
        assert run(tmp_path, ListLog(other)) == fresh(tmp_path_factory, other)
    assert "another message at its offset 42" in caplog.text


def test_a_restore_can_be_stopped(tmp_path: Path) -> None:
    """With the event set it returns None, and the folder can be opened again."""
    stop = threading.Event()
    stop.set()
    with LocalState.open(tmp_path) as local:
        assert restore(local, ListLog(SOME), {}, stop=stop) is None
    run(tmp_path, ListLog(SOME))


def test_it_ends_early_at_too_many_pending_outcomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unwritten outcomes stay bounded; reading on from the position is the rest of the restore."""
    monkeypatch.setattr(restore_module, "MESSAGES_AT_ONCE", 4)
    log = ListLog(SOME)
    with LocalState.open(tmp_path) as local:
        restored = restore(local, log, {}, max_waiting=7)
    assert restored is not None
    assert (len(restored.pending_outcomes), restored.position) == (7, 15)


def test_snapshots_are_taken_as_the_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long restore takes snapshots, so that a kill does not make it start again from the beginning."""
    monkeypatch.setattr(restore_module, "MESSAGES_AT_ONCE", 5)
    with LocalState.open(tmp_path, snapshot_every=10) as local:
        restore(local, ListLog(SOME), {})
    assert sequence_at(10) <= sequence_of(pages_folder(tmp_path)) <= sequence_at(40)


def test_a_snapshot_that_cannot_be_written_ends_the_use_of_the_folder(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk gives a warning, the next step raises, and the next start continues from the snapshot before."""
    run(tmp_path, ListLog(SOME[:9]), keep=True)
    with LocalState.open(tmp_path) as local:
        restored = restore(local, ListLog(SOME), {})
        assert restored is not None
        (pages_folder(tmp_path) / "manifest.tmp").mkdir()  # in the way of the temporary file
        with caplog.at_level(logging.WARNING):
            local.take_snapshot(restored.replica, restored.pending_outcomes, restored.tail)
            local.pages.wait()
        with pytest.raises(StoreFullError, match="manifest"):
            local.pages.step()
    assert "no snapshot in" in caplog.text
    (pages_folder(tmp_path) / "manifest.tmp").rmdir()
    assert sequence_of(pages_folder(tmp_path)) == sequence_at(16)
    assert run(tmp_path, ListLog(SOME)) == fresh(tmp_path_factory, SOME)


@pytest.mark.parametrize("snapshot_first", [False, True])
def test_a_retracted_page_is_in_no_byte_of_the_folder(tmp_path: Path, snapshot_first: bool) -> None:
    """Its names go, also where the restore reads names of its time from the log, which has them for ever."""
    url = "https://secret.example/private-story"
    kept: list[LogRecord] = [first(), *(page(number, f"u{number}", number) for number in range(5)), page(5, url, 7)]
    copies: list[LogRecord] = [page(6, "https://b.example/1", 7)]
    if snapshot_first:
        run(tmp_path, ListLog([*kept, *copies]), keep=True, written=6)
        assert url.encode() in (tmp_path / NAMES_FILE).read_bytes()
        (tmp_path / NAMES_FILE).unlink()
    log = ListLog(
        [*kept, *copies, RetractionRecord(url, "taken down"), *(page(7 + at, f"u{at}", at) for at in range(5))]
    )
    restored = run(tmp_path, log, keep=True, written=20)
    assert restored.state.counts["retraction"] == 1
    for path in files_of(tmp_path):
        assert url.encode() not in path.read_bytes(), path


def test_a_snapshot_that_does_not_fit_into_memory_is_not_loaded(tmp_path: Path) -> None:
    """The message has both sizes, and the next restore, with more memory, uses it."""
    run(tmp_path, ListLog(SOME), keep=True)
    with LocalState.open(tmp_path) as local, pytest.raises(MemoryLimitError, match=r"kept pages take .* the limit is"):
        restore(local, ListLog(SOME), {}, memory=ProcessMemoryLimit(1000, lambda: 0))
    with LocalState.open(tmp_path) as local:
        restored = restore(local, log := ListLog(SOME), {}, memory=ProcessMemoryLimit(1 << 40, lambda: 0))
        assert restored is not None
        assert log.position == log.end()


def test_a_restore_that_runs_out_of_memory_ends(tmp_path: Path) -> None:
    """Unless pages expire: then the deciding step bounds them."""
    used_up = ProcessMemoryLimit(1 << 20, lambda: 2 << 20)
    with LocalState.open(tmp_path / "one") as local, pytest.raises(MemoryLimitError, match="--keep"):
        restore(local, ListLog([*SOME, *SOME]), {}, memory=used_up)
    log = [bounded(Keep(max_pages=5)), *SOME[1:]]
    with LocalState.open(tmp_path / "two") as local:
        assert restore(local, ListLog(log), {}, memory=used_up) is not None
