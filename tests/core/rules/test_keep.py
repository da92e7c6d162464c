"""The bounds of expiry as people write them and as records have them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rules.keep import KEEP_ALL, Keep

some_keep = st.builds(
    Keep, max_pages=st.none() | st.integers(1, 10**9), max_age_minutes=st.none() | st.integers(1, 10**7)
)


@pytest.mark.parametrize(
    ("text", "pages", "minutes"),
    [
        ("all", None, None),
        ("100000000", 100_000_000, None),
        ("90d", None, 129_600),
        ("12h", None, 720),
        ("8w, 5", 5, 80_640),
        ("5,8w", 5, 80_640),
    ],
)
def test_text_names_bounds(text: str, pages: int | None, minutes: int | None) -> None:
    """A number, an age, both in any order, or all."""
    assert Keep.parse(text) == Keep(max_pages=pages, max_age_minutes=minutes)


@pytest.mark.parametrize("text", ["", "0", "0d", "-1", "90m", "1,2", "1d,2w", "d", "1e6", "all,1", "1.5d"])
def test_other_text_is_refused(text: str) -> None:
    """The message says what is allowed."""
    with pytest.raises(ConfigurationError, match="a number of pages"):
        Keep.parse(text)


@given(some_keep)
def test_a_record_has_the_bounds(keep: Keep) -> None:
    """Written and read again they are the same; without bounds there is nothing to write."""
    assert Keep.from_dict(keep.to_dict()) == keep
    assert bool(keep) == (keep != KEEP_ALL) == bool(keep.to_dict())


@pytest.mark.parametrize("values", [{"max_pages": 0}, {"max_age_minutes": -1}, {"max_bytes": 5}])
def test_a_record_of_other_values_is_refused(values: dict[str, int]) -> None:
    """A bound below 1 or with another name: half of the bounds give other verdicts."""
    with pytest.raises(ConfigurationError):
        Keep.from_dict(values)


@pytest.mark.parametrize(
    ("bounds", "other", "lowers"),
    [
        ("90d,5", "90d", True),
        ("90d,5", "90d,6", True),
        ("5", "6", True),
        ("90d,6", "90d,6", False),
        ("90d,7", "90d,6", False),
        ("80d,5", "90d", False),
        ("90d", "90d,6", False),
        ("5", "all", False),
    ],
)
def test_bounds_with_fewer_pages_lower_others(bounds: str, other: str, lowers: bool) -> None:
    """If the age is the same; where all pages are kept, nothing is lowered."""
    assert Keep.parse(bounds).lowers(Keep.parse(other)) == lowers
