"""The seed's Java program, value for value."""

import pytest

from dedup_service.core.features.seed_java import java_words, seed_java


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
    """What the original program printed is what ours gives."""
    assert seed_java(text) == value


def test_only_the_five_ascii_separators_split() -> None:
    """Java's StringTokenizer knows no ideographic space."""
    assert java_words("a\t b\n\rc\fd\u3000e") == ["a", "b", "c", "d\u3000e"]
