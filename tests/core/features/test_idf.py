"""Tests for IDF tables, against a dictionary."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features.idf import IdfTable, build_idf

WORDS = st.text(st.characters(exclude_characters="\n\r", codec="utf-8"), min_size=1, max_size=5)
VALUES = st.decimals(0, 1000, places=6).map(str)


@given(st.lists(st.tuples(WORDS, VALUES)), st.lists(WORDS))
def test_it_finds_what_a_dictionary_finds(rows: list[tuple[str, str]], others: list[str]) -> None:
    """A word has the value of its line, the later one if there are two; other words have the median."""
    expected = {word: float(value) for word, value in rows}
    table = IdfTable("".join(f"{word} {value}\n" for word, value in rows))
    assert [table.idf_of(word) for word in expected] == list(expected.values())
    assert all(table.idf_of(word) == expected.get(word, table.default) for word in others)


def test_idf_is_the_logarithm_of_the_inverse_share() -> None:
    """A word on 2 of 4 pages has log 2; a word on a single page is left to the default, the median."""
    table = IdfTable("".join(build_idf([["a", "b", "a"], ["a"], ["b", "c"], ["d"]])))
    assert len(table) == 2
    assert table.idf_of("a") == pytest.approx(math.log(2), abs=1e-6)
    assert table.idf_of("never seen") == table.default == pytest.approx(math.log(2), abs=1e-6)


def test_an_empty_text_is_a_table() -> None:
    """Without any line every word has 1."""
    assert IdfTable("").idf_of("a") == 1.0


def test_the_last_line_needs_no_line_break() -> None:
    """A file without a final line break reads the same."""
    assert IdfTable("a 1.5\nb 2").idf_of("b") == 2.0


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a 1.0\nb\n", 2),
        ("a 1\nb c\n", 2),
        ("a\n1 b 2\n", 1),
        ("a 1\n\nb 2\n", 2),
        (" 1\n", 1),
        ("a 1.2.3\n", 1),
        ("a -1\n", 1),
        ("a .\n", 1),
        ("a 1\nb 2 ", 2),
        ("a 1e3\n", 1),
    ],
)
def test_a_bad_line_is_reported_by_its_number(text: str, line: int) -> None:
    """A line that is not a word and a value is refused, whatever the lines around it."""
    with pytest.raises(ConfigurationError, match=f"line {line}"):
        IdfTable(text)
