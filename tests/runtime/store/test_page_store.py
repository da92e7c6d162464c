"""The native store as Python sees it; what it does to its files is tested in the crate."""

from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dedup_service._native import BytesFound, PageStore, Rule, StoreLabel, TablesBuild, read_commit, read_manifest
from dedup_service.core.decision.decider import Decider
from dedup_service.core.decision.entry_rows import ROW, EntryRows
from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.evidence.keys import LEVELS
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.runtime.store.errors import ForeignStoreError, StoreDamagedError
from dedup_service.runtime.store.page_files import go_on_from, lead_to, open_or_create, open_pages
from dedup_service.runtime.store.stored_entries import (
    StoredEntries,
    append_to,
    entries_of,
    held_of,
    live_pieces,
    rows_of,
)
from tests.page_names import NamesInMemory

from .pages import LABEL, pages


def append(store: PageStore, entries: EntryRows) -> int:
    """Append entries; return the first row."""
    return append_to(store, entries)


def commit(store: PageStore, extra: bytes = b"") -> None:
    """Make the present state durable."""
    store.begin_commit(7, "tail", b"note").finish(extra)


def parts(found: BytesFound) -> list[bytes]:
    """Return what was found, row by row."""
    ends = np.frombuffer(found.offsets, np.int64).tolist()
    return [found.data[start:end] for start, end in pairwise(ends)]


def numbers(*rows: int) -> np.ndarray:
    """Return row numbers as an array."""
    return np.array(rows, np.uint32)


def test_rows_are_read_in_any_order(tmp_path: Path) -> None:
    """All fields, the evidence, and where the keys begin."""
    entries = pages(1, 50)
    with closing(open_or_create(tmp_path, LABEL)) as store:
        assert append(store, entries) == 0
        order = np.random.default_rng(2).permutation(50).astype(np.uint32)
        assert (rows_of(store, order) == entries.rows[order]).all()
        spans, paths, starts = parts(store.evidence(order)), parts(store.paths(order)), entries.evidence_starts
        for place, number in enumerate(order.tolist()):
            end = starts[number] + int(entries.rows["evidence_bytes"][number])
            path = end - entries.rows["keys_bytes"][number]
            assert (spans[place], paths[place]) == (entries.evidence[starts[number] : path], entries.evidence[path:end])
        assert entries_of(store, np.arange(50)).evidence == entries.evidence
        assert [piece.tolist() for piece in live_pieces(store, 20)] == [
            [*range(20)],
            [*range(20, 40)],
            [*range(40, 50)],
        ]
        assert (store.find(30), store.find(50), len(store), store.next_row) == (30, None, 50, 50)


@pytest.mark.parametrize(
    ("cut", "more", "fewer"), [(slice(0, -1), b"", None), (slice(None), b"x", None), (slice(None), b"", -1)]
)
def test_bytes_that_do_not_fit_are_refused(cut: slice, more: bytes, fewer: int | None, tmp_path: Path) -> None:
    """A part of a row, and more or less evidence than the rows say; nothing is appended."""
    entries = pages(3, 5)
    with closing(open_or_create(tmp_path, LABEL)) as store:
        with pytest.raises(StateError, match="do not go with"):
            store.append(entries.rows.tobytes()[cut], np.zeros((5, 2), np.uint64), entries.evidence[:fewer] + more)
        with pytest.raises(StateError, match="ascend"):
            append(store, EntryRows(np.zeros(2, ROW)))
        assert store.next_row == 0


def test_rows_that_are_not_live_are_key_errors(tmp_path: Path) -> None:
    """None of the others is removed."""
    with closing(open_or_create(tmp_path, LABEL)) as store:
        append(store, pages(1, 10))
        store.remove(numbers(3))
        for rows in (numbers(3), numbers(10), numbers(4, 4)):
            with pytest.raises(KeyError, match="no row"):
                store.remove(rows)
        for read in (store.rows, store.evidence):
            with pytest.raises(KeyError, match="no row 3"):
                read(numbers(3))
        assert np.flatnonzero(np.frombuffer(store.live(np.arange(12, dtype=np.uint32)), np.bool_)).tolist() == [
            *range(3),
            *range(4, 10),
        ]


def test_a_commit_has_the_state_of_its_beginning(tmp_path: Path) -> None:
    """What comes after it is not there when the store is opened again."""
    entries = pages(4, 20)
    store = open_or_create(tmp_path, LABEL)
    assert (store.manifest.number, store.manifest.sequence, store.take_extra()) == (0, 0, b"")
    append(store, entries)
    pending = store.begin_commit(7, "tail", b"note")
    append(store, pages(5, 5, first=20))
    store.remove(numbers(1))
    pending.finish(b"extra")
    pending.finish(b"again")
    store.close()
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    assert (manifest.next_row, manifest.live_rows, manifest.tail, manifest.note) == (20, 20, "tail", b"note")
    assert read_commit(tmp_path) == (manifest, b"extra")
    with closing(open_or_create(tmp_path, LABEL)) as again:
        assert (again.take_extra(), again.take_extra(), len(again)) == (b"extra", b"", 20)
        assert (entries_of(again, np.arange(20)).rows == entries.rows).all()
        again.verify()


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """Also a second close, and one whose commit is finished later."""
    store = open_or_create(tmp_path, LABEL)
    append(store, pages(1, 3))
    pending = store.begin_commit(1, "", b"")
    for _ in range(2):
        store.close()
    pending.finish(b"")
    for call in (lambda: len(store), store.verify, lambda: store.rows(numbers(0))):
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
        append(store, pages(1, 9))
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
    entries = pages(1, 9)
    entries.rows["keys_bytes"] = 0
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
        append(store, entries)
        build = TablesBuild(store, rule, 8, LEVELS, 2)
        with pytest.raises(StoreDamagedError, match="has a row 0 without a path"):
            build.step(100)
        with pytest.raises(StateError, match="could not be built"):
            build.step(100)


def test_an_erased_page_is_in_no_file(tmp_path: Path) -> None:
    """At once, and by the number that a search returns."""
    with closing(open_or_create(tmp_path, LABEL)) as store:
        entries = pages(1, 9)
        append(store, entries)
        commit(store)
        row = store.find_kept(4)
        assert row == 4
        start = entries.evidence_starts[4]
        evidence = entries.evidence[start : start + 40]
        assert evidence in (tmp_path / "evidence").read_bytes()
        store.erase(numbers(4))
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
        append(store, pages(1, 10))
        commit(store)
    opened = open_pages(base)
    assert opened is not None
    with closing(go_on_from(opened, own, LABEL)) as store:
        assert append(store, pages(2, 5, first=10)) == store.first_own_row == 10
        commit(store)
        with closing(open_or_create(base, StoreLabel("b", "a space"))) as writer:
            writer.erase(numbers(3, 4))
            commit(writer)
        assert len(store) == 15
        erased = rows_of(store, np.array([3]))[0]
        assert (erased["sequence"], erased["flags"], set(store.evidence(numbers(3)).data)) == (0, 0, {0})
        entries = entries_of(store, np.array([3, 5]))
        assert len(entries.evidence) == entries.rows["evidence_bytes"][1]
        assert not any(entries.rows[:1].tobytes())
        assert not len(held_of(store, np.array([3, 4])))
        assert store.find(4) == 3
        store.remove(numbers(3))
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
        append(store, pages(1, 3))
        commit(store)
    (tmp_path / "manifest").unlink()
    with pytest.raises(StoreDamagedError, match="there is no manifest"):
        open_or_create(tmp_path, LABEL)
