"""A decider is a function of its pages and removals in their order, however they come and wherever it goes on."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.core.rules.rule import MatchRule
from tests.core.decision.crowded import Run, page_at

KEYS_ALONE = MatchRule(keys=True, verified=PROFILES["broad"].verified)
RULES = [KEYS_ALONE, replace(PROFILES["balanced"], guards=Guards(max_pages=2, max_hosts=1, max_titles=1))]
LAYOUTS = [IndexLayout(slots=slots, window=window) for slots, window in ((1, 1), (2, 2), (2, 3), (8, 5), (8, 4096))]

steps = st.lists(
    st.one_of(
        st.tuples(st.just("pages"), st.lists(st.integers(0, 1 << 32), min_size=1, max_size=9)),
        st.tuples(st.just("pages"), st.lists(st.integers(0, 1 << 32), min_size=1, max_size=9)),
        st.tuples(st.just("retract"), st.lists(st.integers(0, 99), min_size=1, max_size=3)),
        st.tuples(st.just("correct"), st.lists(st.integers(0, 999), min_size=1, max_size=2)),
        st.tuples(st.just("time"), st.lists(st.integers(-2, 6), min_size=1, max_size=2)),
        st.tuples(st.just("keep"), st.lists(st.integers(0, 99), min_size=1, max_size=1)),
    ),
    max_size=14,
)
Steps = list[tuple[str, list[int]]]
both = (st.sampled_from(RULES), st.sampled_from(LAYOUTS))


def apply(run: Run, step: tuple[str, list[int]], *, batch: bool = False) -> list[object]:
    """Apply a step to a run and return what was decided."""
    what, numbers = step
    if what == "pages":
        return list(run.decide([page_at(number) for number in numbers], batch=batch))
    change = {"retract": run.retract, "correct": run.correct, "time": run.time, "keep": run.keep}[what]
    for number in numbers:
        change(number)
    return []


@settings(max_examples=40)
@given(*both, steps, st.booleans())
def test_effects_give_the_state(rule: MatchRule, layout: IndexLayout, some: Steps, batch: bool) -> None:
    """Decisions that are applied and not made again leave the same state behind, after each page."""
    run, replayed = Run(rule, layout), Run(rule, layout)
    for what, numbers in some:
        if what == "pages":
            pages = [page_at(number) for number in numbers]
            replayed.replay(pages, run.decide(pages, batch=batch))
        else:
            apply(run, (what, numbers))
            apply(replayed, (what, numbers))
        assert replayed.snapshot() == run.snapshot()
    last = [page_at(number) for number in range(5)]
    assert replayed.decide(last) == run.decide(last)


@settings(max_examples=20)
@given(st.sampled_from(LAYOUTS), st.lists(st.integers(0, 1 << 32), min_size=4, max_size=60))
def test_removed_entries_are_remembered_for_the_window_alone(layout: IndexLayout, seeds: list[int]) -> None:
    """What the cells still need is what was removed in the last `window` pages: the state does not grow."""
    run = Run(KEYS_ALONE, layout)
    for seed in seeds:
        run.decide([page_at(seed)])
        if seed % 2:
            run.retract(seed % 97)
        state = run.decider.state()
        assert all(state.ordinal - gone.ordinal <= layout.window for gone in state.removed)
        unsettled = [entry for entry in run.decider.held().entries() if not entry.settled]
        assert all(state.ordinal - entry.ordinal <= layout.window for entry in unsettled)
    for number in range(layout.window + 1 if layout.window < 99 else 0):
        run.decide([replace(page_at(0), body_hash=None, page=replace(page_at(0).page, url=f"/{number}"))])
    if layout.window < 99:
        assert run.decider.state().removed == ()
        assert all(entry.settled for entry in run.decider.held().entries())
