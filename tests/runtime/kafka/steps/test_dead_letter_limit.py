"""A bad record is nothing, a stream of them stops the service before it is moved to the dead letters."""

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.kafka.steps.dead_letter_limit import RejectionLimit, RejectionRateError, RejectionTracker

LIMIT = RejectionLimit(share=0.25, window=20, minimum=4)


def watch(*committed: str | None) -> RejectionTracker:
    """A watch that has accepted these, in order."""
    made = RejectionTracker(LIMIT)
    made.accept(committed)
    return made


def test_few_bad_records_pass_however_large_their_share() -> None:
    """At the beginning of a stream a share says nothing."""
    watch().check(["p: bad"] * 3)


def test_a_share_at_the_ceiling_passes_and_one_above_does_not() -> None:
    """The message names the latest of them, the share and the ceiling."""
    at_the_ceiling = watch(*[None] * 15)
    at_the_ceiling.check(["p: bad"] * 5)
    at_the_ceiling.accept(["p: bad"] * 5)
    with pytest.raises(
        RejectionRateError, match=r"6 of the last 20 .* 30% where the ceiling is 25%; the latest: p: worse"
    ):
        at_the_ceiling.check(["p: worse"])


def test_what_left_the_window_no_longer_counts() -> None:
    """Old trouble is forgiven after so many good pages."""
    old = watch(*["p: bad"] * 5, *[None] * 17)
    old.check(["p: bad"] * 3)
    old.check([*[None] * 3, *["p: bad"] * 5])


def test_a_peak_within_one_batch_is_seen() -> None:
    """Good pages after it do not hide it."""
    with pytest.raises(RejectionRateError):
        watch().check([*["p: bad"] * 6, *[None] * 40])


def test_a_batch_tried_again_counts_once() -> None:
    """Only what was committed is remembered."""
    tried = watch(*[None] * 10)
    for _ in range(10):
        tried.check(["p: bad"] * 3)
    tried.accept(["p: bad"] * 3)
    tried.check([None])


def test_a_ceiling_of_one_never_stops() -> None:
    """For who wants all of them set aside."""
    RejectionTracker(RejectionLimit(share=1)).check(["p: bad"] * 5000)


@pytest.mark.parametrize("wrong", [{"share": 0}, {"share": 1.5}, {"minimum": 0}, {"minimum": 2000}])
def test_an_impossible_ceiling_is_refused(wrong: dict[str, float]) -> None:
    """When it is configured, not when it matters."""
    with pytest.raises(ConfigurationError, match="a ceiling of"):
        RejectionLimit(**wrong)  # type: ignore[arg-type]
