"""The native store as Python sees it; what it does to its files is tested in the crate."""

from contextlib import closing
from pathlib import Path

import pytest

from dedup_service._native import Entry, PageStore, Rule, StoreLabel, TablesBuild, read_commit, read_manifest
from dedup_service.core.decision.decider import Decider
from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.evidence.keys import LEVELS
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.runtime.store.errors import ForeignStoreError, StoreDamagedError
from dedup_service.runtime.store.page_files import open_or_create, open_pages
from dedup_service.runtime.store.stored_entries import StoredEntries
from tests.page_names import NamesInMemory

from .pages import LABEL, pages


def commit(store: PageStore, extra: bytes = b"") -> None:
    """Make the present state durable."""
    store.begin_commit(7, "tail", b"note").finish(extra)


def test_rows_that_are_not_live_are_key_errors(tmp_path: Path) -> None:
    """None of the others is removed."""
    with closing(open_or_create(tmp_path, LABEL)) as store:
        store.append(pages(1, 10))
        store.remove([3])
        for rows in ([3], [10], [4, 4]):
            with pytest.raises(KeyError, match="no row"):
                store.remove(rows)
        with pytest.raises(KeyError, match="no row 3"):
            store.entries([3])
        assert store.live_rows(0, 99) == [*range(3), *range(4, 10)]


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """Also a second close, and one whose commit is finished later."""
    store = open_or_create(tmp_path, LABEL)
    store.append(pages(1, 3))
    pending = store.begin_commit(1, "", b"")
    for _ in range(2):
        store.close()
    pending.finish(b"")
    for call in (lambda: len(store), store.verify, lambda: store.entries([0])):
        with pytest.raises(StateError, match="is closed"):
            call()


@pytest.mark.parametrize("label", [StoreLabel("another log", "a space"), StoreLabel("a log", "another space")])
def test_the_store_of_another_log_or_space_is_refused(tmp_path: Path, label: StoreLabel) -> None:
    """It says which ones."""
    open_or_create(tmp_path, LABEL).close()
    with pytest.raises(ForeignStoreError, match=r"another .*delete that folder"):
        open_or_create(tmp_path, label)


def test_tables_are_built_once_and_not_from_altered_rows(tmp_path: Path) -> None:
    """The message names the row; nothing is left to go on with."""
    entries = [Entry(at, None, None, None, at, settled=True) for at in range(9)]
    with closing(open_or_create(tmp_path, LABEL)) as store:
        rule = Rule(rule_for())
        for slots, levels in [(0, 8), (8, 0), (1 << 40, 8), (8, 1 << 40)]:
            with pytest.raises(ConfigurationError, match=f"1 to 64 slots and 1 to 32 levels, got {slots} and {levels}"):
                TablesBuild(store, rule, slots, levels, 1)
        with closing(StoredEntries(store, TablesBuild(store, rule, 8, LEVELS, 2), b"")) as stored:
            decider = Decider(rule_for(), "a space", NamesInMemory(), layout=IndexLayout(slots=8), entries=stored)
            with pytest.raises(StateError, match="given away"):
                Decider(rule_for(), "a space", NamesInMemory(), layout=IndexLayout(slots=8), entries=stored)
            assert len(decider) == 0
    with closing(open_or_create(tmp_path, LABEL)) as store:
        store.append(entries)
        build = TablesBuild(store, rule, 8, LEVELS, 2)
        with pytest.raises(StoreDamagedError, match="has a row 0 without a path"):
            build.step(100)
        with pytest.raises(StateError, match="could not be built"):
            build.step(100)


def test_a_folder_without_a_store_has_none(tmp_path: Path) -> None:
    """And one that has lost its manifest is damaged."""
    assert (open_pages(tmp_path), read_manifest(tmp_path), read_commit(tmp_path)) == (None, None, None)
    with closing(open_or_create(tmp_path, LABEL)) as store:
        store.append(pages(1, 3))
        commit(store)
    (tmp_path / "manifest").unlink()
    with pytest.raises(StoreDamagedError, match="there is no manifest"):
        open_or_create(tmp_path, LABEL)
