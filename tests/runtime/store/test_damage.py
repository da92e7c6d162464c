"""Altered files are found or do no harm: what is read is what was written, or an error names the file."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dedup_service.runtime.store.block_file import BLOCK_BYTES
from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.page_store import PageStore
from dedup_service.runtime.store.stored_rows import EVIDENCE_SPAN

from .pages import LABEL, SEGMENT_ROWS, Oracle, assert_equal, pages

Damage = Callable[[Path, random.Random], None]


def flipped(folder: Path, rng: random.Random) -> None:
    """Flip a bit of a file."""
    path = some_file(folder, rng)
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def truncated(folder: Path, rng: random.Random) -> None:
    """Cut a file off."""
    path = some_file(folder, rng)
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def zeroed(folder: Path, rng: random.Random) -> None:
    """Replace a page of a file by zeros."""
    path = some_file(folder, rng)
    content = bytearray(path.read_bytes())
    start = rng.randrange(len(content)) // 4096 * 4096
    size = min(4096, len(content) - start)
    content[start : start + size] = bytes(size)
    path.write_bytes(content)


def swapped(folder: Path, rng: random.Random) -> None:
    """Exchange two files, often of the same kind."""
    path = some_file(folder, rng)
    alike = [other for other in folder.iterdir() if other.suffix == path.suffix and other != path]
    other = rng.choice(alike or [other for other in folder.iterdir() if other != path])
    content = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(content)


def moved_blocks(folder: Path, rng: random.Random) -> None:
    """Exchange two blocks of a file, with their checksums."""
    files = [
        path for path in folder.glob("*.*") if path.stat().st_size > 2 * BLOCK_BYTES and path.suffix == ".evidence"
    ]
    path = rng.choice(files)
    for target, size in ((path, BLOCK_BYTES), (path.with_name(path.name + ".sums"), 4)):
        content = bytearray(target.read_bytes())
        content[:size], content[size : 2 * size] = content[size : 2 * size], content[:size]
        target.write_bytes(content)


def missing(folder: Path, rng: random.Random) -> None:
    """Delete a file."""
    some_file(folder, rng).unlink()


def some_file(folder: Path, rng: random.Random) -> Path:
    """Return a file that is not empty; each kind is as likely as any other."""
    files = [path for path in sorted(folder.iterdir()) if path.stat().st_size]
    suffix = rng.choice(sorted({path.suffix.rstrip("0123456789") for path in files}))
    return rng.choice([path for path in files if path.suffix.rstrip("0123456789") == suffix])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Oracle]:
    """A closed store with compacted segments and an erasure, and its oracle."""
    folder, oracle = tmp_path_factory.mktemp("whole"), Oracle()
    store = PageStore.open(folder, LABEL, segment_rows=SEGMENT_ROWS)
    for seed in range(4):
        batch = pages(seed, 100, largest=2000)
        numbers = store.append(batch.entries, batch.names, batch.texts)
        oracle.append(numbers, batch)
        gone = np.array([number for number in sorted(oracle.rows) if number < 128 and number % 3 == 0], np.uint32)
        store.remove(gone)
        oracle.remove(gone)
        store.commit(seed, "")
        gone = np.array([number for number in sorted(oracle.rows) if number < 128 and number % 2], np.uint32)
        store.remove(gone)
        oracle.remove(gone)
        store.commit(seed, "", bytes(range(256)) * 20)
        while store.compact(1 << 30):
            pass
    store.erase(399)
    oracle.rows[399].erase()
    store.close()
    return folder, oracle


@pytest.mark.parametrize("damage", [flipped, truncated, zeroed, swapped, moved_blocks, missing])
@pytest.mark.parametrize("seed", range(12))
def test_damage_is_found_or_does_no_harm(whole: tuple[Path, Oracle], tmp_path: Path, damage: Damage, seed: int) -> None:
    """Whatever happens to a file, what is read is right, or an error of the store names what is wrong."""
    folder, oracle = whole
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    damage(copy, random.Random(seed))
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    altered = before != {path.name: path.read_bytes() for path in folder.iterdir()}
    try:
        assert_whole(copy, oracle)
    except StoreDamagedError as error:
        message = str(error)
    else:
        message = ""
    assert not message or altered
    assert not message or str(copy) in message


def assert_whole(folder: Path, oracle: Oracle) -> None:
    """Check that a store has what its oracle has."""
    store = PageStore.open(folder, LABEL, segment_rows=SEGMENT_ROWS)
    try:
        assert_equal(store, oracle)
        assert store.extra() == bytes(range(256)) * 20
    finally:
        store.close()


def test_an_undamaged_copy_is_read(whole: tuple[Path, Oracle], tmp_path: Path) -> None:
    """What the tests above alter is whole before."""
    folder, oracle = whole
    shutil.copytree(folder, tmp_path / "copy")
    store = PageStore.open(tmp_path / "copy", LABEL, segment_rows=SEGMENT_ROWS)
    store.verify()
    assert_equal(store, oracle)
    store.close()


@pytest.mark.parametrize("seed", range(5))
def test_what_lies_behind_the_last_commit_is_cut_off(tmp_path: Path, seed: int) -> None:
    """After a power cut files may be longer than committed, with anything in them, and files may be left over."""
    rng, oracle = random.Random(seed), Oracle()
    store = PageStore.open(tmp_path, LABEL, segment_rows=SEGMENT_ROWS)
    batch = pages(seed, 150, largest=3000)
    oracle.append(store.append(batch.entries, batch.names, batch.texts), batch)
    store.commit(1, "")
    store.close()
    for path in list(tmp_path.glob("0*.*")):
        with path.open("ab") as file:
            file.write(rng.randbytes(rng.randrange(9) * 1000))
    for name in (
        *("00002-1.rows", "00003-0.evidence", "00003-0.evidence.sums", "live-7", "extra-7"),
        "manifest.tmp",
    ):
        (tmp_path / name).write_bytes(rng.randbytes(100))
    (tmp_path / "a person's own file").write_text("stays")
    store = PageStore.open(tmp_path, LABEL)
    assert_equal(store, oracle)
    more = pages(seed + 100, 300, largest=3000)
    oracle.append(store.append(more.entries, more.names, more.texts), more)
    assert_equal(store, oracle)
    store.commit(2, "")
    store.close()
    store = PageStore.open(tmp_path, LABEL)
    store.verify()
    assert_equal(store, oracle)
    assert not (tmp_path / "live-7").exists()
    assert (tmp_path / "a person's own file").exists()
    store.close()


def test_an_error_names_file_and_block(tmp_path: Path) -> None:
    """The message has what an operator looks for."""
    store = PageStore.open(tmp_path, LABEL)
    store.append(pages(1, 200, largest=1000).entries)
    store.commit(1, "")
    store.close()
    path = tmp_path / "00000-0.evidence"
    content = bytearray(path.read_bytes())
    content[2 * BLOCK_BYTES + 9] ^= 1
    path.write_bytes(content)
    store = PageStore.open(tmp_path, LABEL)
    assert len(store.rows(np.arange(200))) == 200
    with pytest.raises(StoreDamagedError, match=r"00000-0\.evidence: block 2 \(bytes 8192 to 12288\)"):
        store.evidence(np.arange(200))
    store.close()


def test_altered_places_of_evidence_are_found(tmp_path: Path) -> None:
    """Evidence is read at the places that the small file has, so these are verified as rows are."""
    store = PageStore.open(tmp_path, LABEL)
    store.append(pages(1, 200).entries)
    store.commit(1, "")
    store.close()
    path = tmp_path / "00000-0.spans"
    content = bytearray(path.read_bytes())
    content[150 * EVIDENCE_SPAN.itemsize] ^= 1
    path.write_bytes(content)
    store = PageStore.open(tmp_path, LABEL)
    assert len(store.rows(np.arange(200))) == 200
    with pytest.raises(StoreDamagedError, match=r"00000-0\.spans: block 0"):
        store.evidence(np.arange(10))
    store.close()
