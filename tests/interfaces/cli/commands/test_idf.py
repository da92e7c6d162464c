"""`twinsieve idf build`: IDF tables, and the spaces that they define."""

import math
from pathlib import Path

from tests.interfaces.cli.running import Cli, page, write_lines


def space_of(table: Path) -> Path:
    """Write a space file that names a table."""
    path = table.with_name("space.toml")
    path.write_text(f'idf = "{table.name}"\n')
    return path


def test_a_table_counts_pages(cli: Cli, tmp_path: Path) -> None:
    """It has idf(w) = ln(pages / pages with w) for words on at least two pages."""
    texts = ["harbour school harbour", "harbour market", "harbour school", "island"]
    pages = write_lines(tmp_path / "pages.jsonl", [page(n, text, title="") for n, text in enumerate(texts)])
    table = tmp_path / "idf.txt"
    assert cli("idf", "build", pages, "--output", table).code == 0
    values = dict(line.rsplit(" ", 1) for line in table.read_text().splitlines())
    assert {word: round(float(value), 5) for word, value in values.items()} == {
        "harbour": round(math.log(4 / 3), 5),
        "school": round(math.log(4 / 2), 5),
    }


def test_a_table_defines_a_space(cli: Cli, tmp_path: Path) -> None:
    """Fingerprints with another table belong to another space."""
    pages = write_lines(tmp_path / "pages.jsonl", [page(number) for number in range(4)])
    table = tmp_path / "idf.txt"
    cli("idf", "build", pages, "--output", table)
    spaces = {cli("filter", pages, *more).lines[0]["space"] for more in ([], ["--space", space_of(table)])}
    assert len(spaces) == 2


def test_bad_records_are_left_out_and_reported(cli: Cli, tmp_path: Path) -> None:
    """The table is built from the other pages; the exit code is 3."""
    pages = write_lines(tmp_path / "pages.jsonl", [page(1), b"hello", page(1)])
    ran = cli("idf", "build", pages, "--output", tmp_path / "idf.txt")
    assert ran.code == 3
    assert "line 2: " in ran.err


def test_an_input_without_words_is_refused(cli: Cli, tmp_path: Path) -> None:
    """An empty table would give every word the same weight, so none is written."""
    ran = cli("idf", "build", write_lines(tmp_path / "pages.jsonl", []), "--output", tmp_path / "idf.txt")
    assert ran.code == 2
    assert not (tmp_path / "idf.txt").exists()


def test_an_invalid_table_is_refused(cli: Cli, tmp_path: Path) -> None:
    """The message names the line."""
    table = tmp_path / "idf.txt"
    table.write_text("harbour 1.5\nschool\n")
    ran = cli("filter", write_lines(tmp_path / "pages.jsonl", [page(1)]), "--space", space_of(table))
    assert ran.code == 2
    assert "line 2" in ran.err
