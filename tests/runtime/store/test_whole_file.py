"""What a commit has beside the rows is in a file of its own, which changes with commits alone."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dedup_service.runtime.store.errors import StoreDamagedError, StoreFullError
from dedup_service.runtime.store.page_store import PageStore

from .pages import LABEL, SEGMENT_ROWS, pages

EXTRA = bytes(range(256)) * 4096


def committed(folder: Path, extra: bytes = EXTRA) -> PageStore:
    """Return an open store whose last commit has `extra`."""
    store = PageStore.open(folder, LABEL, segment_rows=SEGMENT_ROWS)
    store.append(pages(1, 3 * SEGMENT_ROWS).entries)
    store.commit(1, "", extra=extra)
    return store


def files_of_extra(folder: Path) -> list[tuple[str, int, int]]:
    """Return name, inode and time of change of the files that have it."""
    found = [(path, path.stat()) for path in sorted(folder.glob("extra-*"))]
    return [(path.name, status.st_ino, status.st_mtime_ns) for path, status in found]


def test_an_erasure_writes_the_small_manifest_alone(tmp_path: Path) -> None:
    """However much a commit has beside the rows, it is written once."""
    store = committed(tmp_path)
    before = files_of_extra(tmp_path)
    for row in range(5):
        store.erase(row)
    assert files_of_extra(tmp_path) == before
    assert (tmp_path / "manifest.json").stat().st_size < 10_000
    assert store.extra() == EXTRA
    store.close()


def test_compaction_writes_the_small_manifest_alone(tmp_path: Path) -> None:
    """A segment is replaced in the manifest; what the last commit has beside the rows stays where it is."""
    store = committed(tmp_path)
    store.remove(np.arange(1, SEGMENT_ROWS))
    store.commit(2, "", extra=EXTRA)
    before = files_of_extra(tmp_path)
    while store.compact(1 << 20):
        pass
    assert (tmp_path / "00000-1.rows").exists()
    assert files_of_extra(tmp_path) == before
    store.close()


def test_the_file_goes_with_the_next_commit(tmp_path: Path) -> None:
    """One commit has one file, or none; also of a store that was opened again."""
    store = committed(tmp_path)
    store.commit(2, "", extra=b"second")
    assert [name for name, *_ in files_of_extra(tmp_path)] == ["extra-2"]
    store.close()
    store = PageStore.open(tmp_path, LABEL)
    assert store.extra() == b"second"
    store.commit(3, "")
    assert files_of_extra(tmp_path) == []
    assert store.extra() == b""
    store.close()


def test_a_commit_that_fails_leaves_the_file_before(tmp_path: Path) -> None:
    """What `finish` calls for the content may fail as well."""
    store = committed(tmp_path)

    def fails() -> bytes:
        raise StoreFullError("no")

    with pytest.raises(StoreFullError):
        store.begin_commit(2, "", extra=fails).finish()
    assert store.extra() == EXTRA
    again = PageStore.open(tmp_path, LABEL)
    assert again.extra() == EXTRA
    again.close()


def test_a_reader_has_what_it_opened(tmp_path: Path) -> None:
    """A commit of the writer deletes the file, and the reader does not need it any more."""
    store = committed(tmp_path)
    reader = PageStore.open_read_only(tmp_path, LABEL)
    assert reader is not None
    store.commit(2, "", extra=b"second")
    assert reader.extra() == EXTRA
    reader.close()
    store.close()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(EXTRA[:-1]),
        lambda path: path.write_bytes(EXTRA + b"\0"),
        lambda path: path.write_bytes(b"\1" + EXTRA[1:]),
        lambda path: path.write_bytes(b""),
    ],
)
def test_damage_is_found(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    """A file that is missing, cut off, longer or altered is named."""
    committed(tmp_path).close()
    damage(tmp_path / "extra-1")
    store = PageStore.open(tmp_path, LABEL)
    for read in (store.extra, store.verify):
        with pytest.raises(StoreDamagedError, match="extra-1 "):
            read()
    store.close()
    with pytest.raises(StoreDamagedError, match="extra-1 "):
        PageStore.open_read_only(tmp_path, LABEL)
