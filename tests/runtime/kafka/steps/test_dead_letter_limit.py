"""A few rejected records pass; a stream of them stops the service before it is dead-lettered."""

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.steps.dead_letter_limit import RejectionLimit, RejectionRateError, RejectionTracker

LIMIT = RejectionLimit(share=0.25, window=20, min_rejected=4)


def tracker(*committed: str | None) -> RejectionTracker:
    """Return a tracker that has accepted these records, in order."""
    tracker = RejectionTracker(LIMIT)
    tracker.accept(committed)
    return tracker


def test_few_bad_records_pass_however_large_their_share() -> None:
    """At the start of a stream a share has no meaning yet."""
    tracker().check(["p: bad"] * 3)


def test_a_share_at_the_limit_passes_and_one_above_does_not() -> None:
    """The message names the latest rejected record, the share and the limit."""
    at_the_limit = tracker(*[None] * 15)
    at_the_limit.check(["p: bad"] * 5)
    at_the_limit.accept(["p: bad"] * 5)
    with pytest.raises(RejectionRateError, match=r"6 of the last 20 .* 30%, the limit is 25%. The latest: p: worse"):
        at_the_limit.check(["p: worse"])
    with pytest.raises(RejectionRateError, match=r"meets the same records.*once with `--max-rejected-share 1`"):
        at_the_limit.check(["p: worse"])


def test_records_outside_the_window_do_not_count() -> None:
    """Rejected records leave the window after enough good pages."""
    old = tracker(*["p: bad"] * 5, *[None] * 17)
    old.check(["p: bad"] * 3)
    old.check([*[None] * 3, *["p: bad"] * 5])


def test_a_retried_batch_counts_once() -> None:
    """Only committed records enter the window."""
    retried = tracker(*[None] * 10)
    for _ in range(10):
        retried.check(["p: bad"] * 3)
    retried.accept(["p: bad"] * 3)
    retried.check([None])


def test_the_first_problem_of_a_kind_in_a_minute_is_reported() -> None:
    """Kinds differ in more than numbers; 20 kinds a minute are reported at most."""
    now = [0.0]
    reporting = RejectionTracker(RejectionLimit(), lambda: now[0])
    assert reporting.accept([None, "p, offset 7: bad", "p, offset 8: bad", "p, offset 9: null"]) == [
        "p, offset 7: bad",
        "p, offset 9: null",
    ]
    now[0] = 59.0
    assert reporting.accept(["p, offset 10: bad"]) == []
    now[0] = 60.0
    assert reporting.accept(["p, offset 11: bad"]) == ["p, offset 11: bad"]
    assert len(reporting.accept("x" * length for length in range(1, 100))) == 19


@pytest.mark.parametrize("wrong", [{"share": 0}, {"share": 1.5}, {"min_rejected": 0}, {"min_rejected": 2000}])
def test_an_impossible_limit_is_refused(wrong: dict[str, float]) -> None:
    """It is refused when it is configured, not when it is first reached."""
    with pytest.raises(ConfigurationError, match="a rejection limit of"):
        RejectionLimit(**wrong)  # type: ignore[arg-type]
