"""Tables are read as they were at the last commit, and a commit writes what changed."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.manifest import read_manifest
from dedup_service.runtime.store.page_store import PageStore
from dedup_service.runtime.store.table_files import PAGE_BYTES, WordChanges

from .pages import LABEL

PAGES = 20
WORDS = PAGES * PAGE_BYTES // 8


def opened(folder: Path) -> PageStore:
    """Return the store in `folder`."""
    return PageStore.open(folder, LABEL)


def loaded(folder: Path, name: str = "t") -> npt.NDArray[np.uint64]:
    """Return a table as a new process reads it."""
    store = opened(folder)
    array = store.tables.load(name)
    store.close()
    return array


def changes(array: npt.NDArray[np.uint64], places: list[int]) -> WordChanges:
    """Return the words of `array` at `places`, as a caller records them."""
    at = np.array(places, np.uint64)
    return WordChanges(at, array[at.astype(np.int64)])


@pytest.mark.parametrize("dtype", ["u1", "<u4", "<f8", "<i8"])
@pytest.mark.parametrize("shape", [(0,), (1,), (PAGE_BYTES,), (3, PAGE_BYTES // 2 + 1)])
def test_an_array_is_read_as_it_was(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    """Of any type and shape, also into memory that the caller gives."""
    array = np.random.default_rng(1).integers(0, 100, shape).astype(dtype)
    store = opened(tmp_path)
    store.commit(1, "", {"t": array})
    store.close()
    store = opened(tmp_path)
    found, target = store.tables.load("t"), np.ones(shape, dtype)
    assert store.tables.load("t", target) is target
    store.close()
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert (found == array).all()
    assert (target == array).all()


def test_only_changed_pages_are_written(tmp_path: Path) -> None:
    """One page and a few words of places for each page with a change; nothing without one."""
    array = np.arange(WORDS, dtype=np.uint64)
    store = opened(tmp_path)
    store.commit(1, "", {"t": array})
    before = store.tables.written_bytes
    array[[5, WORDS // 2]] = 0
    store.commit(2, "", {"t": array})
    assert store.tables.written_bytes - before == 2 * (PAGE_BYTES + 8)
    store.commit(3, "", {"t": array})
    assert store.tables.written_bytes - before == 2 * (PAGE_BYTES + 8)
    store.close()
    assert (loaded(tmp_path) == array).all()


def test_after_opening_changes_are_compared_with_what_was_loaded(tmp_path: Path) -> None:
    """A loaded table needs no new base."""
    array = np.arange(WORDS, dtype=np.uint64)
    store = opened(tmp_path)
    store.commit(1, "", {"t": array})
    array[5] = 0
    store.commit(2, "", {"t": array})
    store.close()
    store = opened(tmp_path)
    array = store.tables.load("t")
    array[PAGE_BYTES] = 7
    store.commit(3, "", {"t": array})
    assert store.tables.written_bytes == PAGE_BYTES + 8
    store.close()
    assert (loaded(tmp_path) == array).all()


def test_recorded_words_are_written_and_nothing_else(tmp_path: Path) -> None:
    """16 bytes a change; where a word changed twice the last one counts."""
    array = np.arange(WORDS, dtype=np.uint64)
    store = opened(tmp_path)
    store.commit(1, "", {"t": array}, {"t": changes(array, [])})
    before = store.tables.written_bytes
    array[7] = 1
    first = changes(array, [7])
    array[[7, 9]] = 2
    second = changes(array, [7, 9])
    both = WordChanges(np.append(first.places, second.places), np.append(first.words, second.words))
    store.commit(2, "", {"t": array}, {"t": both})
    assert store.tables.written_bytes - before == 3 * 16
    store.close()
    assert (loaded(tmp_path) == array).all()


def test_a_table_grows(tmp_path: Path) -> None:
    """New pages are changes; a smaller array gets a new base."""
    store = opened(tmp_path)
    for size in (100, PAGE_BYTES, PAGE_BYTES + 5, 3 * PAGE_BYTES, 9):
        array = np.random.default_rng(size).integers(0, 255, size).astype(np.uint8)
        store.commit(size, "", {"t": array})
        assert (store.tables.load("t") == array).all()
    store.close()
    assert (loaded(tmp_path) == array).all()


def test_the_manifest_has_the_tables_of_the_last_commit(tmp_path: Path) -> None:
    """A table that is not handed over goes, with its files."""
    store = opened(tmp_path)
    store.commit(1, "", {"t": np.arange(9), "u": np.arange(9)})
    store.commit(2, "", {"u": np.arange(9)})
    assert set(store.tables.tables) == {"u", "alive"}
    assert not list(tmp_path.glob("t.base*"))
    store.close()


def rebased(
    store: PageStore, name: str, array: npt.NDArray[np.uint64], between: Callable[[], None], words: bool
) -> None:
    """Write a new base, with a call between its pieces."""
    for _ in store.tables.rebase(name, array, words=words):
        between()


@pytest.mark.parametrize("words", [True, False])
def test_a_base_is_due_when_changes_exceed_a_twentieth(tmp_path: Path, words: bool) -> None:
    """Once it is written, older change files go, and nothing is due."""
    array = np.arange(WORDS, dtype=np.uint64)
    store = opened(tmp_path)
    record = {"t": changes(array, [])} if words else {}
    store.commit(1, "", {"t": array}, record)
    places = list(range(0, WORDS, WORDS // 2)) if not words else list(range(WORDS // 30))
    array[places] = 0
    store.commit(2, "", {"t": array}, {"t": changes(array, places)} if words else {})
    assert store.tables.due() == ["t"]
    rebased(store, "t", array, lambda: None, words)
    assert store.tables.due() == []
    store.commit(3, "", {"t": array}, record)
    assert [path.name for path in tmp_path.glob("t.base*")] == [store.tables.tables["t"].base]
    assert not list(tmp_path.glob("changes-2"))
    store.close()
    assert (loaded(tmp_path) == array).all()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 20), words=st.booleans(), commits=st.lists(st.integers(0, 5), max_size=4))
def test_a_base_is_copied_while_the_array_changes(tmp_path: Path, seed: int, words: bool, commits: list[int]) -> None:
    """Whatever changes between its pieces, and whatever is committed meanwhile, the last commit is what is read."""
    generator = np.random.default_rng(seed)
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    array = np.arange(200 * PAGE_BYTES // 8, dtype=np.uint64)
    recorded: list[int] = []
    store = opened(folder)
    pieces = 0

    def change() -> None:
        places = generator.integers(0, len(array), 5).tolist()
        places.append(int(generator.integers(0, 20)))  # words that change again and again
        for place in places:
            array[place] += np.uint64(1)
            recorded.append(place)

    def commit() -> None:
        # Words as a kernel records them are older where a place changed again; the last one is the present one.
        record = {"t": changes(array, recorded)} if words else {}
        store.commit(store.manifest.sequence + 1, "", {"t": array}, record)
        recorded.clear()

    def between() -> None:
        nonlocal pieces
        pieces += 1
        change()
        for _ in range(commits.count(pieces)):
            commit()
            change()

    commit()
    change()
    commit()
    change()
    rebased(store, "t", array, between, words)
    change()
    for _ in range(1 + commits.count(0)):
        commit()
        expected = array.copy()
        change()
    store.close()
    assert (loaded(folder) == expected).all()
    assert opened(folder).tables.tables["t"].base != "t.base-1"


def test_moved_elements_get_a_new_base(tmp_path: Path) -> None:
    """A caller that moved elements without recording them says so."""
    array = np.arange(WORDS, dtype=np.uint64)
    store = opened(tmp_path)
    store.commit(1, "", {"t": array}, {"t": changes(array, [])})
    array = array[::-1].copy()
    store.tables.forget("t")
    store.commit(2, "", {"t": array}, {"t": changes(array, [])})
    store.close()
    assert (loaded(tmp_path) == array).all()


@pytest.mark.parametrize("name", ["", "A", "a/b", "..", "a" * 65, "alive"])
def test_a_name_that_is_no_file_name_is_refused(tmp_path: Path, name: str) -> None:
    """So is the name of the store's own table."""
    store = opened(tmp_path)
    with pytest.raises(ConfigurationError):
        store.commit(1, "", {name: np.arange(3)})
    store.close()


def test_changes_outside_the_array_are_refused(tmp_path: Path) -> None:
    """Before anything of them counts."""
    array = np.arange(10, dtype=np.uint64)
    store = opened(tmp_path)
    store.commit(1, "", {"t": array}, {"t": changes(array, [])})
    with pytest.raises(ConfigurationError, match="out of range"):
        store.commit(2, "", {"t": array}, {"t": WordChanges(np.array([10], np.uint64), array[:1])})
    store.close()
    assert (loaded(tmp_path) == array).all()


def test_an_array_that_is_not_contiguous_is_refused(tmp_path: Path) -> None:
    """It could not be read into or written without a copy."""
    store = opened(tmp_path)
    with pytest.raises(ConfigurationError, match="contiguous"):
        store.commit(1, "", {"t": np.arange(10)[::2]})
    store.close()


@pytest.mark.parametrize("file", ["t.base-1", "changes-2"])
@pytest.mark.parametrize("place", [0.0, 0.3, 0.999])
def test_damage_is_found_while_a_table_is_loaded(tmp_path: Path, file: str, place: float) -> None:
    """A flipped bit and a file that ends too early are named."""
    array = np.arange(WORDS, dtype=np.uint64)
    store = opened(tmp_path)
    store.commit(1, "", {"t": array})
    array[5] = 0
    store.commit(2, "", {"t": array})
    store.close()
    path = tmp_path / file
    content = bytearray(path.read_bytes())
    whole = bytes(content)
    content[int(place * len(content))] ^= 16
    for altered in (bytes(content), whole[: int(place * len(whole))]):
        path.write_bytes(altered)
        store = opened(tmp_path)
        with pytest.raises(StoreDamagedError, match=file):
            store.tables.load("t")
        store.close()


def test_a_table_of_another_type_is_not_filled(tmp_path: Path) -> None:
    """The error names both."""
    store = opened(tmp_path)
    store.commit(1, "", {"t": np.arange(3)})
    with pytest.raises(ConfigurationError, match=r"<i8\[3\].*<f8\[4\]"):
        store.tables.load("t", np.zeros(4))
    store.close()
    assert read_manifest(tmp_path).sequence == 1
