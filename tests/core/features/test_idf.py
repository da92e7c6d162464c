"""Tests for IDF tables: what is written, and how the crate reads it."""

import math
from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features.idf import build_idf
from dedup_service.core.page import Page
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter

PAGE = Page(url="", canonical_url="", id="", text="harbour harbour wheat, 大桥 barley")


def idfs(folder: Path, table: str) -> dict[str, float]:
    """Return the IDF of each word of a page by a table."""
    file = folder / f"{len(list(folder.iterdir()))}.txt"
    file.write_text(table, encoding="utf-8")
    features = build_fingerprinter(SpaceOptions(idf=str(file))).explain(PAGE)
    return {feature.word: feature.idf for feature in features}


def test_idf_is_the_logarithm_of_the_inverse_share(tmp_path: Path) -> None:
    """A word on 2 of 4 pages has log 2; a word on a single page is left to the default, the median."""
    lines = build_idf([["harbour", "b", "harbour"], ["harbour"], ["b", "c"], ["d"]])
    assert lines == ["b 0.693147\n", "harbour 0.693147\n"]
    found = idfs(tmp_path, "".join(lines))
    assert found["harbour"] == found["wheat"] == pytest.approx(math.log(2), abs=1e-4)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("", (1.0, 1.0)),
        ("harbour 1.5\n大桥 2", (1.5, 2.0)),
        ("harbour 1\nx 3\nharbour 2\n", (2.0, 2.0)),
        ("two words 5\nx 7\n", (6.0, 6.0)),
    ],
)
def test_a_word_has_the_value_of_its_last_line(tmp_path: Path, table: str, expected: tuple[float, float]) -> None:
    """Words that the table lacks have its median, or 1 if it is empty; the last line needs no line break."""
    found = idfs(tmp_path, table)
    assert (found["harbour"], found["大桥"]) == expected


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("a 1.0\nb\n", 2), ("a 1\nb c\n", 2), ("a\n1 b 2\n", 1), ("a 1\n\nb 2\n", 2), (" 1\n", 1), ("a 1.2.3\n", 1),
        ("a -1\n", 1), ("a .\n", 1), ("a 1\nb 2 ", 2), ("a 1e3\n", 1),
    ],
)  # fmt: skip
def test_a_bad_line_is_reported_by_its_number(tmp_path: Path, table: str, line: int) -> None:
    """A line that is not a word and a value is refused, whatever the lines around it."""
    with pytest.raises(ConfigurationError, match=f"line {line}"):
        idfs(tmp_path, table)
