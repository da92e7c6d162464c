"""Recent and usual shares, compared with lists of marks."""

from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.decision.guard_tracker import LEARNED, RECENT, AnomalyShare

runs = st.lists(st.tuples(st.integers(1, 2500), st.sampled_from([0, 1, 2, 3, 7, 20])), min_size=1, max_size=6)


def marks_of(runs: list[tuple[int, int]]) -> list[int]:
    """Runs of marks: all pages suspicious (1), every second (2), …, none (0)."""
    return [int(every > 0 and at % every == 0) for length, every in runs for at in range(length)]


def usual_of(marks: list[int]) -> int | None:
    """The usual share by the definition, in 1/65536 of a page in a thousand."""
    sums = [sum(marks[at : at + RECENT]) << 16 for at in range(0, len(marks) - RECENT + 1, RECENT)]
    learned: list[int] = []
    for number in sums[:-1]:
        if not learned or number <= learned[-1] + (RECENT // 4 << 16):
            learned.append((learned or [0])[-1] + (number - (learned or [0])[-1]) // min(len(learned) + 1, LEARNED))
    return learned[-1] if learned else None


@settings(max_examples=30, deadline=None)
@given(runs, st.integers(0, 100))
def test_shares_are_those_of_the_lists(runs: list[tuple[int, int]], percent: int) -> None:
    """They are of the last thousand marks, and the mean of the thousands before them."""
    shares, marks = AnomalyShare(), marks_of(runs)
    for mark in marks:
        shares.mark(mark)
    recent, usual = sum(marks[-RECENT:]), usual_of(marks)
    above = usual is not None and recent * 65536 > usual + percent * 655360
    assert shares.above(percent) == above
    assert shares.percents == (recent // 10, (usual or 0) // 655360)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2500)), max_size=8))
def test_pages_that_pass_by_are_unsuspicious_ones(parts: list[tuple[bool, int]]) -> None:
    """Any number of them at once leaves what they leave one by one."""
    at_once, singly = AnomalyShare(), AnomalyShare()
    for suspicious, pages in parts:
        for _ in range(pages):
            singly.mark(int(suspicious))
            if suspicious:
                at_once.mark(1)
        if not suspicious:
            at_once.pass_by(pages)
        for field in ("decided", "recent", "before", "learned", "usual", "percents"):
            assert getattr(at_once, field) == getattr(singly, field)


@settings(max_examples=30, deadline=None)
@given(runs, st.integers(0, 6000))
def test_shares_continue_from_any_state(runs: list[tuple[int, int]], cut: int) -> None:
    """Restored from their state, they give the same shares."""
    marks = marks_of(runs)
    whole, first = AnomalyShare(), AnomalyShare()
    for mark in marks:
        whole.mark(mark)
    for mark in marks[:cut]:
        first.mark(mark)
    second = AnomalyShare(first.decided, first.recent, first.before, first.learned, first.usual)
    for mark in marks[cut:]:
        second.mark(mark)
    for field in ("decided", "recent", "before", "learned", "usual", "percents"):
        assert getattr(second, field) == getattr(whole, field)


def test_a_surge_does_not_become_usual() -> None:
    """It lasts until the share returns."""
    shares = AnomalyShare()
    for _ in range(3000):
        shares.mark(0)
    for _ in range(50_000):
        shares.mark(1)
    assert (shares.percents, shares.above(40)) == ((100, 0), True)
    for _ in range(601):
        shares.mark(0)
    assert not shares.above(40)


def test_a_share_that_rises_slowly_becomes_usual() -> None:
    """A rise is slow if each thousand is less than a quarter above the usual share."""
    shares = AnomalyShare()
    for percent in range(0, 100, 2):
        for at in range(5000):
            shares.mark(int(at % 100 < percent))
    assert not shares.above(25)


def test_nothing_is_a_surge_at_the_beginning() -> None:
    """Before a thousand is learned there is no usual share."""
    shares = AnomalyShare()
    for _ in range(RECENT * 2 - 1):
        shares.mark(1)
        assert not shares.above(0)
