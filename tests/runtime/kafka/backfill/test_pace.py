"""The pace of a backfill, beside a deciding step that is simulated: a queue with a rate and a least time."""

import random
from dataclasses import dataclass, field

import pytest

from dedup_service.runtime.kafka.backfill.pace import FIRST_WINDOW, MAX_WINDOW, MIN_WINDOW, Pace

BATCH = 500


@dataclass
class Step:
    """A deciding step that takes `page_s` for a page, and `least_s` more for any batch. now: the time there."""

    page_s: float
    least_s: float = 0.2
    now: float = 100.0
    free_at: float = 0.0
    waiting: list[tuple[float, int]] = field(default_factory=list)
    sequence: int = 0
    busy_s: float = 0.0
    delays_s: list[float] = field(default_factory=list)

    def take(self, pages: int) -> int:
        """Take a batch, and return the sequence of its last page."""
        self.sequence += pages
        self.free_at = max(self.free_at, self.now) + pages * self.page_s
        self.busy_s += pages * self.page_s
        self.delays_s.append(self.free_at - self.now)
        self.waiting.append((self.free_at + self.least_s, self.sequence))
        return self.sequence

    def pass_time(self, seconds: float, pace: Pace) -> None:
        """Let time pass, and tell the pace what is decided by then."""
        self.now += seconds
        while self.waiting and self.waiting[0][0] <= self.now:
            at, sequence = self.waiting.pop(0)
            pace.decided(sequence + 1, at)


def run(step: Step, pace: Pace, lasts_s: float, prepare_s: float = 0.01) -> int:
    """Backfill for so long; return the pages. prepare_s: until the next batch is there."""
    end, pages = step.now + lasts_s, 0
    while step.now < end:
        step.pass_time(prepare_s, pace)
        left = BATCH
        while left and step.now < end:
            while (wait_s := pace.wait_s(left)) > 0 and step.now < end:
                step.pass_time(wait_s, pace)
            part = pace.part(left)
            pace.appended(part, step.take(part))
            left -= part
            pages += part
    return pages


def paced(step: Step, share: float, rate: float | None = None) -> Pace:
    return Pace(share, rate, clock=lambda: step.now)


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("page_s", [1e-4, 5e-4, 2e-3])
def test_the_deciding_step_is_busy_for_its_share_at_most(share: float, page_s: float) -> None:
    """Whatever a page takes it; and of what is allowed, most is used."""
    step = Step(page_s)
    run(step, paced(step, share), 120)
    assert 0.5 * share < step.busy_s / 120 < 1.1 * share + 0.02


def test_a_backfill_that_is_slower_than_its_share_does_not_wait() -> None:
    """Preparing is the slowest part then: 100 batches take the time of preparing them."""
    step = Step(page_s=1e-4)
    assert run(step, paced(step, 0.5), 100, prepare_s=0.5) >= 190 * BATCH


@pytest.mark.parametrize("page_s", [1e-4, 1e-3, 5e-3])
def test_pages_of_the_crawl_wait_for_a_second_at_most(page_s: float) -> None:
    """With a share of 1 the window alone bounds what is under way, once it has found its size."""
    step = Step(page_s)
    run(step, paced(step, 1.0), 200)
    later = sorted(step.delays_s[len(step.delays_s) // 4 :])
    assert later[int(0.99 * len(later))] < 1.0 + MIN_WINDOW * page_s


def test_a_rate_is_kept() -> None:
    """Whatever the share would allow."""
    step = Step(page_s=1e-5)
    assert run(step, paced(step, 1.0, rate=1000), 60) <= 61 * 1000 + BATCH


def test_while_the_crawl_waits_the_share_is_a_quarter() -> None:
    """Its oldest page has no verdict for more than two seconds."""
    step = Step(page_s=5e-4)
    pace = paced(step, 0.8)
    pace.crawl_waits(3.0)
    run(step, pace, 120)
    assert step.busy_s / 120 < 0.22


def test_without_a_deciding_step_the_window_fills_and_the_stall_is_known() -> None:
    """A backfill beside a service that has stopped waits with a bounded number of pages under way."""
    step = Step(page_s=1e9)
    pace = paced(step, 1.0)
    run(step, pace, 60)
    assert pace.under_way <= FIRST_WINDOW
    assert pace.stalled_s > 50


def test_what_is_under_way_is_bounded_whatever_happens() -> None:
    """Also if times jump, and if positions come late or again."""
    rng, step = random.Random(3), Step(page_s=1e-6, least_s=0.0)
    pace = paced(step, 1.0)
    for _ in range(2000):
        if pace.wait_s(BATCH) == 0:
            pace.appended(BATCH, step.take(BATCH))
        pace.decided(rng.randrange(step.sequence + 2), step.now - rng.random())
        step.now += rng.choice([0, 0.001, 5])
        assert pace.under_way <= MAX_WINDOW + BATCH
