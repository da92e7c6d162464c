"""The description of a state folder, read while it is written."""

from pathlib import Path

import pytest

from dedup_service.core.errors import StateError
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.runtime.embedded.state import JOURNAL_FILE, PAGES_FOLDER, State, StateSettings
from dedup_service.runtime.embedded.state_info import state_info
from dedup_service.runtime.store.page_files import MANIFEST

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


def test_sizes_are_those_of_the_last_commit(tmp_path: Path) -> None:
    """Memory is what the process had when it committed; rows and cells are counted, and every byte on disk is there."""
    state = State(tmp_path, SPACE_ID, SPACE, None, StateSettings(IndexLayout(window=8)))
    state.decide([(prepared(f"u{number}", number), None) for number in range(60)])
    state.retract("u1", erase=False)
    state.decide([(prepared("last", 99), None)])
    assert dict(state_info(tmp_path).memory) == {}
    assert state_info(tmp_path).cells is None
    commits = state._commits
    assert commits is not None
    commits.take(state._decider)
    at_commit, cells = state.memory(), state.index_event().cells
    assert cells is not None
    info = state_info(tmp_path)
    assert dict(info.memory) == at_commit
    assert at_commit.keys() == {"cells", "sieves", "blocks_words", "urls", "texts", "bodies", "rows", "host_text"}
    assert (info.cells, info.cells_overflowed) == (cells.cells, cells.overflowed)
    assert (info.rows, info.live_rows) == (53, 52)
    state.close()

    used = sum(path.stat().st_size for path in [tmp_path / JOURNAL_FILE, *(tmp_path / PAGES_FOLDER).iterdir()])
    info = state_info(tmp_path)
    assert sum(info.disk.values()) == used
    assert {"journal", "rows", "evidence", "places", "commit"} <= set(info.disk)


def test_info_of_a_folder_without_a_state_says_so(tmp_path: Path) -> None:
    """The error asks to check the path, and no state is created there."""
    with pytest.raises(StateError, match="holds no twinsieve state"):
        state_info(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_commit_that_cannot_be_read_is_not_one_that_was_never_made(tmp_path: Path) -> None:
    """An operator learns of the damage, and that the next opening builds the kept pages again."""
    state = State(tmp_path, SPACE_ID, SPACE)
    state.decide([(prepared("u1", 1), None)])
    assert state_info(tmp_path).commit_damage is None
    state.close()
    with (tmp_path / PAGES_FOLDER / MANIFEST).open("r+b") as file:
        file.seek(30)
        file.write(b"x")
    info = state_info(tmp_path)
    assert (info.commit_sequence, info.entries) == (None, 1)
    assert info.commit_damage is not None
    assert MANIFEST in info.commit_damage
