"""A state folder is read while it is written: each view is one moment of it, and nothing is changed."""

import itertools
import threading
from pathlib import Path

import pytest

from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.runtime.embedded.database import StateDamagedError
from dedup_service.runtime.embedded.state import State, StateSettings
from dedup_service.runtime.embedded.state_view import state_view

from .prepared import SPACE, SPACE_ID, kill, lose_pages, prepared

SETTINGS = StateSettings(IndexLayout(window=8), snapshot_every=10)


def opened(folder: Path, keep: Keep | None = None) -> State:
    """An open state."""
    return State(folder, SPACE_ID, SPACE, None, SETTINGS, keep=keep)


def decide(state: State, numbers: range) -> None:
    """Decide one page for each number; some are updates and some are copies of earlier ones."""
    state.decide(
        [(prepared(f"https://{n % 7}.example/{n % 50}", n if n % 3 else n // 2, version=n % 2), None) for n in numbers]
    )


@pytest.mark.parametrize("keep", [None, Keep(max_pages=20)])
def test_a_view_has_what_the_open_state_has(tmp_path: Path, keep: Keep | None) -> None:
    """Entries wherever they are, with their evidence, and the hosts' own text: after every batch, and after a kill."""
    state = opened(tmp_path, keep)
    for start in range(0, 150, 6):
        decide(state, range(start, start + 6))
        if start % 18 == 0:
            target = [entry.sequence for entry in state.held().entries()][start % 5]
            state.retract(target, erase=start % 36 == 0)
        held = {entry.sequence: entry.evidence for entry in state.held().entries()}
        with state_view(tmp_path) as view:
            assert {entry.sequence: entry.evidence for entry in view.held().entries()} == held
            for sequence in range(1, state.journal.sequence + 1):
                entry = view.entry(sequence)
                assert (None if entry is None else entry.evidence) == held.get(sequence)
            assert view.host_text().state() == state.host_text().state()
            assert view.held().size()[0] == len(held)
            assert {sequence for sequence in range(max(held) + 9) if view.held().has(sequence)} == set(held)
    kill(state)
    with state_view(tmp_path) as view:
        assert set(held) == {entry.sequence for entry in view.held().entries()}


def test_a_view_changes_nothing(tmp_path: Path) -> None:
    """Not even what a crash left, which the next opening for writing cuts off."""
    state = opened(tmp_path)
    decide(state, range(45))
    state.close()
    evidence = tmp_path / "pages" / "evidence"
    size = evidence.stat().st_size
    with evidence.open("ab") as file:
        file.write(b"of a commit that did not finish")
    before = {path: path.read_bytes() for path in (tmp_path / "pages").iterdir()}
    with state_view(tmp_path) as view:
        assert view.held().size()[0]
    assert {path: path.read_bytes() for path in (tmp_path / "pages").iterdir()} == before
    opened(tmp_path).close()
    assert evidence.stat().st_size == size


def test_a_view_of_a_state_at_work_is_of_one_moment(tmp_path: Path) -> None:
    """Whatever is committed, left to the kept pages, compacted or erased meanwhile."""
    state = opened(tmp_path, Keep(max_pages=30))
    decide(state, range(6))
    seen, ended = [], threading.Event()

    def look() -> None:
        while not ended.is_set():
            with state_view(tmp_path) as view:
                counted = view.database.rows("SELECT value FROM counter WHERE name = 'entries'")[0][0]
                seen.append((counted, [len(entry.evidence) for entry in view.held().entries()]))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for start in itertools.count(6, 6):
            if start > 240 and len(seen) > 3:
                break
            decide(state, range(start, start + 6))
            if start % 60 == 0:
                state.retract(state.held().entries()[0].sequence)
    finally:
        ended.set()
        thread.join()
        state.close()
    differences = {counted - len(sizes) for counted, sizes in seen}
    assert differences <= {0, 1}  # 1: a page that was taken down between the view and the read
    assert all(min(sizes) > 100 for _, sizes in seen)


def test_a_view_keeps_what_leaves_the_index_meanwhile(tmp_path: Path) -> None:
    """The writer gives its space back later; a page that is taken down is gone at once."""
    state = opened(tmp_path, Keep(max_pages=40))

    def go_on(first: int) -> None:
        for start in range(first, first + 120, 6):
            decide(state, range(start, start + 6))
            state._commits.wait()  # type: ignore[union-attr]

    go_on(0)
    with state_view(tmp_path) as view:
        before = {entry.sequence: entry.evidence for entry in view.held().entries()}
        taken_down = min(before)
        state.retract(taken_down)
        del before[taken_down]
        go_on(120)
        assert not before.keys() & {entry.sequence for entry in state.held().entries()}
        assert {entry.sequence: entry.evidence for entry in view.held().entries()} == before
    evidence = tmp_path / "pages" / "evidence"
    left = min(before.values(), key=len)
    assert left in evidence.read_bytes()
    go_on(240)
    assert left not in evidence.read_bytes()
    state.close()


def test_pages_that_are_missing_are_named(tmp_path: Path) -> None:
    """The journal alone does not have them any more."""
    state = opened(tmp_path)
    for start in range(0, 60, 6):
        decide(state, range(start, start + 6))
        state._commits.wait()
    state.close()
    lose_pages(tmp_path)
    with pytest.raises(StateDamagedError, match="pages do not fit the journal: they are missing"), state_view(tmp_path):
        pass
