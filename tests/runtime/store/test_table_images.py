"""Tables come back from their images as they were at the last commit, or are built again from the rows."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.page_store import PageStore
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
