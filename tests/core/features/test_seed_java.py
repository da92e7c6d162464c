"""Tests for the scheme that reproduces the seed's Java program, value for value."""

import pytest

from dedup_service.core.features.seed_java import SeedJavaScheme, java_words, seed_java
from dedup_service.core.features.weighting_schemes import WeightedScheme
from dedup_service.core.features.words import WordTable


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("This is a test string for testing", 9227187964509734024),
        ("This is a test string for testing, This is a test string for testing abcdef", 9227187964518122632),
        ("This is a test string for testing als", 9227223148898608264),
        ("the cat sat on the mat", 18067315166123372031),
        ("北京 上海 香港 深圳 广州 台北", 2880328420145413347),
        ("", 18446744073709551615),
    ],
)
def test_the_golden_values_of_the_original_code(text: str, value: int) -> None:
    """The fingerprints are those that the original program printed."""
    assert seed_java(text) == value


def test_only_the_five_ascii_separators_split() -> None:
    """Java's StringTokenizer does not split at the ideographic space."""
    assert java_words("a\t b\n\rc\fd\u3000e") == ["a", "b", "c", "d\u3000e"]


def test_the_scheme_is_stored_with_the_fields_of_a_weighted_scheme() -> None:
    """Spaces of `seed-java` were stored so before it was a scheme without factors."""
    weighted = WeightedScheme(name="seed-java", with_title=False, hash="java")
    assert SeedJavaScheme().to_dict() == weighted.to_dict()
    assert SeedJavaScheme().pos == weighted.pos


def test_the_scheme_never_counts_words() -> None:
    """It neither segments the text nor looks words up: both would take most of the time of a page."""

    def refuse() -> WordTable:
        raise AssertionError

    assert SeedJavaScheme().fingerprint("the cat sat on the mat", refuse, bits=64) == 18067315166123372031
    assert [feature.word for feature in SeedJavaScheme().features("the cat sat on the mat", refuse, 2)] == [
        "the",
        "cat",
    ]
