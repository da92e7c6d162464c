"""Compaction frees the space of dead rows, and every row keeps its number; the next commit has it."""

from pathlib import Path

import numpy as np
import pytest

from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.page_store import PageStore

from .pages import LABEL, SEGMENT_ROWS, Oracle, assert_equal, assert_opened_again, filled, pages


def sparse(folder: Path, segments: int = 2) -> tuple[PageStore, Oracle]:
    """Return an open store whose first segments have few live rows, in the last commit, too; and its oracle."""
    store, oracle = filled(folder, segments * SEGMENT_ROWS + 1)
    gone = np.arange(segments * SEGMENT_ROWS, dtype=np.uint32)
    gone = gone[gone % 4 > 0]
    store.remove(gone)
    oracle.remove(gone)
    store.commit(1, "")
    return store, oracle


def compact_beside(store: PageStore) -> None:
    """Compact a segment as it is done beside decisions."""
    store.compact(1, wait=False)
    while store._compaction is not None:
        store.compact(1 << 30, wait=False)


def generations(folder: Path) -> list[str]:
    """Return the names of the files of rows without their ending."""
    return sorted(path.stem for path in folder.glob("*.rows"))


def test_the_next_commit_has_what_was_compacted(tmp_path: Path) -> None:
    """Until then the old files stay, since the last commit names them."""
    store, oracle = sparse(tmp_path)
    manifest = (tmp_path / "manifest.json").read_bytes()
    compact_beside(store)
    assert_equal(store, oracle)
    assert (tmp_path / "manifest.json").read_bytes() == manifest
    assert len(generations(tmp_path)) == 4
    store.commit(2, "")
    assert_equal(store, oracle)
    assert len(generations(tmp_path)) == 3
    store.close()
    assert_opened_again(tmp_path, oracle)


def test_a_commit_under_way_may_name_the_old_files(tmp_path: Path) -> None:
    """It was begun before the segment was replaced; its manifest is whole, and so is the next one."""
    store, oracle = sparse(tmp_path)
    store.compact(1, wait=False)
    pending = store.begin_commit(2, "")
    compact_beside(store)
    pending.finish()
    assert_equal(store, oracle)
    again = PageStore.open_read_only(tmp_path, LABEL)
    assert again is not None
    assert_equal(again, oracle)
    again.close()
    store.commit(3, "")
    store.close()
    assert_opened_again(tmp_path, oracle)


def test_a_segment_that_is_empty_meanwhile_leaves_nothing(tmp_path: Path) -> None:
    """Neither its files nor those of its copy, whether that is complete or not."""
    for complete in (False, True):
        folder = tmp_path / str(complete)
        store, oracle = sparse(folder)
        if complete:
            compact_beside(store)
        else:
            store.compact(1, wait=False)
        gone = np.array([number for number in oracle.rows if number < 2 * SEGMENT_ROWS])
        store.remove(gone)
        oracle.remove(gone)
        store.commit(2, "")
        assert generations(folder) == ["00002-0"]
        store.close()
        assert_opened_again(folder, oracle)


def test_beside_decisions_no_more_than_a_segment_waits_for_a_commit(tmp_path: Path) -> None:
    """Old and new files together are bounded, however many segments are sparse."""
    store, oracle = sparse(tmp_path, segments=6)
    for _ in range(6):
        compact_beside(store)
    assert len(generations(tmp_path)) == 7 + 1
    store.commit(2, "")
    while store.compact(1 << 30):
        pass
    assert [name[-1] for name in generations(tmp_path)] == [*"111111", "0"]
    assert_equal(store, oracle)
    store.close()


def test_rows_are_copied_by_another_thread(tmp_path: Path) -> None:
    """The caller reads none: old ones are seldom in memory, and a few thousand of them would stop it for long."""
    store, _ = sparse(tmp_path)
    before = store.counts.rows, store.counts.span_bytes
    compact_beside(store)
    assert (store.counts.rows, store.counts.span_bytes) == before
    store.close()


def test_altered_rows_are_found_beside_decisions(tmp_path: Path) -> None:
    """What the thread finds is raised by a later call, and no file is left."""
    store, _ = sparse(tmp_path)
    store.close()
    path = tmp_path / "00000-0.evidence"
    path.write_bytes(bytes(100) + path.read_bytes()[100:])
    store = PageStore.open(tmp_path, LABEL)
    with pytest.raises(StoreDamagedError, match=r"00000-0\.evidence: block 0"):
        compact_beside(store)
    store.close()
    assert generations(tmp_path) == ["00000-0", "00001-0", "00002-0"]


def test_nothing_is_begun_while_a_commit_is_under_way(tmp_path: Path) -> None:
    """It would wait for the disk."""
    store, _ = sparse(tmp_path)
    pending = store.begin_commit(2, "")
    store.compact(1 << 30, wait=False)
    assert not pending.is_finished
    assert len(generations(tmp_path)) == 3
    pending.finish()
    compact_beside(store)
    assert len(generations(tmp_path)) == 4
    store.close()


@pytest.mark.parametrize("budget", [1, 1 << 10, 1 << 30])
def test_compaction_keeps_rows_and_numbers(tmp_path: Path, budget: int) -> None:
    """Files shrink to what is live, whatever the budget of a call, and again when more is removed."""
    store, oracle = filled(tmp_path, 4 * SEGMENT_ROWS)
    store.commit(1, "")
    for keep in (3, 4):
        numbers = sorted(oracle.rows)
        gone = np.array([number for at, number in enumerate(numbers) if at % keep], np.uint32)
        store.remove(gone)
        oracle.remove(gone)
        store.commit(2, "")
        before = store.disk_bytes()
        while store.compact(budget):
            assert_equal(store, oracle)
        assert store.disk_bytes()["evidence"] < before["evidence"] * 0.7
        assert_equal(store, oracle)
    store.close()
    assert_opened_again(tmp_path, oracle)


def test_places_in_a_large_compacted_segment(tmp_path: Path) -> None:
    """Rows are counted over many words and groups of a bitmap."""
    rows = 4096
    store, oracle = PageStore.open(tmp_path, LABEL, segment_rows=rows), Oracle()
    batch = pages(3, rows + 1, largest=50)
    oracle.append(store.append(batch.entries, batch.names, batch.texts), batch)
    store.commit(1, "")
    gone = np.flatnonzero(np.random.default_rng(3).random(rows) < 0.6).astype(np.uint32)
    store.remove(gone)
    oracle.remove(gone)
    store.commit(2, "")
    while store.compact(1 << 30):
        pass
    assert (tmp_path / "00000-1.members").exists()
    assert_equal(store, oracle)
    for number in gone[[0, -1]].tolist():
        with pytest.raises(KeyError):
            store.row(number)
    store.close()


def test_compaction_leaves_out_what_is_not_sealed_or_not_committed(tmp_path: Path) -> None:
    """The segment that grows is left alone, and so are rows that a crash would take back."""
    store, _ = filled(tmp_path, SEGMENT_ROWS + 10)
    store.remove(np.arange(SEGMENT_ROWS + 9, dtype=np.uint32)[1:])
    assert not store.compact(1 << 30)
    store.commit(1, "")
    while store.compact(1 << 30):
        pass
    assert {path.name for path in tmp_path.glob("*.rows")} == {"00000-1.rows", "00001-0.rows"}
    store.close()
