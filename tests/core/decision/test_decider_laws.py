"""A decider is a function of its pages and removals in their order, however they come and wherever it goes on."""

import random
from dataclasses import replace

import pytest
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


@given(*both, steps)
def test_verdicts_do_not_depend_on_batches(rule: MatchRule, layout: IndexLayout, some: Steps) -> None:
    """Decisions and state after each batch are those of one by one, with updates inside of it."""
    singly, batched = Run(rule, layout), Run(rule, layout)
    for step in some:
        assert apply(singly, step) == apply(batched, step, batch=True)
        assert singly.snapshot() == batched.snapshot()


@given(*both, steps, st.data())
def test_a_decider_goes_on_anywhere(rule: MatchRule, layout: IndexLayout, some: Steps, data: st.DataObject) -> None:
    """From entries and state at any place: the same decisions, and the same state ever after."""
    run = Run(rule, layout)
    cuts = data.draw(st.sets(st.integers(0, len(some)), max_size=4))
    again: list[Run] = []
    for number, step in enumerate(some):
        if number in cuts:
            again.append(Run(rule, layout, run))
            assert again[-1].snapshot() == run.snapshot()
        expected = apply(run, step)
        for other in again:
            assert apply(other, step) == expected
            assert other.snapshot() == run.snapshot()


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


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pages_by_the_hundred(layout: IndexLayout) -> None:
    """One long history through all of it: batches, replay, and a decider that goes on from another every 40 pages."""
    chosen = random.Random(layout.window)
    runs = [Run(KEYS_ALONE, layout) for _ in range(3)]
    kinds = set()
    for round_ in range(10):
        pages = [page_at(chosen.getrandbits(32)) for _ in range(40)]
        decisions = runs[0].decide(pages)
        kinds |= {decision.verdict.kind.value for decision in decisions}
        assert runs[1].decide(pages, batch=True) == decisions
        runs[2].replay(pages, decisions)
        removed = [chosen.randrange(99) for _ in range(chosen.randrange(4))]
        for run in runs:
            for number in removed:
                run.retract(number)
        assert runs[0].snapshot() == runs[1].snapshot() == runs[2].snapshot()
        runs[round_ % 3] = Run(KEYS_ALONE, layout, runs[(round_ + 1) % 3])
    assert kinds == {"unique", "duplicate", "unchanged", "updated", "undecided"}


@settings(max_examples=40)
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
        unsettled = [entry for entry in run.decider.rows().entries() if not entry.settled]
        assert all(state.ordinal - entry.ordinal <= layout.window for entry in unsettled)
    for number in range(layout.window + 1 if layout.window < 99 else 0):
        run.decide([replace(page_at(0), body_hash=None, page=replace(page_at(0).page, url=f"/{number}"))])
    if layout.window < 99:
        assert run.decider.state().removed == ()
        assert all(entry.settled for entry in run.decider.rows().entries())
