"""Quantiles from slots, against those of the sorted list."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.runtime.live_stats.latency_histogram import LatencyHistogram


@given(st.lists(st.floats(1.1e-5, 990), min_size=1, max_size=200), st.sampled_from([0.01, 0.5, 0.99, 1.0]))
def test_a_quantile_is_at_most_five_in_a_hundred_off(seconds: list[float], share: float) -> None:
    """Of the value at the same rank."""
    spread = LatencyHistogram(300, 0.0)
    for value in seconds:
        spread.add(value, 0.0)
    exact = sorted(seconds)[math.ceil(share * len(seconds)) - 1 if share * len(seconds) > 1 else 0]
    assert spread.quantile(share) == pytest.approx(exact, rel=0.0500001)
    assert (spread.count, spread.seconds) == (len(seconds), pytest.approx(sum(seconds)))


def test_what_is_out_of_bounds_counts_as_the_bound() -> None:
    """Nothing, and a day."""
    spread = LatencyHistogram(300, 0.0)
    spread.add(0.0, 0.0)
    assert spread.quantile(0.5) == pytest.approx(1e-5, rel=0.1)
    spread.add(86400.0, 0.0)
    assert spread.quantile(1.0) == pytest.approx(1e3, rel=0.15)


def test_quantiles_are_of_the_last_two_spans() -> None:
    """What is older is forgotten; counts and sums stay."""
    spread = LatencyHistogram(10, 0.0)
    spread.add(1.0, 0.0)
    spread.add(2.0, 11.0)
    assert spread.quantile(0.01) == pytest.approx(1.0, rel=0.06)
    spread.turn(22.0)
    assert spread.quantile(0.01) == pytest.approx(2.0, rel=0.06)
    spread.turn(60.0)
    assert spread.quantile(0.5) is None
    assert spread.count == 2
