"""Snapshots are complete or ignored, and never more than a shortcut."""

import gc
import logging
import shutil
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryPieces, EntryRows
from dedup_service.core.decision.entry_store import MemoryStore
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.embedded.snapshot import (
    SNAPSHOT_VERSION,
    Snapshot,
    SnapshotLabel,
    UnreadableSnapshotError,
    read_label,
    read_snapshot,
    write_snapshot,
)
from dedup_service.runtime.embedded.state import SNAPSHOT_FILE, State, StateSettings

from .prepared import SPACE, SPACE_ID, prepared

ONE = EntryRows.from_entries([Entry(1, 3, None, 1, 8, evidence=b"bytes")])
LABEL = SnapshotLabel(SNAPSHOT_VERSION, "a journal", "a space", 7, "tail", 1, 5, 4)
WHOLE = Snapshot(LABEL, (ONE,), b"more")


def test_pieces_are_read_back_as_one(tmp_path: Path) -> None:
    """They are read in their order, each entry with its evidence."""
    some = [
        Entry(at, at * 3, None, at, at + 7, evidence=bytes([at]) * at, keys=b"k" * at, settled=at < 4)
        for at in range(1, 8)
    ]
    pieces = [EntryRows.from_entries(some[:3]), EntryRows.none(), EntryRows.from_entries(some[3:])]
    whole = EntryRows.from_entries(some)
    label = replace(LABEL, entries=len(whole), evidence_bytes=len(whole.evidence))
    write_snapshot(tmp_path / "s", label, pieces, WHOLE.extra)
    found = read_snapshot(tmp_path / "s")
    (rows,) = found.rows
    assert (found.label, found.extra, rows.evidence) == (label, WHOLE.extra, whole.evidence)
    assert rows.rows.tolist() == whole.rows.tolist()


def filled(folder: Path, pages: int, snapshot_every: int = 1000) -> None:
    """Leave a closed state with `pages` kept pages in `folder`."""
    folder.mkdir(exist_ok=True)
    state = State(folder, SPACE_ID, SPACE, None, StateSettings(snapshot_every=snapshot_every))
    state.decide([(prepared(f"u{n}", n), None) for n in range(pages)])
    state.close()


def kinds_of_copies(folder: Path, pages: int) -> list[VerdictKind]:
    """Return the verdicts of the state in `folder` on copies of its pages."""
    state = State(folder, SPACE_ID, SPACE)
    verdicts = state.decide([(prepared(f"copy{n}", n), None) for n in range(pages)])
    state.close()
    return [verdict.kind for verdict in verdicts]


def test_a_snapshot_reads_back_as_it_was_written(tmp_path: Path) -> None:
    """Label, rows, evidence and extra are unchanged, and the temporary file is removed."""
    path = tmp_path / "snapshot"
    write_snapshot(path, LABEL, WHOLE.rows, WHOLE.extra)
    again = read_snapshot(path)
    assert [(len(rows), rows.evidence) for rows in again.rows] == [(1, b"bytes")]
    assert (again.label, again.extra) == (LABEL, b"more")
    assert read_label(path) == LABEL
    assert [file.name for file in tmp_path.iterdir()] == ["snapshot"]


@pytest.mark.parametrize("version", [1, 2, 4])
def test_a_snapshot_of_another_version_is_refused(tmp_path: Path, version: int) -> None:
    """Rows of version 2 and before have no keys and no ordinals; what a newer one has is unknown. Both are named."""
    path = tmp_path / "snapshot"
    write_snapshot(path, replace(LABEL, version=version), WHOLE.rows, WHOLE.extra)
    with pytest.raises(UnreadableSnapshotError, match=f"version {version}, this twinsieve reads 3"):
        read_snapshot(path)
    assert read_label(path) is None


def test_a_truncated_or_altered_snapshot_is_refused(tmp_path: Path) -> None:
    """Every proper prefix of the file, and every file with one byte changed, is refused."""
    path = tmp_path / "snapshot"
    write_snapshot(path, LABEL, WHOLE.rows, WHOLE.extra)
    whole = path.read_bytes()
    damaged = [whole[:size] for size in range(len(whole))]
    damaged += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(UnreadableSnapshotError):
            read_snapshot(path)


def test_a_bad_snapshot_is_ignored_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A state with a damaged snapshot is restored from its log, and decides as before."""
    filled(tmp_path, 4)
    (tmp_path / SNAPSHOT_FILE).write_bytes(b"rubbish")
    with caplog.at_level(logging.WARNING):
        assert kinds_of_copies(tmp_path, 4) == [VerdictKind.DUPLICATE] * 4
    assert "is not used" in caplog.text


def test_a_snapshot_of_another_journal_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A snapshot copied from another state folder does not bring its pages."""
    filled(tmp_path / "one", 3)
    filled(tmp_path / "two", 5)
    shutil.copy(tmp_path / "two" / SNAPSHOT_FILE, tmp_path / "one" / SNAPSHOT_FILE)
    with caplog.at_level(logging.WARNING):
        kinds = kinds_of_copies(tmp_path / "one", 5)
    assert kinds == [VerdictKind.DUPLICATE] * 3 + [VerdictKind.UNIQUE] * 2
    assert "it belongs to journal" in caplog.text


def test_a_snapshot_ahead_of_its_log_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """If an older copy of the journal was restored, the newer snapshot does not fit."""
    filled(tmp_path / "state", 2)
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    kinds_of_copies(tmp_path / "state", 4)
    shutil.copy(tmp_path / "state" / SNAPSHOT_FILE, tmp_path / "copy" / SNAPSHOT_FILE)
    with caplog.at_level(logging.WARNING):
        kinds = kinds_of_copies(tmp_path / "copy", 3)
    assert kinds == [VerdictKind.DUPLICATE] * 2 + [VerdictKind.UNIQUE]
    assert "the log ends at 2" in caplog.text


def test_a_snapshot_of_another_continuation_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Two copies of a state continued differently: the snapshot of one does not fit the log of the other."""
    filled(tmp_path / "state", 2)
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    for folder, story in (("state", 50), ("copy", 60)):
        state = State(tmp_path / folder, SPACE_ID, SPACE)
        state.decide([(prepared(f"more{story}", story), None)])
        state.close()
    shutil.copy(tmp_path / "state" / SNAPSHOT_FILE, tmp_path / "copy" / SNAPSHOT_FILE)
    with caplog.at_level(logging.WARNING):
        state = State(tmp_path / "copy", SPACE_ID, SPACE)
    verdicts = state.decide([(prepared("a", 50), None), (prepared("b", 60), None)])
    state.close()
    assert [verdict.kind for verdict in verdicts] == [VerdictKind.UNIQUE, VerdictKind.DUPLICATE]
    assert "another record at its sequence 3" in caplog.text


def test_a_snapshot_that_cannot_be_written_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The state continues without it; the next opening reads the log."""
    (tmp_path / "snapshot.tmp").mkdir()  # in the way of the temporary file
    with caplog.at_level(logging.WARNING):
        filled(tmp_path, 3, snapshot_every=1)
    assert "no snapshot written" in caplog.text
    assert not (tmp_path / SNAPSHOT_FILE).exists()
    assert kinds_of_copies(tmp_path, 3) == [VerdictKind.DUPLICATE] * 3


def test_a_snapshot_is_taken_as_the_log_grows(tmp_path: Path) -> None:
    """One is written after a number of records, later after a quarter more entries."""
    state = State(tmp_path, SPACE_ID, SPACE, None, StateSettings(snapshot_every=3))
    taken = []
    for number in range(24):
        state.decide([(prepared(f"u{number}", number), None)])
        label = read_label(tmp_path / SNAPSHOT_FILE)
        taken.append(0 if label is None else label.sequence)
    state.close()
    assert sorted(set(taken)) == [0, 3, 6, 9, 12, 15, 19]


PAGES = 8000


def traced_peak(work: Callable[[], object]) -> tuple[int, int]:
    """Return the bytes that `work` allocated at its peak, and those that it left behind."""
    gc.collect()
    tracemalloc.start()
    try:
        kept = work()
        gc.collect()
        left, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del kept
    return peak, left


def stored(pieces: EntryPieces) -> MemoryStore:
    """A store with these entries."""
    store = MemoryStore()
    for piece in pieces:
        store.append(piece)
    return store


def evidence_bytes(folder: Path) -> int:
    """Return the size of the evidence in the snapshot of `folder`."""
    label = read_label(folder / SNAPSHOT_FILE)
    assert label is not None
    return label.evidence_bytes


def test_closing_with_many_entries_never_takes_their_memory_again(tmp_path: Path) -> None:
    """A snapshot is written in pieces: its peak is far below the evidence that it stores, here of 8,000 pages."""
    settings = StateSettings(IndexLayout(window=64), text_budget_bytes=0, snapshot_every=10 * PAGES)
    state = State(tmp_path, SPACE_ID, SPACE, None, settings)
    for start in range(0, PAGES, 1000):
        pages = [(prepared(f"u{n}", n, evidence=bytes(4096)), None) for n in range(start, start + 1000)]
        state.decide(pages)
    del pages
    peak, _ = traced_peak(state.close)
    assert evidence_bytes(tmp_path) >= PAGES * 4096
    assert peak < evidence_bytes(tmp_path) // 2


def test_reading_a_snapshot_holds_its_bytes_once(tmp_path: Path) -> None:
    """Neither at the peak nor afterwards are the bytes of the file and the arrays made of it there together."""
    pieces = [
        EntryRows.from_entries(
            [Entry(at, at, None, at, at, evidence=bytes(4096), settled=True) for at in range(first, first + 1000)]
        )
        for first in range(0, PAGES, 1000)
    ]
    size = PAGES * 4096
    write_snapshot(tmp_path / "s", replace(LABEL, entries=PAGES, evidence_bytes=size), pieces, WHOLE.extra)
    peak, left = traced_peak(lambda: stored(read_snapshot(tmp_path / "s").rows))
    assert left < 1.25 * size
    assert peak < 1.25 * size
