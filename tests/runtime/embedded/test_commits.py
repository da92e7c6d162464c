"""Kept pages are committed beside the decisions; what is damaged is built again, or refused, and never used."""

import gc
import logging
import os
import shutil
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dedup_service.core.errors import StateError
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.embedded.commits import DAMAGED_PAGES
from dedup_service.runtime.embedded.database import (
    Database,
    StateClosedError,
    StateDamagedError,
    StateFullError,
)
from dedup_service.runtime.embedded.evidence import MOVED
from dedup_service.runtime.embedded.state import JOURNAL_FILE, PAGES_FOLDER, State, StateSettings
from dedup_service.runtime.embedded.state_info import state_info
from dedup_service.runtime.embedded.state_view import state_view

from .prepared import SPACE, SPACE_ID, lose_pages, prepared

NARROW = StateSettings(IndexLayout(window=8), snapshot_every=10)
"""Pages leave the window soon, and commits are frequent."""

WIDE = StateSettings(snapshot_every=10)
"""No page leaves the window: the journal has all evidence."""


def opened(folder: Path | None, settings: StateSettings = NARROW) -> State:
    """An open state."""
    if folder is not None:
        folder.mkdir(exist_ok=True)
    return State(folder, SPACE_ID, SPACE, None, settings)


def decide(state: State, numbers: range, site: str = "a", batch: int = 5) -> list[Verdict]:
    """The verdicts on one story for each number, at a site."""
    verdicts: list[Verdict] = []
    for start in range(numbers.start, numbers.stop, batch):
        some = range(start, min(start + batch, numbers.stop))
        verdicts += state.decide([(prepared(f"https://{site}.example/{n}", n), None) for n in some])
    return verdicts


def filled(folder: Path, pages: int, settings: StateSettings = NARROW) -> None:
    """Leave a closed state with so many kept pages in `folder`."""
    state = opened(folder, settings)
    decide(state, range(pages))
    state.close()


def kinds_of_copies(folder: Path, pages: int, settings: StateSettings = NARROW) -> list[VerdictKind]:
    """The verdicts of the state in `folder` on copies of its pages."""
    state = opened(folder, settings)
    try:
        return [verdict.kind for verdict in decide(state, range(pages), "b")]
    finally:
        state.close()


def commit(state: State) -> int:
    """Wait for a commit that was begun; return the sequence of the last one."""
    assert state._commits is not None
    state._commits.wait()
    return state._commits.covers


def evidence_in_journal(state: State) -> dict[int, bytes]:
    """The evidence that the journal has, by sequence."""
    return dict(state.journal.database.rows("SELECT sequence, evidence FROM evidence"))


def test_evidence_is_in_one_place_at_least_and_later_in_one_only(tmp_path: Path) -> None:
    """Every page in the journal at first; those of settled pages are left to the kept pages by and by."""
    state = opened(tmp_path)
    assert state._entries is not None
    pages = {n + 1: prepared(f"https://a.example/{n}", n).evidence for n in range(60)}
    for start in range(0, 60, 5):
        decide(state, range(start, start + 5))
        commit(state)
        in_journal = evidence_in_journal(state)
        held = {entry.sequence: entry.evidence for entry in state.held().entries()}
        assert held == {sequence: pages[sequence] for sequence in range(1, start + 6)}
        committed = state._entries.pages.manifest.next_row
        assert set(in_journal) >= set(range(committed + 1, start + 6))
        assert all(pages[sequence] == evidence for sequence, evidence in in_journal.items())
    assert 30 not in in_journal
    assert 60 in in_journal
    state.close()


def test_pages_without_an_entry_keep_their_evidence(tmp_path: Path) -> None:
    """Copies are in no other place, and `why` compares them."""
    state = opened(tmp_path)
    decide(state, range(20))
    copies = [verdict.sequence for verdict in decide(state, range(20), "b")]
    for start in (100, 105, 110):
        commit(state)
        decide(state, range(start, start + 5))
    assert set(copies) <= set(evidence_in_journal(state))
    assert 1 not in evidence_in_journal(state)
    state.close()


def test_a_journal_in_memory_has_no_evidence_of_entries() -> None:
    """It has that of copies, which a decider does not keep."""
    state = opened(None)
    decide(state, range(30))
    copy = decide(state, range(1), "b")[0]
    assert set(evidence_in_journal(state)) == {copy.sequence}
    state.close()


def test_a_commit_is_taken_every_so_many_records(tmp_path: Path) -> None:
    """However many entries there are: only what is new is written."""
    state = opened(tmp_path, StateSettings(IndexLayout(window=8), snapshot_every=3))
    taken = []
    for number in range(24):
        decide(state, range(number, number + 1))
        taken.append(commit(state))
    state.close()
    assert sorted(set(taken)) == [0, 3, 6, 9, 12, 15, 18, 21, 24]


@pytest.mark.parametrize("name", ["manifest", "rows", "evidence", "places"])
def test_files_that_the_system_does_not_open_are_not_taken_for_damaged(tmp_path: Path, name: str) -> None:
    """They may be whole: nothing is changed, and once they can be read the state goes on with them."""
    filled(tmp_path, 30)
    file = tmp_path / PAGES_FOLDER / name
    file.rename(tmp_path / "aside")
    file.symlink_to(name)  # itself, which also root cannot open
    with pytest.raises(StateFullError, match="and open the store again"):
        opened(tmp_path)
    file.unlink()
    (tmp_path / "aside").rename(file)
    identity = (tmp_path / PAGES_FOLDER).stat().st_ino
    assert set(kinds_of_copies(tmp_path, 30)) == {VerdictKind.DUPLICATE}
    assert (tmp_path / PAGES_FOLDER).stat().st_ino == identity


def test_a_fork_does_not_write_where_its_parent_does(tmp_path: Path) -> None:
    """It is refused, with its reason, and the parent goes on."""
    state = opened(tmp_path)
    decide(state, range(5))
    child = os.fork()
    if child == 0:
        try:
            decide(state, range(5, 10))
        except StateClosedError as error:
            os._exit(7 if f"belongs to process {os.getppid()}" in str(error) else 1)
        finally:
            state.close()
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    decide(state, range(5, 10))
    state.close()
    assert set(kinds_of_copies(tmp_path, 10)) == {VerdictKind.DUPLICATE}


def decide_until_evidence_moves(state: State) -> None:
    """Decide pages; evidence moves with the batch behind a commit that has ended."""
    for first in range(20, 200, 5):
        decide(state, range(first, first + 5))
        assert state._commits is not None
        state._commits.wait()


def test_an_interrupt_behind_a_transaction_stops_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C between a transaction that moves evidence and what memory notes of it, nothing is moved twice."""
    state = opened(tmp_path)
    decide(state, range(20))
    moved, transaction = state.journal.log.counter(MOVED), Database.transaction

    @contextmanager
    def interrupted(database: Database) -> Iterator[sqlite3.Connection]:
        with transaction(database) as connection:
            yield connection
        if state.journal.log.counter(MOVED) > moved:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Database, "transaction", interrupted)
        with pytest.raises(KeyboardInterrupt):
            decide_until_evidence_moves(state)
    with pytest.raises(StateClosedError, match="KeyboardInterrupt"):
        decide(state, range(1))
    state.close()
    assert set(kinds_of_copies(tmp_path, 20)) == {VerdictKind.DUPLICATE}


def test_a_closed_state_is_opened_from_its_commit_alone(tmp_path: Path) -> None:
    """No record of the journal is applied again, and closing it again writes nothing."""
    filled(tmp_path, 40)
    assert state_info(tmp_path).commit_sequence == 40
    before = {path: path.read_bytes() for path in (tmp_path / PAGES_FOLDER).iterdir()}
    opened(tmp_path).close()
    assert {path: path.read_bytes() for path in (tmp_path / PAGES_FOLDER).iterdir()} == before
    assert kinds_of_copies(tmp_path, 40) == [VerdictKind.DUPLICATE] * 40


def test_a_commit_that_fails_stops_the_state_and_loses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The verdicts of the batch are given out; the next one asks to free space and open the state again."""
    state = opened(tmp_path, StateSettings(IndexLayout(window=8), snapshot_every=3))
    (tmp_path / PAGES_FOLDER / "manifest.tmp").mkdir()
    with caplog.at_level(logging.WARNING):
        assert len(decide(state, range(5))) == 5
        state._commits.wait()  # type: ignore[union-attr]
        assert len(decide(state, range(5, 10))) == 5
        with pytest.raises(StateError, match=r"disk full or not writable.*open it again"):
            decide(state, range(10, 15))
        state.close()
    assert "no commit of the kept pages" in caplog.text
    (tmp_path / PAGES_FOLDER / "manifest.tmp").rmdir()
    assert kinds_of_copies(tmp_path, 10) == [VerdictKind.DUPLICATE] * 10


@pytest.mark.parametrize("content", [None, b"", b"rubbish"])
def test_pages_that_cannot_be_read_are_built_again_while_the_journal_has_all_evidence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes | None
) -> None:
    """They are moved aside under a name that the warning tells, and never deleted."""
    filled(tmp_path, 20, WIDE)
    manifest = tmp_path / PAGES_FOLDER / "manifest"
    manifest.unlink() if content is None else manifest.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert kinds_of_copies(tmp_path, 20, WIDE) == [VerdictKind.DUPLICATE] * 20
    aside = tmp_path / f"{PAGES_FOLDER}.damaged-1"
    assert str(aside) in caplog.text
    assert aside.is_dir()


def test_pages_of_an_earlier_version_are_refused(tmp_path: Path) -> None:
    """The message says what to do, also to one that would use the state as a base or looks at it."""
    filled(tmp_path / "state", 40)
    decide(state := opened(tmp_path / "state"), range(40, 45))
    assert state.journal.log.counter(MOVED)
    state.close()
    lose_pages(tmp_path / "state")
    (tmp_path / "state" / PAGES_FOLDER).mkdir()
    (tmp_path / "state" / PAGES_FOLDER / "manifest.json").write_text("{}")
    told = "was written by an earlier version: start a new state folder and read the same input again with `filter`"
    for look in (opened, state_info, lambda folder: State(None, SPACE_ID, SPACE, bases=[folder])):
        with pytest.raises(StateError, match=told):
            look(tmp_path / "state")
    with pytest.raises(StateError, match=told), state_view(tmp_path / "state"):
        pass


def test_pages_that_are_missing_are_refused_once_the_journal_has_left_evidence_to_them(tmp_path: Path) -> None:
    """The error names the folder, and says to restore a copy or to begin again."""
    filled(tmp_path, 40)
    decide(state := opened(tmp_path), range(40, 45))
    assert state.journal.log.counter(MOVED)
    state.close()
    lose_pages(tmp_path)
    with pytest.raises(StateDamagedError, match=rf"{PAGES_FOLDER} cannot be used.*restore .* from a copy, or start"):
        opened(tmp_path)


def test_pages_that_are_damaged_are_refused_with_one_remedy(tmp_path: Path) -> None:
    """That of the state: the store alone could be built again from a log, and this one is no longer whole."""
    filled(tmp_path, 40)
    decide(state := opened(tmp_path), range(40, 45))
    assert state.journal.log.counter(MOVED)
    state.close()
    os.truncate(tmp_path / PAGES_FOLDER / "rows", 10)
    with pytest.raises(StateDamagedError, match=f"rows.*{DAMAGED_PAGES}$") as refused:
        opened(tmp_path)
    assert str(refused.value).count("restore") == 1


def kinds_or_error(folder: Path, settings: StateSettings) -> tuple[list[VerdictKind], str]:
    """The verdicts on copies of the first 60 pages, or what the state says of its damage."""
    try:
        return kinds_of_copies(folder, 60, settings), ""
    except StateDamagedError as error:
        return [], str(error)


def bit_flipped(path: Path) -> None:
    """Change one bit in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [Path.unlink, bit_flipped, lambda path: path.write_bytes(path.read_bytes()[:-1])])
@pytest.mark.parametrize("settings", [NARROW, WIDE])
def test_no_damaged_file_changes_a_verdict(
    tmp_path: Path, damage: Callable[[Path], None], settings: StateSettings
) -> None:
    """Each file in turn: the state gives the verdicts of a whole one, or says which file is damaged."""
    filled(tmp_path / "s", 60, settings)
    filled(tmp_path / "s", 65, settings)
    files = sorted(path.name for path in (tmp_path / "s" / PAGES_FOLDER).iterdir() if path.stat().st_size)
    refused = []
    for name in files:
        folder = tmp_path / name
        shutil.copytree(tmp_path / "s", folder)
        damage(folder / PAGES_FOLDER / name)
        found, told = kinds_or_error(folder, settings)
        assert found == ([] if told else [VerdictKind.DUPLICATE] * 60), name
        assert not told or name in told
        refused += [name] if told else []
    assert bool(refused) == (settings is NARROW)


def test_pages_of_another_journal_are_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Kept pages copied from another state folder do not bring its pages."""
    filled(tmp_path / "one", 3, WIDE)
    filled(tmp_path / "two", 5, WIDE)
    lose_pages(tmp_path / "one")
    shutil.copytree(tmp_path / "two" / PAGES_FOLDER, tmp_path / "one" / PAGES_FOLDER)
    with caplog.at_level(logging.WARNING):
        kinds = kinds_of_copies(tmp_path / "one", 5, WIDE)
    assert kinds == [VerdictKind.DUPLICATE] * 3 + [VerdictKind.UNIQUE] * 2
    assert "they belong to journal" in caplog.text


def test_a_journal_that_ends_before_its_pages_is_refused(tmp_path: Path) -> None:
    """An older copy of it has lost records; without the newer pages it is taken as it is."""
    filled(tmp_path / "state", 2, WIDE)
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    kinds_of_copies(tmp_path / "state", 4, WIDE)
    lose_pages(tmp_path / "copy")
    shutil.copytree(tmp_path / "state" / PAGES_FOLDER, tmp_path / "copy" / PAGES_FOLDER)
    with pytest.raises(StateDamagedError, match=r"at record 6, the journal ends at 2: records were lost"):
        opened(tmp_path / "copy", WIDE)
    lose_pages(tmp_path / "copy")
    assert kinds_of_copies(tmp_path / "copy", 3, WIDE) == [VerdictKind.DUPLICATE] * 2 + [VerdictKind.UNIQUE]


def test_nobody_is_told_to_move_pages_away_that_the_journal_cannot_build_again(tmp_path: Path) -> None:
    """An older journal that has left evidence to the pages cannot go on without them."""
    state = opened(tmp_path / "state", NARROW)
    for start in range(0, 60, 5):
        decide(state, range(start, start + 5))
        commit(state)
    assert state.journal.log.counter(MOVED)
    state.close()
    shutil.copy(tmp_path / "state" / JOURNAL_FILE, tmp_path / "older")
    kinds_of_copies(tmp_path / "state", 4, NARROW)
    shutil.copy(tmp_path / "older", tmp_path / "state" / JOURNAL_FILE)
    with pytest.raises(StateDamagedError, match=r"Restore both from one copy; or start a new state folder and filter"):
        opened(tmp_path / "state", NARROW)


@pytest.mark.parametrize("settings", [NARROW, WIDE])
@pytest.mark.parametrize("is_missing", [True, False])
def test_pages_without_their_journal_are_refused(tmp_path: Path, settings: StateSettings, is_missing: bool) -> None:
    """A new journal would know none of them; every page would be unique again."""
    filled(tmp_path / "state", 40, settings)
    journal = tmp_path / "state" / JOURNAL_FILE
    content = journal.read_bytes()
    journal.unlink() if is_missing else journal.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(StateDamagedError, match=rf"{JOURNAL_FILE} is missing or empty.*Restore it from"):
            opened(tmp_path / "state", settings)
    journal.write_bytes(content)
    assert kinds_of_copies(tmp_path / "state", 40, settings) == [VerdictKind.DUPLICATE] * 40


def test_a_journal_without_its_write_ahead_file_is_refused(tmp_path: Path) -> None:
    """Before the first checkpoint, the file itself has the header alone: it ends before its pages do."""
    decide(state := opened(tmp_path / "state", NARROW), range(20))
    commit(state)
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    state.close()
    (tmp_path / "copy" / f"{JOURNAL_FILE}-wal").unlink()
    with pytest.raises(StateDamagedError, match="the journal ends at 0: records were lost"):
        opened(tmp_path / "copy", NARROW)


@pytest.mark.parametrize("settings", [NARROW, WIDE])
def test_pages_of_another_continuation_are_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, settings: StateSettings
) -> None:
    """Two copies of a state continued differently: the commit of one does not fit the log of the other."""
    filled(tmp_path / "state", 40, settings)
    filled(tmp_path / "state", 40, settings)
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    for folder, first in (("state", 150), ("copy", 160)):
        decide(state := opened(tmp_path / folder, settings), range(first, first + 1))
        state.close()
    lose_pages(tmp_path / "copy")
    shutil.copytree(tmp_path / "state" / PAGES_FOLDER, tmp_path / "copy" / PAGES_FOLDER)
    if settings is NARROW:
        with pytest.raises(StateDamagedError, match="the log has another record at their sequence"):
            opened(tmp_path / "copy", settings)
        return
    with caplog.at_level(logging.WARNING):
        state = opened(tmp_path / "copy", settings)
    assert [verdict.kind for verdict in decide(state, range(150, 151), "b")] == [VerdictKind.UNIQUE]
    assert [verdict.kind for verdict in decide(state, range(160, 161), "b")] == [VerdictKind.DUPLICATE]
    assert "the log has another record at their sequence" in caplog.text
    state.close()


PAGES = 8000


def test_closing_with_many_entries_never_takes_their_memory(tmp_path: Path) -> None:
    """What is committed is on the disk already, here the evidence of 8,000 pages."""
    settings = StateSettings(IndexLayout(window=64), text_budget_bytes=0, snapshot_every=10 * PAGES)
    state = State(tmp_path, SPACE_ID, SPACE, None, settings)
    for start in range(0, PAGES, 1000):
        state.decide([(prepared(f"u{n}", n, evidence=bytes(4096)), None) for n in range(start, start + 1000)])
    gc.collect()
    tracemalloc.start()
    try:
        state.close()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert state_info(tmp_path).pages_bytes >= PAGES * 4096
    assert peak < PAGES * 4096 // 2
