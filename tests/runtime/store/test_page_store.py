"""A store has what a dictionary would have, before and after it is opened again."""

import resource
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.store.block_file import BLOCK_BYTES
from dedup_service.runtime.store.errors import (
    ForeignStoreError,
    StoreDamagedError,
    StoreFullError,
    StoreNumbersUsedError,
)
from dedup_service.runtime.store.manifest import StoreLabel, read_manifest, write_checked
from dedup_service.runtime.store.page_store import PageStore
from dedup_service.runtime.store.stored_rows import StoredNames

from .pages import LABEL, SEGMENT_ROWS, Oracle, Pages, assert_equal, assert_opened_again, filled, pages


def test_a_row_by_itself_and_entries(tmp_path: Path) -> None:
    """`row` returns a record, `entries` the rows with their evidence as a decider takes them."""
    store, oracle = filled(tmp_path)
    assert store.row(7).item() == oracle.rows[7].row
    entries = store.entries(np.array([9, 3]))
    assert isinstance(entries, EntryRows)
    assert entries.evidence == oracle.rows[9].evidence + oracle.rows[3].evidence
    store.close()


def test_strings_with_lone_surrogates_are_kept(tmp_path: Path) -> None:
    """Whatever a page's names contain is read as it was."""
    store = PageStore.open(tmp_path, LABEL)
    names = [StoredNames("\ud800", "http://a/\udfff", "\0"), StoredNames("", "", "")]
    numbers = store.append(pages(1, 2).entries, names)
    assert store.names(numbers) == names
    store.close()


def test_a_committed_store_is_opened_again(tmp_path: Path) -> None:
    """Everything up to the commit is there, with the log's sequence, its tail and other state."""
    store, oracle = filled(tmp_path)
    gone = np.array([0, 63, 64, 199], np.uint32)
    store.remove(gone)
    oracle.remove(gone)
    store.commit(77, "digest", extra=b"\0more")
    store.close()
    again = PageStore.open(tmp_path, LABEL)
    assert (again.manifest.sequence, again.manifest.tail, again.extra()) == (77, "digest", b"\0more")
    assert_equal(again, oracle)
    again.verify()
    again.close()


def test_a_commit_has_the_state_of_its_beginning(tmp_path: Path) -> None:
    """What happens between the beginning of a commit and its end belongs to the next one."""
    store, oracle = filled(tmp_path, 100)
    pending = store.begin_commit(1, "")
    store.append(pages(2, 90).entries)
    store.remove(np.array([5], np.uint32))
    pending.finish()
    store.close()
    again = PageStore.open(tmp_path, LABEL)
    assert_equal(again, oracle)
    again.close()


def test_empty_segments_are_deleted(tmp_path: Path) -> None:
    """With the commit after their last row was removed, their files go; the other rows keep their numbers."""
    store, oracle = filled(tmp_path, 200)
    store.commit(1, "")
    gone = np.arange(SEGMENT_ROWS, 3 * SEGMENT_ROWS, dtype=np.uint32)
    store.remove(gone)
    oracle.remove(gone)
    store.commit(2, "")
    assert {path.name[:5] for path in tmp_path.glob("0*")} == {"00000", "00003"}
    assert_equal(store, oracle)
    with pytest.raises(KeyError):
        store.rows(gone[:1])
    store.close()
    again = PageStore.open(tmp_path, LABEL)
    assert_equal(again, oracle)
    again.close()


def test_a_number_that_is_no_row_is_a_key_error(tmp_path: Path) -> None:
    """Before the first, behind the last, and twice removed."""
    store, _ = filled(tmp_path, 10)
    for number in (-1, 10, 63, 64, 1 << 31):
        with pytest.raises(KeyError):
            store.rows(np.array([number], np.int64))
        assert not store.live(np.array([number], np.int64))[0]
        with pytest.raises(KeyError):
            store.remove(np.array([number], np.int64))
    store.remove(np.array([3]))
    with pytest.raises(KeyError):
        store.remove(np.array([2, 3]))
    assert store.live(np.array([2]))[0]
    store.close()


def test_an_empty_batch_is_read(tmp_path: Path) -> None:
    """No rows, no evidence, no names."""
    store, _ = filled(tmp_path, 3)
    none = np.zeros(0, np.uint32)
    assert (len(store.rows(none)), len(store.evidence(none)), store.names(none)) == (0, 0, [])
    assert store.append(EntryRows.none()).tolist() == []
    store.close()


def append_many(store: PageStore) -> None:
    """Append some hundred megabytes."""
    for seed in range(50):
        store.append(pages(seed, 60, largest=60_000).entries)


def test_a_full_disk_leaves_the_last_commit(tmp_path: Path) -> None:
    """StoreFullError, which may be tried again once there is room."""
    store, oracle = filled(tmp_path, 100)
    store.commit(1, "")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, limits[1]))
    try:
        with pytest.raises(StoreFullError, match="free space"):
            append_many(store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    store.close()
    again = PageStore.open(tmp_path, LABEL)
    assert_equal(again, oracle)
    again.close()


def append_all(store: PageStore, oracle: Oracle, batches: Iterable[Pages]) -> None:
    """Append batches to both."""
    for batch in batches:
        oracle.append(store.append(batch.entries, batch.names, batch.texts), batch)


@pytest.mark.parametrize("largest", [4, 600], ids=["rows", "evidence"])
def test_appending_goes_on_when_a_disk_has_room_again(largest: int, tmp_path: Path) -> None:
    """Whichever file the disk did not take, every row of what is appended then has its own evidence."""
    store, oracle = PageStore.open(tmp_path, LABEL, segment_rows=1 << 16), Oracle()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, limits[1]))
    batches = (pages(seed, 500, 500 * seed, largest) for seed in range(100))
    try:
        with pytest.raises(StoreFullError):
            append_all(store, oracle, batches)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    append_all(store, oracle, islice(batches, 3))
    assert_equal(store, oracle)
    store.commit(1, "")
    store.close()
    assert_opened_again(tmp_path, oracle)


def with_long_ids(batch: Pages, size: int) -> Pages:
    """Return pages whose names take so many bytes and more."""
    return replace(batch, names=[replace(names, id="n" * size) for names in batch.names])


def test_rows_are_read_when_a_disk_did_not_take_more_of_them(tmp_path: Path) -> None:
    """The evidence is mapped at another place by then, and the names behind it were not taken."""
    store, oracle = PageStore.open(tmp_path, LABEL), Oracle()
    append_all(store, oracle, [with_long_ids(pages(1, 500, 0, 1700), 1900)])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, limits[1]))
    try:
        with pytest.raises(StoreFullError, match="names"):
            append_all(store, oracle, [with_long_ids(pages(2, 500, 500, 3000), 3200)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert_equal(store, oracle)
    append_all(store, oracle, [pages(3, 500, 1000)])
    assert_equal(store, oracle)
    store.close()


@pytest.mark.parametrize("label", [StoreLabel("another log", "a space"), StoreLabel("a log", "another space")])
def test_the_store_of_another_log_or_space_is_refused(tmp_path: Path, label: StoreLabel) -> None:
    """One line names both and says what to do."""
    PageStore.open(tmp_path, LABEL).close()
    with pytest.raises(ForeignStoreError, match=r"another .*: delete that folder") as error:
        PageStore.open(tmp_path, label)
    assert "\n" not in str(error.value)


def test_another_version_is_refused(tmp_path: Path) -> None:
    """The message says how to come to the present one."""
    PageStore.open(tmp_path, LABEL).close()
    manifest = read_manifest(tmp_path)
    manifest.version = 7
    write_checked(tmp_path / "manifest.json", manifest)
    with pytest.raises(ForeignStoreError, match=r"version 7.*read the same input again with `filter`"):
        PageStore.open(tmp_path, LABEL)


def test_numbers_end(tmp_path: Path) -> None:
    """After 2^32 rows the store says that it has to be built again."""
    PageStore.open(tmp_path, LABEL, segment_rows=1 << 26).close()
    manifest = read_manifest(tmp_path)
    manifest.next_row = 1 << 32
    write_checked(tmp_path / "manifest.json", manifest)
    store = PageStore.open(tmp_path, LABEL)
    with pytest.raises(StoreNumbersUsedError, match="built again"):
        store.append(pages(1, 1).entries)
    store.close()


@pytest.mark.parametrize("rows", [0, 32, 65, 1000])
def test_segments_have_a_power_of_two_of_rows(tmp_path: Path, rows: int) -> None:
    """64 at least, as bitmaps are made of words."""
    with pytest.raises(ConfigurationError, match="power of two"):
        PageStore.open(tmp_path, LABEL, segment_rows=rows)


def test_names_of_some_rows_only_are_refused(tmp_path: Path) -> None:
    """All rows of a batch have names, or none."""
    store = PageStore.open(tmp_path, LABEL)
    with pytest.raises(ConfigurationError, match="3 rows"):
        store.append(pages(1, 3).entries, [StoredNames("a", "a")])
    assert len(store) == 0
    store.close()


def test_memory_does_not_grow_with_what_is_stored(tmp_path: Path) -> None:
    """Beside the bitmap there are 5 bytes for each 4 KiB of the files."""
    store, _ = filled(tmp_path, 5000)
    store.commit(1, "")
    store.close()
    again = PageStore.open(tmp_path, LABEL)
    bitmap, files = (5000 + SEGMENT_ROWS) / 8, 4 * (5000 / SEGMENT_ROWS + 1)
    blocks = sum(again.disk_bytes().values()) / BLOCK_BYTES + 2 * files
    assert again.memory_bytes() <= bitmap + 5 * blocks
    again.close()


def test_blocks_are_verified_once(tmp_path: Path) -> None:
    """The second read of the same rows verifies nothing, and what was appended since opening never is."""
    store, _ = filled(tmp_path, 300)
    numbers = np.arange(300, dtype=np.uint32)
    store.evidence(numbers)
    assert store.counts.blocks == 0
    store.commit(1, "")
    store.close()
    again = PageStore.open(tmp_path, LABEL)
    again.evidence(numbers)
    verified = again.counts.blocks
    assert verified > 0
    again.evidence(numbers)
    assert (again.counts.blocks, again.counts.rows, again.counts.spans) == (verified, 0, 600)
    again.close()


def test_neighbouring_rows_are_announced_together(tmp_path: Path) -> None:
    """The blocks that rows share are verified once in any order, and announced together if the rows are in order."""
    store, _ = filled(tmp_path, 3000)
    store.commit(1, "")
    segments = len(list(store.live_numbers()))
    expected = store.rows(np.arange(3000, dtype=np.uint32))
    store.close()
    verified = set()
    for rows in (np.arange(3000), np.random.default_rng(1).permutation(3000)):
        again = PageStore.open(tmp_path, LABEL)
        assert (again.rows(rows.astype(np.uint32)) == expected[rows]).all()
        assert again.counts.announced <= (segments if rows[0] == 0 else 3000)
        verified.add(again.counts.blocks)
        again.close()
    assert len(verified) == 1


def test_a_row_that_points_outside_its_file_is_damage(tmp_path: Path) -> None:
    """Never a read of other memory, even if a fault of our own wrote it with a fitting checksum."""
    store, _ = filled(tmp_path, 10)
    segment = store._segments[0]
    rows = np.concatenate(list(segment.pieces()))
    rows["evidence_at"] = 1 << 31
    segment.append(rows, {})
    store._table.set(segment)
    with pytest.raises(StoreDamagedError, match="outside the file of its evidence"):
        store.evidence(np.arange(10, 20))
    store.close()


class StoreMachine(RuleBasedStateMachine):
    """Any order of calls gives what the oracle gives."""

    folder: Path

    @initialize(seed=st.integers(0, 1 << 20))
    def begin(self, seed: int) -> None:
        self.folder = self.root / str(len(list(self.root.iterdir())))
        self.store = PageStore.open(self.folder, LABEL, segment_rows=SEGMENT_ROWS)
        self.oracle, self.committed, self.seed = Oracle(), Oracle(), seed

    @rule(count=st.integers(0, 150))
    def append(self, count: int) -> None:
        self.seed += 1
        batch = pages(self.seed, count, largest=400)
        numbers = self.store.append(batch.entries, batch.names, batch.texts)
        self.oracle.append(numbers, batch)

    @rule(data=st.data(), share=st.sampled_from([0.1, 0.6, 1.0]))
    def remove(self, data: st.DataObject, share: float) -> None:
        self.seed += 1
        numbers = np.array(sorted(self.oracle.rows), np.uint32)
        numbers = numbers[np.random.default_rng(self.seed).random(len(numbers)) < share]
        self.store.remove(numbers)
        self.oracle.remove(numbers)

    @rule(at=st.integers(0, 1 << 20))
    def erase(self, at: int) -> None:
        if self.oracle.rows:
            number = sorted(self.oracle.rows)[at % len(self.oracle.rows)]
            self.store.erase(number)
            self.oracle.rows[number].erase()
            if number in self.committed.rows:
                self.committed.rows[number].erase()

    @rule(budget=st.sampled_from([1, 10_000, 1 << 30]), wait=st.booleans())
    def compact(self, budget: int, wait: bool) -> None:
        self.store.compact(budget, wait=wait)

    @rule()
    def commit(self) -> None:
        self.seed += 1
        self.store.commit(self.seed, "")
        self.committed = Oracle({n: row.copy() for n, row in self.oracle.rows.items()})

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = PageStore.open(self.folder, LABEL, segment_rows=SEGMENT_ROWS)
        self.store.verify()
        self.oracle = Oracle({n: row.copy() for n, row in self.committed.rows.items()})

    @invariant()
    def equal(self) -> None:
        if hasattr(self, "oracle"):
            assert_equal(self.store, self.oracle)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()


def test_any_order_of_calls_equals_a_dictionary(tmp_path: Path) -> None:
    """Append, remove, erase, compact, commit and open, in any order."""
    machine = type("Machine", (StoreMachine,), {"root": tmp_path})
    machine.TestCase.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
    machine.TestCase().runTest()
