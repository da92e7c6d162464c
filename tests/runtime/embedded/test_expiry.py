"""An embedded state lets pages expire, and whatever stops it, it goes on as if nothing had."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.embedded.state import State, StateSettings
from dedup_service.runtime.embedded.state_info import state_info
from dedup_service.runtime.events import BatchEvent, Observer

from .prepared import SPACE, SPACE_ID, kill, prepared

DAY_S = 86_400
START_S = 20_000 * DAY_S
LAYOUT = IndexLayout(window=8)
SOON = StateSettings(LAYOUT, snapshot_every=10, journal_days=1)
FOREVER = StateSettings(LAYOUT, snapshot_every=10)
U, D, SAME, NEW, NONE = VerdictKind


class Clock:
    """What `time.time` says in these tests."""

    def __init__(self) -> None:
        self.now_s = float(START_S)

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """A clock that the test sets."""
    clock = Clock()
    monkeypatch.setattr(time, "time", clock)
    return clock


def opened(folder: Path | None, keep: Keep | None = None, settings: StateSettings = FOREVER) -> State:
    """An open state."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return State(folder, SPACE_ID, SPACE, None, settings, (), keep)


def decide(state: State, *pages: PreparedPage) -> list[Verdict]:
    """The verdicts on pages without delivery ids."""
    return state.decide([(page, None) for page in pages])


def page(number: int, story: int | None = None) -> PreparedPage:
    """The page at one of some addresses."""
    return prepared(f"https://a.example/{number}", number if story is None else story)


def test_the_earliest_page_leaves_by_count(tmp_path: Path) -> None:
    """A copy of it is unique then, also after opening again; `state info` counts it."""
    state = opened(tmp_path, Keep(max_pages=2))
    assert [verdict.kind for verdict in decide(state, page(1), page(2), page(3))] == [U] * 3
    state.close()
    info = state_info(tmp_path)
    assert (info.entries, dict(info.expired), dict(info.keep)) == (2, {"count": 1, "age": 0}, {"max_pages": 2})
    state = opened(tmp_path)
    assert [verdict.kind for verdict in decide(state, page(13, 3), page(11, 1))] == [D, U]
    state.close()


def test_pages_leave_by_age_with_the_pages_that_come(tmp_path: Path, clock: Clock) -> None:
    """Nothing leaves while no page comes; the clock of a later process decides nothing that the log has not."""
    state = opened(tmp_path, Keep(max_age_minutes=1440))
    decide(state, page(1))
    clock.now_s += DAY_S
    assert decide(state, page(11, 1))[0].kind is D
    clock.now_s += 120
    assert state.held().size()[0] == 1
    assert decide(state, page(12, 1))[0].kind is U
    state.close()
    clock.now_s = 0.0
    state = opened(tmp_path)
    assert decide(state, page(13, 1))[0].kind is D
    assert dict(state_info(tmp_path).expired) == {"count": 0, "age": 1}
    state.close()


def test_bounds_that_come_later_know_the_ages_of_earlier_pages(tmp_path: Path, clock: Clock) -> None:
    """Times are recorded whatever the bounds are."""
    state = opened(tmp_path)
    decide(state, page(1))
    clock.now_s += 2 * DAY_S
    decide(state, page(2))
    state.close()
    state = opened(tmp_path, Keep.parse("1d"))
    assert [verdict.kind for verdict in decide(state, page(11, 1), page(12, 2))] == [U, D]
    state.close()


def test_bounds_are_part_of_the_state(tmp_path: Path) -> None:
    """They stay until others are given; the same again leaves no record, and `all` ends expiry."""
    for keep, expected, sequence in (
        (Keep(max_pages=2), Keep(max_pages=2), 0),
        (None, Keep(max_pages=2), 0),
        (Keep(max_pages=2), Keep(max_pages=2), 0),
        (KEEP_ALL, KEEP_ALL, 1),
        (None, KEEP_ALL, 1),
    ):
        state = opened(tmp_path, keep)
        assert (state.keep, state.journal.sequence) == (expected, sequence)
        state.close()


def test_rows_of_expired_pages_are_deleted_with_the_others(tmp_path: Path, clock: Clock) -> None:
    """With bounds and a journal that is kept for a day, the folder's rows are those of live pages and of a day."""
    state = opened(tmp_path, Keep(max_pages=20), SOON)
    assert state._commits is not None
    counts = []
    for day in range(8):
        for number in range(0, 50, 5):
            decide(state, *(page(50 * day + number + at) for at in range(5)))
            state._commits.wait()  # what no commit has stays in the log
        clock.now_s += DAY_S
        counts.append(state.journal.database.rows("SELECT count(*) FROM log")[0][0])
    assert max(counts[5:]) <= max(counts[2:5]) <= 220
    expected = [entry.sequence for entry in state.held().entries()]
    kill(state)
    restored = opened(tmp_path, None, SOON)
    assert [entry.sequence for entry in restored.held().entries()] == expected
    assert decide(restored, page(5000, 1))[0].kind is U
    restored.close()


@pytest.mark.parametrize(("batch", "passed_s"), [(50, 61), (50, 0), (1, 0), (2500, 0)])
def test_without_a_folder_memory_holds_the_pages_that_are_kept(clock: Clock, batch: int, passed_s: int) -> None:
    """Neither entries nor rows grow with pages that expired, however many come at once, or within one minute.

    A copy that names one of them still does when it is delivered again.
    """
    state = opened(None, Keep(max_pages=50), StateSettings(LAYOUT, memory_records=100))
    rows = []
    for start in range(0, 5000 if batch > 1000 else 800, batch):
        decide(state, *(page(number) for number in range(start, start + batch)))
        clock.now_s += passed_s
        rows.append(state.journal.database.rows("SELECT count(*), (SELECT count(*) FROM name) FROM log")[0])
    assert state.journal.entries == 50
    assert max(rows) <= (250 + max(batch, 100),) * 2
    copies = [(page(9_000 + number, 10**6), b"%16d" % number) for number in range(2)]
    expected = state.decide(copies)
    decide(state, *(page(number) for number in range(10_000, 10_060)))
    assert state.decide(copies) == expected
    assert expected[1].duplicate_of == page(9_000).page.id
    state.close()


def test_observers_are_told_how_many_expired(tmp_path: Path) -> None:
    """By reason, with the batch of pages."""
    events: list[BatchEvent] = []

    class Batches(Observer):
        def batch(self, event: BatchEvent) -> None:
            events.append(event)

    state = State(tmp_path, SPACE_ID, SPACE, None, FOREVER, [Batches()], Keep(max_pages=1))
    decide(state, page(1), page(2), page(3))
    decide(state, page(3))
    assert [dict(event.expired) for event in events] == [{"count": 2, "age": 0}, {"count": 0, "age": 0}]
    state.close()


def test_a_filter_is_opened_with_bounds(tmp_path: Path) -> None:
    """As text or as a value; others are refused with what is allowed."""
    with NearDuplicateFilter.open(tmp_path, keep="2w,1000") as dedup:
        assert dedup.keep == Keep(max_pages=1000, max_age_minutes=20_160)
    with NearDuplicateFilter.open(tmp_path, keep=Keep(max_pages=5)) as dedup:
        assert dedup.info().keep == {"max_pages": 5}
    with pytest.raises(ConfigurationError, match="an age"):
        NearDuplicateFilter.open(tmp_path, keep="soon")
