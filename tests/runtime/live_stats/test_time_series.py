"""The ring of counts, compared with a list of all events."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.live_stats.time_series import TimeSeries

STEPS = st.lists(st.tuples(st.floats(-3, 40), st.integers(0, 9), st.integers(0, 9)), max_size=60)


@given(STEPS, st.integers(1, 5), st.integers(2, 12))
def test_a_ring_equals_a_list(steps: list[tuple[float, int, int]], step_s: int, slots: int) -> None:
    """Every slot is the sum of the counts added while it was the newest; the clock may go back and leap."""
    now = 1000.0
    ring = TimeSeries(step_s, slots, 2, now)
    newest = int(now // step_s)
    counted: dict[int, list[int]] = {}
    for passed, first, second in steps:
        now += passed
        newest = max(newest, int(now // step_s))
        ring.add(now, (first, second))
        slot = counted.setdefault(newest, [0, 0])
        slot[0] += first
        slot[1] += second
    wanted = [counted.get(slot, [0, 0]) for slot in range(newest - slots + 1, newest + 1)]
    assert ring.all() == [[slot[kind] for slot in wanted] for kind in (0, 1)]
    assert ring.last(slots) == [tuple(slot) for slot in wanted[:-1]]
    assert ring.in_progress() == tuple(wanted[-1])
    assert (ring.start_s, ring.newest_s) == ((newest - slots + 1) * step_s, newest * step_s)


def test_the_last_slots_exclude_the_one_in_progress() -> None:
    """A rate needs complete seconds."""
    ring = TimeSeries(1, 10, 1, 100.0)
    for at, count in ((100.5, 7), (101.5, 5), (103.5, 1)):
        ring.add(at, (count,))
    assert ring.last(3) == [(7,), (5,), (0,)]
