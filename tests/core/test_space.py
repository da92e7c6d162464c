"""Tests for spaces: their ids outlive releases."""

from dataclasses import fields, replace

import pytest

from dedup_service.core.features.weighting_schemes import SCHEMES
from dedup_service.core.space import Space

SPACE = Space(
    scheme=SCHEMES["twinsieve"],
    segmenter="rjieba 0.2",
    characters="Unicode 17.0.0, OpenCC 1.1",
    idf="i",
    stop_words="s",
    markers="m",
    user_words="u",
)


@pytest.mark.parametrize(
    ("scheme", "space_id"),
    [
        ("twinsieve", "twinsieve-7744d6e0ff04"),
        ("tf", "tf-601453c29dde"),
        ("levels", "levels-78da66b390fc"),
        ("wang2019", "wang2019-299e096265fc"),
        ("zhang2020", "zhang2020-4bac9e2fc3b1"),
        ("seed-java", "seed-java-b186797201cc"),
    ],
)
def test_the_space_id_of_every_scheme_is_fixed(scheme: str, space_id: str) -> None:
    """Another id for the same space would make every stored state unreadable."""
    assert replace(SPACE, scheme=SCHEMES[scheme]).space_id == space_id


@pytest.mark.parametrize("name", [field.name for field in fields(Space) if field.name != "scheme"])
def test_every_field_is_part_of_the_space_id(name: str) -> None:
    """Spaces that differ in any field have different ids."""
    value = getattr(SPACE, name)
    other = replace(SPACE, **{name: value + 1 if isinstance(value, int) else f"{value}x"})
    assert other.space_id != SPACE.space_id


def test_icu_is_named_in_the_space_id() -> None:
    """The id shows at a glance whether ICU cuts the words."""
    assert replace(SPACE, unspaced="ICU 76.1").space_id.startswith("twinsieve-icu-")
