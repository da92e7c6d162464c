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
    assert IdfTable.parse(table.lines()).values == table.values


def test_a_bad_line_is_named() -> None:
    """The error has the line's number."""
    with pytest.raises(ConfigurationError, match="line 2"):
        IdfTable.parse(["a 1.0", "b"])
