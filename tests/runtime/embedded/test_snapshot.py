"""Files of a snapshot are complete or refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.runtime.embedded.snapshot import (
    SNAPSHOT_VERSION,
    Snapshot,
    SnapshotLabel,
    UnreadableSnapshotError,
    read_label,
    read_snapshot,
    write_snapshot,
)

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
