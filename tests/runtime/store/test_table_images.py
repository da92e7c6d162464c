"""Tables come back from their images as they were at the last commit, or are built again from the rows."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.page_store import PageStore
from dedup_service.runtime.store.row_columns import COLUMN
from dedup_service.runtime.store.table_images import TableImages, Tables

from .pages import LABEL
from .tables import Model, assert_same, empty_tables, restored, table_pages

SEGMENT_ROWS = 4096


class Working:
    """A store with tables and images that are changed together. seed: of all pages and choices."""

    def __init__(self, folder: Path, seed: int = 1, *, due_share: float = 0.1, least_due: int = 10) -> None:
        self.folder = folder
        self.model = Model()
        self.store = PageStore.open(folder, LABEL, segment_rows=SEGMENT_ROWS)
        self.images = TableImages(self.store, self.model.tables, due_share=due_share, least_due=least_due)
        self.generator = np.random.default_rng(seed)

    def append(self, count: int) -> None:
        """Append pages to all."""
        batch = table_pages(int(self.generator.integers(1 << 40)), count)
        numbers = self.store.append(batch.entries, batch.names, batch.texts)
        self.model.append(numbers, batch.entries.rows, self.images)

    def remove(self, share: float) -> None:
        """Remove a share of the rows."""
        live = np.array(sorted(self.model.rows), np.uint32)
        numbers = live[self.generator.random(len(live)) < share]
        self.store.remove(numbers)
        self.model.remove(numbers, self.images)

    def commit(self) -> None:
        """Commit all."""
        self.store.commit(self.store.manifest.sequence + 1, "", self.images)

    def close(self) -> None:
        """Close all."""
        self.images.close()
        self.store.close()


@contextmanager
def reopened(working: Working) -> Iterator[tuple[Tables, TableImages, bool]]:
    """Open the store of `working` again, with its tables; see `restored`."""
    working.close()
    store = PageStore.open(working.folder, LABEL)
    tables, images, from_images = restored(store, working.model)
    try:
        yield tables, images, from_images
    finally:
        images.close()
        store.close()


def test_an_image_is_read_through_the_page_cache_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system cannot read past it, tables are the same."""
    monkeypatch.delattr(os, "O_DIRECT", raising=False)
    working = Working(tmp_path)
    working.append(3000)
    working.images.complete()
    working.append(300)
    working.commit()
    with reopened(working) as (tables, _, from_images):
        assert from_images
        assert_same(tables, working.model)


def test_segments_are_split_during_a_walk(tmp_path: Path) -> None:
    """Pieces tile the hash space whatever grows meanwhile; counts are of the moment when their piece was copied."""
    working = Working(tmp_path, due_share=10)
    working.append(16_000)
    for _ in range(12):
        working.images.step(1)
        working.append(1500)
        working.remove(0.02)
    working.images.complete()
    working.remove(0.1)
    working.commit()
    assert max(len(table._segments) for table in working.model.tables.walked().values()) > 4
    with reopened(working) as (tables, _, from_images):
        assert from_images
        assert_same(tables, working.model)


def test_tables_are_built_from_the_rows_alone(tmp_path: Path) -> None:
    """With the same result, the entries included that are removed and still in the cells."""
    working = Working(tmp_path)
    working.append(5000)
    working.remove(0.3)
    working.append(100)
    working.store.commit(1, "")
    working.store.compact(1 << 30)
    with reopened(working) as (tables, images, from_images):
        assert not from_images
        assert_same(tables, working.model)
        images.complete()


def test_rows_that_left_take_no_memory_and_no_files(tmp_path: Path) -> None:
    """Sieves and columns of segments whose rows are all gone, from the cells too; also after a restart."""
    working = Working(tmp_path)
    sizes = []
    for _ in range(6):
        working.append(SEGMENT_ROWS)
        working.commit()
        working.remove(1.0)
        working.commit()
        sizes.append(working.model.tables.cells.statistics().sieve_bytes)
    working.append(10)
    working.remove(0)
    working.images.complete()
    working.commit()
    assert max(sizes[2:]) - sizes[2] < 16 * 1024  # less than a page of sieves
    assert len(list(tmp_path.glob("*.columns"))) == 1
    with reopened(working) as (tables, _, from_images):
        assert from_images
        assert_same(tables, working.model)
        assert tables.cells.statistics().sieve_bytes <= max(sizes)


def test_an_image_is_due_after_a_share_of_changes(tmp_path: Path) -> None:
    """And the files of the one before go with the commit that names it."""
    working = Working(tmp_path, due_share=0.5, least_due=0)
    working.append(1000)
    working.images.complete()
    working.commit()
    working.append(450)
    assert not working.images.step(100)
    working.append(2000)
    working.images.step(100)
    working.images.complete()
    assert (tmp_path / "image-1").exists()
    working.commit()
    assert sorted(path.name for path in tmp_path.glob("image-*")) == ["image-2"]
    assert not (tmp_path / "cells-1").exists()
    working.close()


def test_an_image_that_is_behind_catches_up_before_the_next_one_is_due(tmp_path: Path) -> None:
    """However many changes come with each step, it is complete after half of those that make the next one due."""
    working = Working(tmp_path, due_share=0.5, least_due=0)
    working.append(20_000)
    working.images.complete()
    working.commit()
    working.append(20_100)
    assert working.images.behind == 0
    working.images.step(0)
    assert working.images.behind == 0
    pieces = sum(len(table._segments) for table in working.model.tables.walked().values())
    working.append(3000)
    behind = working.images.behind
    assert pieces // 6 <= behind <= pieces // 3
    assert working.images.step(behind)
    assert working.images.behind == 0
    working.append(12_000)
    assert not working.images.step(working.images.behind)
    assert working.images.behind == 0
    working.close()


def test_a_step_copies_no_more_than_its_budget(tmp_path: Path) -> None:
    """One segment a piece; the thread of decisions does nothing else."""
    working = Working(tmp_path)
    working.append(2000)
    pieces = 1
    while working.images.step(1):
        pieces += 1
    assert pieces == sum(len(table._segments) for table in working.model.tables.walked().values())
    working.close()


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Working:
    """A closed store with an image, and changes after it."""
    working = Working(tmp_path_factory.mktemp("closed"), due_share=10)
    working.append(3000)
    working.images.complete()
    working.append(1000)
    working.remove(0.2)
    working.commit()
    working.close()
    return working


@pytest.mark.parametrize("file", ["image-1", "cells-1", "00000-0.columns", "00000-0.columns.sums"])
@pytest.mark.parametrize("place", [0.0, 0.4, 0.999])
@pytest.mark.parametrize("cut", [False, True])
def test_damage_is_found_and_the_tables_are_built_again(
    closed: Working, tmp_path: Path, file: str, place: float, cut: bool
) -> None:
    """A flipped bit and a file that ends too early are named; the rows are enough."""
    shutil.copytree(closed.folder, tmp_path, dirs_exist_ok=True)
    working = closed
    path = tmp_path / file
    content = bytearray(path.read_bytes())
    if cut:
        del content[int(place * len(content)) :]
    else:
        content[int(place * len(content))] ^= 16
    path.write_bytes(content)
    store = PageStore.open(tmp_path, LABEL)
    with pytest.raises(StoreDamagedError, match=file.removesuffix(".sums")):
        TableImages(store, empty_tables()).restore()
    tables, images = working.model.rebuilt(store)
    assert_same(tables, working.model)
    images.complete()
    store.commit(2, "", images)
    images.close()
    store.close()
    store = PageStore.open(tmp_path, LABEL)
    tables, images, from_images = restored(store, working.model)
    assert from_images
    assert_same(tables, working.model)
    images.close()
    store.close()


def test_a_crash_while_tables_are_built_again_leaves_the_commit(tmp_path: Path) -> None:
    """Columns are written to new files; those of the commit are as they were, and go with the next one."""
    working = Working(tmp_path)
    working.append(3000)
    working.images.complete()
    working.append(100)
    working.commit()
    working.close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    store = PageStore.open(tmp_path, LABEL)
    working.model.rebuilt(store)  # and nothing is closed: a kill
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    store = PageStore.open(tmp_path, LABEL)
    tables, images, from_images = restored(store, working.model)
    assert from_images
    assert_same(tables, working.model)
    images.close()
    working.model.tables, images = working.model.rebuilt(store)
    store.commit(2, "", images)
    assert sorted(path.name for path in tmp_path.iterdir() if "." in path.name) == [
        *(
            f"00000-{file}{suffix}"
            for file in ("0.evidence", "0.names", "0.rows", "0.spans")
            for suffix in ("", ".sums")
        ),
        "00000-0.texts",
        "00000-0.texts.sums",
        "00000-1.columns",
        "00000-1.columns.sums",
        "manifest.json",
    ]
    images.close()
    store.close()


def test_without_images_of_these_tables_nothing_is_restored(tmp_path: Path) -> None:
    """A store that is new, and one whose tables have other names."""
    working = Working(tmp_path)
    assert not TableImages(working.store, empty_tables()).restore()
    working.append(10)
    working.images.complete()
    working.commit()
    other = empty_tables()
    assert not TableImages(working.store, Tables({"u": other.hashes["url"]}, other.cells)).restore()
    working.close()


def test_a_commit_without_images_drops_them(tmp_path: Path) -> None:
    """They would lack the changes since."""
    working = Working(tmp_path)
    working.append(10)
    working.images.complete()
    working.commit()
    working.store.commit(2, "")
    working.close()
    store = PageStore.open(tmp_path, LABEL)
    assert store.manifest.images is None
    assert not list(tmp_path.glob("image-*"))
    store.close()


@pytest.mark.parametrize("from_images", [True, False])
def test_all_dead_rows_can_be_given_back(tmp_path: Path, from_images: bool) -> None:
    """Also those of the segment that takes the next rows; tables and rows are as before, and go on alike."""
    working = Working(tmp_path)
    working.append(5000)
    working.images.complete()
    working.commit()
    working.remove(0.1)
    working.remove(0.1)
    store, images = working.store, working.images
    store.end_segment()
    working.commit()
    while store.compact(1 << 20, below=1.0):
        pass
    images.renew()
    working.commit()
    assert sum(label.rows for label in store.manifest.segments) == len(store) == len(working.model.rows)
    assert store.next_row == 2 * SEGMENT_ROWS
    assert len(list(tmp_path.glob("image-*"))) == 1
    assert list(tmp_path.glob("cells-*[0-9]")) == []
    assert store.manifest.images is not None
    assert sum(label.length for label in store.manifest.images.columns) == 5000 * COLUMN.itemsize
    for _ in range(2):
        working.append(100)
        working.remove(0.1)
        if from_images:
            working.commit()
        else:
            working.store.commit(working.store.manifest.sequence + 1, "")
        with reopened(working) as (tables, again, used_images):
            assert used_images == from_images
            assert_same(tables, working.model)
            again.close()
        working.store = PageStore.open(tmp_path, LABEL)
        working.model.tables, working.images, _ = restored(working.store, working.model)
