"""Where only verdicts are written: what is read of `pages`, and what is written, in order and once."""

from collections.abc import Iterable
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.replica import Outcome
from dedup_service.core.log_records import Source
from dedup_service.core.verdict import Action, Verdict, VerdictKind
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcome, PendingOutcomes
from dedup_service.runtime.kafka.steps.needed_pages import NeededPages
from dedup_service.runtime.kafka.steps.page_buffer import PASSED_OVER, Ready

VERDICT = PendingOutcome(1, "unique", b"{}")
REJECTED = PendingOutcome(2, None, b"not a page")


@dataclass(frozen=True)
class Consumed:
    """A record as a consumer returns it."""

    offset: int
    value: bytes | None = b"page"
    partition: int = 0
    key: bytes | None = None
    topic: str = "pages"
    headers: tuple[tuple[str, bytes], ...] = ()


def known(outcomes: dict[int, PendingOutcome]) -> PendingOutcomes:
    """Return pending outcomes of partition 0 by offset."""
    return PendingOutcomes({Source("pages", 0, offset): outcome for offset, outcome in outcomes.items()})


def pages(*offsets: int) -> dict[int, PendingOutcome]:
    """Return the outcomes of pages at these offsets."""
    return dict.fromkeys(offsets, VERDICT)


def begun(offset: int = 0, max_records: int = 100) -> NeededPages:
    """Return a buffer whose partition 0 begins at `offset`."""
    needed = NeededPages("pages", max_records, 1 << 20)
    needed.begin(0, offset)
    return needed


def read(needed: NeededPages, outcomes: PendingOutcomes, *offsets: int, reached: int | None = None) -> None:
    """Take over records at these offsets; reached: the consumer's position after them."""
    needed.wanted(outcomes)
    end = max(offsets, default=-1) + 1 if reached is None else reached
    needed.put(map(Consumed, offsets), {0: end}, outcomes)


def written(items: Iterable[Ready]) -> list[tuple[int, str]]:
    """Return the offset of each item and what it is."""
    return [(item.source.offset, _kind(item)) for item in items]


def _kind(item: Ready) -> str:
    if item.outcome is PASSED_OVER:
        return "passed over"
    return "verdict" if item.outcome.kind is not None else "letter" if item.record is not None else "empty letter"


def ready(needed: NeededPages, outcomes: PendingOutcomes, max_records: int = 100) -> list[tuple[int, str]]:
    """Return what can be written."""
    return written(needed.ready(outcomes, max_records, 1 << 20))


def test_a_rejected_record_that_retention_deleted_is_an_empty_dead_letter() -> None:
    """A page that was deleted with it has its verdict all the same."""
    needed, outcomes = begun(), known(pages(0, 2) | {1: REJECTED})
    needed.wanted(outcomes)
    needed.skip(0, 3)
    assert ready(needed, outcomes) == [(0, "verdict"), (1, "empty letter"), (2, "verdict")]


def test_an_outcome_about_a_range_answers_all_of_it() -> None:
    """Records that were deleted unread have one dead letter, and are not asked for."""
    needed = begun()
    outcomes = known({0: PendingOutcome(1, None, b"3 records", end=3), 3: VERDICT})
    needed.wanted(outcomes)
    needed.skip(0, 3)
    items = needed.ready(outcomes, 10, 100)
    assert [(item.source.offset, item.end) for item in items] == [(0, 3), (3, 4)]
    needed.done(items[:1])
    assert ready(needed, outcomes) == [(3, "verdict")]


def test_a_full_partition_wants_nothing_more() -> None:
    """Kept records are bounded; some are written, and then it reads on."""
    needed, outcomes = begun(max_records=2), known(dict.fromkeys(range(5), REJECTED))
    read(needed, outcomes, 0, 1)
    assert needed.wanted(outcomes) == {}
    needed.done(needed.ready(outcomes, 10, 1 << 20))
    assert needed.wanted(outcomes) == {0: (2, 3)}


def logged_outcome(offset: int, *, is_page: bool) -> Outcome:
    """Return what the log says of the record at `offset`."""
    verdict = Verdict(sequence=offset, id="x", url="http://x/", kind=VerdictKind.UNIQUE, space="space")
    source = Source("pages", 0, offset)
    if is_page:
        return Outcome(source, offset, "http://x/", verdict, None, Action.FLAG)
    return Outcome(source, offset, None, None, "not a page", Action.FLAG)


class Kind:
    """What an offset is: a page, a rejected record, one that was passed over, or a marker."""

    PAGE, REJECTED, PASSED, MARKER = range(4)


@given(
    st.lists(st.sampled_from(range(4)), max_size=40),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5)), min_size=60, max_size=60),
)
def test_whatever_comes_first_everything_is_written_once_and_in_order(
    kinds: list[int], steps: list[tuple[int, int, int]]
) -> None:
    """The log is read, records come, and transactions end in any order; only what has to be read is kept."""
    kinds = [*kinds, Kind.PAGE]
    outcomes, needed = known({}), begun(max_records=8)
    logged, done, position = 0, list[tuple[int, str]](), 0
    for log, fetch, write in [*steps, *[(len(kinds), len(kinds), len(kinds))] * 2 * len(kinds)]:
        for offset in range(logged, min(len(kinds), logged + log)):
            if kinds[offset] in {Kind.PAGE, Kind.REJECTED}:
                outcomes.add(logged_outcome(offset, is_page=kinds[offset] == Kind.PAGE))
        logged = min(len(kinds), logged + log)
        if 0 in (wanted := needed.wanted(outcomes)):
            position = wanted[0][0]
            end = min(len(kinds), position + fetch)
            there = [offset for offset in range(position, end) if kinds[offset] != Kind.MARKER]
            needed.put(map(Consumed, there), {0: end}, outcomes)
            assert needed.records <= 8 + fetch
        items = needed.ready(outcomes, write, 1 << 20)
        needed.done(items)
        done += written(items)
        for item in items:
            outcomes.forget(item.source, item.end)
    names = {Kind.PAGE: "verdict", Kind.REJECTED: "letter", Kind.PASSED: "passed over"}
    assert done == [(offset, names[kind]) for offset, kind in enumerate(kinds) if kind != Kind.MARKER]
