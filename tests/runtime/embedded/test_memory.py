"""An embedded state with a limit on memory: it bounds the kept pages by the log, or ends and loses nothing."""

import logging
from pathlib import Path

import pytest

from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.runtime.embedded.state import State, StateSettings
from dedup_service.runtime.embedded.state_info import state_info
from dedup_service.runtime.memory_limit import MemoryLimitError, ProcessMemoryLimit

from .prepared import SPACE, SPACE_ID, kill, prepared, state_of

LAYOUT = IndexLayout(window=8)
NINETY_DAYS = Keep.parse("90d")
LIMIT = 1 << 20  # less than the tables of any state


def opened(folder: Path | None, keep: Keep | None = None, limit: ProcessMemoryLimit | None = None) -> State:
    """An open state."""
    return State(folder, SPACE_ID, SPACE, None, StateSettings(LAYOUT, snapshot_every=10, memory_limit=limit), keep=keep)


def used_up() -> ProcessMemoryLimit:
    """A limit that a process has just exceeded, most of it with what every state has."""
    return ProcessMemoryLimit(16 << 20, lambda: (16 << 20) + 1)


def decide(state: State, first: int, end: int) -> list[str]:
    """The verdicts on pages of their own stories, by kind."""
    verdicts = []
    for start in range(first, end, 5):
        pages = [prepared(f"u{number}", number) for number in range(start, min(start + 5, end))]
        verdicts += state.decide([(page, None) for page in pages])
    return [verdict.kind.value for verdict in verdicts]


def test_a_state_with_bounds_keeps_no_more_pages_than_it_has(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The bound is recorded as a change of `keep`, so that whatever reads the log lets the same pages expire."""
    state = opened(tmp_path, NINETY_DAYS)
    decide(state, 0, 40)
    state.close()
    state = opened(tmp_path, NINETY_DAYS, used_up())
    with caplog.at_level(logging.WARNING):
        decide(state, 40, 60)
    assert "at most 40 pages are kept from here on" in caplog.text
    assert state.keep == Keep.parse("90d,40")
    before = state_of(state._decider)
    kept = [entry.sequence for entry in state.held().entries()]
    assert len(kept) == 40
    kill(state)
    info = state_info(tmp_path)
    assert (dict(info.keep), info.policies, info.expired["count"]) == (state.keep.to_dict(), 2, 20)
    state = opened(tmp_path)
    assert state_of(state._decider) == before
    assert [entry.sequence for entry in state.held().entries()] == kept
    state.close()


def test_bounds_that_were_lowered_stay_until_others_are_asked_for(tmp_path: Path) -> None:
    """The same command line, with its limit, goes on with them; without a limit it sets its own again."""
    state = opened(tmp_path, NINETY_DAYS)
    decide(state, 0, 10)
    state.close()
    state = opened(tmp_path, NINETY_DAYS, used_up())
    decide(state, 10, 11)
    state.close()
    state = opened(tmp_path, NINETY_DAYS, ProcessMemoryLimit(1 << 40))
    assert (state.keep, state_info(tmp_path).policies) == (Keep.parse("90d,10"), 2)
    state.close()
    state = opened(tmp_path, Keep.parse("80d"), ProcessMemoryLimit(1 << 40))
    assert state.keep == Keep.parse("80d")
    state.close()


def test_bounds_that_a_person_lowered_do_not_stay_under_a_limit(tmp_path: Path) -> None:
    """Higher ones on the command line come into force and are recorded, with a limit as without one."""
    opened(tmp_path, Keep.parse("500")).close()
    state = opened(tmp_path, Keep.parse("2000"), ProcessMemoryLimit(1 << 40))
    assert (state.keep, state_info(tmp_path).keep) == (Keep.parse("2000"), {"max_pages": 2000})
    state.close()


def test_bounds_that_a_limit_lowered_give_way_to_higher_ones(tmp_path: Path) -> None:
    """The bounds that were lowered stay lowered, through a change of rule, too; others come into force."""
    opened(tmp_path, Keep.parse("2000")).close()
    state = opened(tmp_path, Keep.parse("2000"))
    decide(state, 0, 10)
    state.close()
    state = opened(tmp_path, Keep.parse("2000"), used_up())
    decide(state, 10, 11)
    state.close()
    State(tmp_path, SPACE_ID, SPACE, rule_for("words")).close()
    for asked, expected in (("2000", "10"), ("3000", "3000")):
        state = opened(tmp_path, Keep.parse(asked), ProcessMemoryLimit(1 << 40))
        assert state.keep == Keep.parse(expected)
        state.close()


@pytest.mark.parametrize("in_folder", [True, False])
def test_a_state_that_keeps_all_pages_refuses_more(tmp_path: Path, in_folder: bool) -> None:
    """The batch has no effect, and with more memory the run goes on as if nothing had been."""
    folder = tmp_path if in_folder else None
    state = opened(folder, None, used_up())
    for _ in range(2):
        with pytest.raises(MemoryLimitError, match="0 kept pages"):
            decide(state, 0, 5)
    assert state.journal.sequence == 0
    state.close()
    state = opened(folder)
    assert state.keep == KEEP_ALL
    assert decide(state, 0, 5) == ["unique"] * 5
    state.close()


def test_tables_that_exceed_the_limit_are_not_loaded(tmp_path: Path) -> None:
    """The message has both sizes; the folder is as it was."""
    state = opened(tmp_path)
    decide(state, 0, 40)
    state.close()
    before = {path: path.read_bytes() for path in (tmp_path / "pages").iterdir()}
    with pytest.raises(MemoryLimitError, match=r"tables of 32 kept pages take 11\.\d+ MiB, the limit is 1\.00 MiB"):
        opened(tmp_path, None, ProcessMemoryLimit(LIMIT, lambda: 0))
    assert {path: path.read_bytes() for path in (tmp_path / "pages").iterdir()} == before
    opened(tmp_path, None, ProcessMemoryLimit(1 << 40)).close()
