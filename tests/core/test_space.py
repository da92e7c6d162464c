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
        ("twinsieve", "twinsieve-88b4220fff98"),
        ("tf", "tf-7dc6413feb78"),
        ("levels", "levels-caffba2b3b38"),
        ("wang2019", "wang2019-2d08b89f33a7"),
        ("zhang2020", "zhang2020-e32c5fc351ed"),
        ("seed-java", "seed-java-c0ea859082fe"),
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
