"""The guard state is restored from the journal, with a commit or without."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dedup_service._native import read_commit
from dedup_service.core.decision.guard_state import GuardState
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Verdict
from dedup_service.runtime.embedded.state import PAGES_FOLDER, State, StateSettings
from dedup_service.runtime.store.decider_state import decode_state
from dedup_service.runtime.store.page_files import open_pages

from .prepared import SPACE, SPACE_ID, kill, lose_pages, prepared

GUARDED = replace(rule_for(), guards=Guards(max_hosts=2))


def opened(folder: Path, rule: MatchRule | None = None, every: int = 1000) -> State:
    """The state in `folder`."""
    folder.mkdir(exist_ok=True)
    return State(folder, SPACE_ID, SPACE, rule, StateSettings(snapshot_every=every))


def copies(state: State, hosts: range, story: int = 0) -> list[Verdict]:
    """The verdicts on copies of a story, on these hosts."""
    return state.decide([(prepared(f"http://host{host}/", story), None) for host in hosts])


def guard_state_of(state: State) -> GuardState | None:
    """Return the guard state."""
    return state._decider.state().guards


def extra_in(pages: Path) -> bytes:
    """What the last commit has beside the settled entries."""
    found = read_commit(pages)
    assert found is not None
    return found[1]


def test_guards_hold_after_a_restart(tmp_path: Path) -> None:
    """A group over its limit is still over it, restored from a commit or from the log alone."""
    state = opened(tmp_path / "state", GUARDED)
    assert [verdict.guard for verdict in copies(state, range(5))] == [None, None, None, "hosts", "hosts"]
    seen = guard_state_of(state)
    state.close()
    for without_pages in (False, True):
        if without_pages:
            lose_pages(tmp_path / "state")
        again = opened(tmp_path / "state")
        assert guard_state_of(again) == seen
        kill(again)  # no commit, no change
    last = opened(tmp_path / "state")
    assert copies(last, range(7, 8))[0].guard == "hosts"
    last.close()


@pytest.mark.parametrize(
    "damage",
    [
        lambda extra: b"no MessagePack",
        lambda extra: b"\x81\xa7version\x63",
        lambda extra: extra[:-1],
        lambda extra: extra.replace(b"\xa7version\x03", b"\xa7version\x04"),
        lambda extra: extra.replace(b"\xa5state", b"\xa5statf"),
    ],
)
def test_an_unreadable_state_is_rebuilt(
    tmp_path: Path, damage: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """Guards, cells and window are those of the log, also if a later version wrote the commit."""
    state = opened(tmp_path / "state", GUARDED)
    copies(state, range(6))
    expected, entries = state._decider.state(), state._decider.held().entries()
    assert expected.guards not in {None, GuardState()}
    state.close()
    path = tmp_path / "state" / PAGES_FOLDER
    extra, store = extra_in(path), open_pages(path, writable=True)
    assert store is not None
    assert decode_state(extra) == expected
    damaged = damage(extra)
    assert damaged != extra
    store.begin_commit(store.manifest.sequence, store.manifest.tail, b"").finish(damaged)
    store.close()
    with caplog.at_level(logging.WARNING):
        again = opened(tmp_path / "state")
    assert "its state" in caplog.text
    assert again._decider.state() == expected
    assert again._decider.held().entries() == entries
    again.close()
