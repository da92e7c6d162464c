"""`twinsieve filter --base`: new pages against the pages of a state that is never changed."""

from pathlib import Path

import pytest

from tests.interfaces.cli.running import Cli, article, page, write_lines


@pytest.fixture
def base(cli: Cli, tmp_path: Path) -> Path:
    """A state folder with two pages."""
    pages = write_lines(tmp_path / "old.jsonl", [page(1), page(2)])
    assert cli("filter", pages, "--state", tmp_path / "base", "-q").code == 0
    return tmp_path / "base"


def test_a_copy_of_a_page_in_a_base_names_the_base(cli: Cli, base: Path, tmp_path: Path) -> None:
    """So does `why`, which shows the text that the base has; other lines have the keys that they had."""
    files = {path: path.read_bytes() for path in sorted(base.rglob("*")) if path.is_file()}
    new = write_lines(tmp_path / "new.jsonl", [page(7, article(1)), page(8), page(9, article(8))])
    ran = cli("filter", new, "--state", tmp_path / "state", "--base", base, "-q")
    assert ran.code == 0
    assert [(line["verdict"], line["duplicate_of"], line.get("duplicate_of_base")) for line in ran.lines] == [
        ("duplicate", "p1", str(base)),
        ("unique", None, None),
        ("duplicate", "p8", None),
    ]
    assert ["duplicate_of_base" in line for line in ran.lines] == [True, False, False]
    why = cli("why", "https://news.example/7", "--state", tmp_path / "state", "--json")
    assert why.code == 0
    assert why.lines[0]["match"]["other"]["url"] == "https://news.example/1"
    assert not why.lines[0]["notes"]
    assert cli("why", "https://news.example/8", "--state", tmp_path / "state").code == 0
    info = cli("state", "info", tmp_path / "state", "--json").lines[0]
    assert (info["bases"], info["entries"], info["pages"]["duplicate"]) == ([[str(base), 2]], 3, 2)
    assert "at record 2" in cli("state", "info", tmp_path / "state").out
    assert {path: path.read_bytes() for path in sorted(base.rglob("*")) if path.is_file()} == files
    assert "bases" not in cli("state", "info", base, "--json").lines[0]


def test_files_in_a_base_are_neither_read_nor_written(cli: Cli, base: Path, tmp_path: Path) -> None:
    """An output there would change it; a base that is none is named in the message."""
    new = write_lines(tmp_path / "new.jsonl", [page(7)])
    refused = cli("filter", new, "--base", base, "-o", base / "verdicts.jsonl")
    assert (refused.code, "is in the state folder" in refused.err) == (2, True)
    assert not (base / "verdicts.jsonl").exists()
    refused = cli("filter", new, "--base", tmp_path / "nothing")
    assert (refused.code, "give the folder of a state, or an address" in refused.err) == (2, True)
