"""IDF tables."""

import math

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.idf import IdfTable


def test_idf_is_the_logarithm_of_the_inverse_share() -> None:
    """A word on 2 of 4 pages has log 2; one on a single page is left to the default."""
    table = IdfTable.build([["a", "b", "a"], ["a"], ["b", "c"], ["d"]])
    assert table.of("a") == pytest.approx(math.log(2))
    assert table.of("never seen") == table.default == pytest.approx(math.log(2))


def test_a_table_survives_its_file() -> None:
    """What a table writes it reads back."""
    table = IdfTable({"大桥": 7.25, "new york": 3.5}, 5.0)
    assert IdfTable.parse("".join(table.lines())).values == table.values


def test_a_bad_line_is_named() -> None:
    """The error has the line's number."""
    with pytest.raises(ConfigurationError, match="line 2"):
        IdfTable.parse("a 1.0\nb\n")


@pytest.mark.parametrize(("text", "line"), [("a 1\nb c\n", 2), ("a\n1 b 2\n", 1), ("a 1\n\nb 2\n", 2), (" 1\n", 1)])
def test_a_table_out_of_step_is_refused(text: str, line: int) -> None:
    """A line without word and value is named, whatever stands around it."""
    with pytest.raises(ConfigurationError, match=f"line {line}"):
        IdfTable.parse(text)
