"""The native store as Python sees it; what it does to its files is tested in the crate."""

import random
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
from dedup_service.runtime.store.page_files import go_on_from, lead_to, open_or_create, open_pages
from dedup_service.runtime.store.stored_entries import StoredEntries, live_pieces
from tests.page_names import NamesInMemory

from .pages import LABEL, pages


def commit(store: PageStore, extra: bytes = b"") -> None:
    """Make the present state durable."""
    store.begin_commit(7, "tail", b"note").finish(extra)


def test_rows_are_read_in_any_order(tmp_path: Path) -> None:
    """With their evidence and paths, or without evidence."""
    entries = pages(1, 50)
    with closing(open_or_create(tmp_path, LABEL)) as store:
        assert store.append(entries) == 0
        order = random.Random(2).sample(range(50), 50)
        assert store.entries(order) == [entries[row] for row in order]
        assert [entry.row for entry in store.entries(order)] == order
        without = store.entries(order, with_evidence=False)
        assert [(entry.keys, entry.evidence) for entry in without] == [(entries[row].keys, b"") for row in order]
        assert list(live_pieces(store, 20)) == [
            [*range(20)],
            [*range(20, 40)],
            [*range(40, 50)],
        ]
        assert (store.find(30), store.find(50), len(store), store.next_row) == (30, None, 50, 50)


def test_entries_ascend(tmp_path: Path) -> None:
    """Nothing is appended otherwise."""
    with closing(open_or_create(tmp_path, LABEL)) as store:
        with pytest.raises(StateError, match="ascend"):
            store.append(pages(1, 1) * 2)
        assert store.next_row == 0


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


def test_a_commit_has_the_state_of_its_beginning(tmp_path: Path) -> None:
    """What comes after it is not there when the store is opened again."""
    entries = pages(4, 20)
    store = open_or_create(tmp_path, LABEL)
    assert (store.manifest.number, store.manifest.sequence, store.take_extra()) == (0, 0, b"")
    store.append(entries)
    pending = store.begin_commit(7, "tail", b"note")
    store.append(pages(5, 5, first=20))
    store.remove([1])
    pending.finish(b"extra")
    pending.finish(b"again")
    store.close()
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    assert (manifest.next_row, manifest.live_rows, manifest.tail, manifest.note) == (20, 20, "tail", b"note")
    assert read_commit(tmp_path) == (manifest, b"extra")
    with closing(open_or_create(tmp_path, LABEL)) as again:
        assert (again.take_extra(), again.take_extra(), len(again)) == (b"extra", b"", 20)
        assert again.entries(range(20)) == entries
        again.verify()


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


@pytest.mark.parametrize("name", ["rows", "places", "evidence", "manifest"])
def test_altered_files_are_damage(name: str, tmp_path: Path) -> None:
    """At the opening, or when the altered row is read; the message names the file."""
    with closing(open_or_create(tmp_path, LABEL)) as store:
        store.append(pages(1, 9))
        commit(store)
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / name).write_bytes(content)

    def read() -> None:
        with closing(open_or_create(tmp_path, LABEL)) as again:
            again.verify()

    with pytest.raises(StoreDamagedError, match=str(tmp_path / name)):
        read()


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


def test_an_erased_page_is_in_no_file(tmp_path: Path) -> None:
    """At once, and by the number that a search returns."""
    with closing(open_or_create(tmp_path, LABEL)) as store:
        entries = pages(1, 9)
        store.append(entries)
        commit(store)
        row = store.find_kept(4)
        assert row == 4
        evidence = entries[4].evidence
        assert evidence in (tmp_path / "evidence").read_bytes()
        store.erase([4])
        assert evidence not in (tmp_path / "evidence").read_bytes()
        assert (store.find_kept(4), store.find(4), len(store)) == (None, None, 8)
        commit(store)
        commit(store)
        store.compact()
    assert not (tmp_path / "erased").exists()


def test_a_store_goes_on_from_a_base(tmp_path: Path) -> None:
    """It has the rows of the base, finds it where it is now, and loses what is taken down there."""
    base, own = tmp_path / "base", tmp_path / "own"
    with closing(open_or_create(base, StoreLabel("b", "a space"))) as store:
        store.append(pages(1, 10))
        commit(store)
    opened = open_pages(base)
    assert opened is not None
    with closing(go_on_from(opened, own, LABEL)) as store:
        assert store.append(pages(2, 5, first=10)) == store.first_own_row == 10
        commit(store)
        with closing(open_or_create(base, StoreLabel("b", "a space"))) as writer:
            writer.erase([3, 4])
            commit(writer)
        assert len(store) == 15
        assert [entry.sequence for entry in store.entries([3, 5, 4])] == [5]
        assert not store.entries([3, 4], with_evidence=False)
        assert store.find(4) == 3
        store.remove([3])
        assert store.find(4) == 4
    base.rename(tmp_path / "moved")
    with pytest.raises(ForeignStoreError, match="goes on from a base"):
        open_pages(own, LABEL)
    lead_to(own, tmp_path / "moved")
    again = open_pages(own, LABEL, writable=True)
    assert again is not None
    with closing(again):
        assert (len(again), again.find(3), again.find(12)) == (13, None, 12)


def test_a_folder_without_a_store_has_none(tmp_path: Path) -> None:
    """And one that has lost its manifest is damaged."""
    assert (open_pages(tmp_path), read_manifest(tmp_path), read_commit(tmp_path)) == (None, None, None)
    with closing(open_or_create(tmp_path, LABEL)) as store:
        store.append(pages(1, 3))
        commit(store)
    (tmp_path / "manifest").unlink()
    with pytest.raises(StoreDamagedError, match="there is no manifest"):
        open_or_create(tmp_path, LABEL)
