"""The description of a state folder, read while it is written."""

import sqlite3
from pathlib import Path

import pytest

from dedup_service.core.errors import StateError
from dedup_service.core.rules.profiles import rule_for
from dedup_service.runtime.embedded.state import JOURNAL_FILE, State
from dedup_service.runtime.embedded.state_info import read_info, state_info

from .prepared import SPACE, SPACE_ID, prepared


def test_info_counts_what_the_log_holds_while_it_is_written(tmp_path: Path) -> None:
    """Counts equal those of the log: while the state is open, after it is closed, and over several openings."""
    state = State(tmp_path, SPACE_ID, SPACE)
    pages = [prepared("u1", 1), prepared("u2", 1), prepared("u1", 1), prepared("u3", 3), prepared("u3", 4)]
    state.decide([(page, None) for page in pages])
    in_use = state_info(tmp_path)
    assert dict(in_use.pages) == {"unique": 2, "duplicate": 1, "unchanged": 1, "updated": 1, "undecided": 0}
    assert (in_use.sequence, in_use.entries, in_use.retractions, in_use.policies) == (5, 2, 0, 1)
    assert (in_use.commit_sequence, in_use.commit_age_s) == (None, None)
    assert (in_use.space_id, dict(in_use.space), dict(in_use.rule)) == (SPACE_ID, SPACE, rule_for().to_dict())
    state.retract("u1")
    state.close()

    closed = state_info(tmp_path)
    assert (closed.sequence, closed.entries, closed.retractions, closed.commit_sequence) == (6, 1, 1, 6)
    assert closed.commit_age_s is not None
    assert closed.pages_bytes > 0
    assert closed.journal_bytes > 0
    assert 0 < closed.text_bytes < in_use.text_bytes


def test_info_does_not_change_the_folder(tmp_path: Path) -> None:
    """It takes no lock and leaves no files."""
    State(tmp_path, SPACE_ID, SPACE).close()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    state_info(tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.name.endswith(("-shm", "-wal"))]
    after = {path: path.read_bytes() for path in files}
    assert after == before


def test_info_of_a_folder_without_a_state_says_so(tmp_path: Path) -> None:
    """The error asks to check the path, and no state is created there."""
    with pytest.raises(StateError, match="holds no twinsieve state"):
        state_info(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_state_in_memory_has_info_too() -> None:
    """It has the counts; sizes on disk are 0."""
    state = State(None, SPACE_ID, SPACE)
    state.decide([(prepared("u1", 1), None)])
    info = read_info(state.journal.database, None)
    assert (info.pages["unique"], info.journal_bytes, info.pages_bytes, info.commit_sequence) == (1, 0, 0, None)
    state.close()


def test_counts_of_the_surge_guard_have_its_present_name(tmp_path: Path) -> None:
    """A journal from before counted them as `guard_jump`; both counts belong to one guard."""
    State(tmp_path, SPACE_ID, SPACE).close()
    with sqlite3.connect(tmp_path / JOURNAL_FILE) as journal:
        journal.executemany("INSERT INTO counter VALUES (?, ?)", [("guard_jump", 5), ("guard_surge", 2)])
    journal.close()
    assert state_info(tmp_path).guards["surge"] == 7
