"""Parquet and packed files as inputs and outputs of `filter`."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from tests.interfaces.cli.running import Cli, page, write_lines

PAGES = [page(1), page(2), page(3, page(1)["text"]), page(4), page(5, page(2)["text"]), page(6), page(7)]  # type: ignore[arg-type]
KEPT = ["p1", "p2", "p4", "p6", "p7"]


def table(path: Path, pages: list[dict[str, Any]], group: int = 3, **more: Any) -> Path:
    """Write pages as rows, with columns that are not ours."""
    rows = [
        one | {"crawled": number, "labels": [{"name": "a", "share": number / 2}]} for number, one in enumerate(pages)
    ]
    values = pa.Table.from_pylist(rows).replace_schema_metadata({"made": "by a test"})
    pq.write_table(values, path, row_group_size=group, **more)
    return path


def test_a_table_gives_the_verdicts_of_its_lines(cli: Cli, tmp_path: Path) -> None:
    """The same pages as rows and as lines, packed and plain, have the same verdicts."""
    lines = write_lines(tmp_path / "pages.jsonl", PAGES)
    expected = cli("filter", lines).lines
    packed = zstandard.ZstdCompressor().compress(lines.read_bytes())
    (tmp_path / "pages.jsonl.zst").write_bytes(packed)
    for path in (table(tmp_path / "pages.parquet", PAGES), tmp_path / "pages.jsonl.zst"):
        ran = cli("filter", path)
        assert (ran.code, ran.lines) == (0, expected)


def test_verdicts_are_rows_of_a_table(cli: Cli, tmp_path: Path) -> None:
    """The columns are the keys of the lines, and the values the same, with nothing left out."""
    lines = write_lines(tmp_path / "pages.jsonl", PAGES)
    verdicts = tmp_path / "verdicts.parquet"
    assert cli("filter", lines, "-o", verdicts).code == 0
    rows = pq.read_table(verdicts).to_pylist()
    assert [row.pop("duplicate_of_base") for row in rows] == [None] * len(PAGES)
    assert rows == cli("filter", lines).lines


def test_kept_rows_have_all_their_columns(cli: Cli, tmp_path: Path) -> None:
    """Types, metadata, compression and row groups are those of the inputs, of which the first names the metadata."""
    first = table(tmp_path / "a.parquet", PAGES[:4], compression="gzip")
    second = table(tmp_path / "b.parquet", PAGES[4:])
    kept = tmp_path / "kept.parquet"
    assert cli("filter", first, second, "--kept", kept).code == 0
    assert pq.read_table(kept).column("id").to_pylist() == KEPT
    written, read = pq.ParquetFile(kept), pq.ParquetFile(first)
    assert written.schema_arrow.equals(read.schema_arrow, check_metadata=True)
    metadata = written.metadata
    assert [metadata.row_group(one).num_rows for one in range(metadata.num_row_groups)] == [2, 1, 2]
    assert metadata.row_group(0).column(0).compression == "GZIP"
    whole = [row for path in (first, second) for row in pq.read_table(path).to_pylist()]
    assert pq.read_table(kept).to_pylist() == [row for row in whole if row["id"] in KEPT]


def test_inputs_with_other_columns_do_not_fit_in_one_table(cli: Cli, tmp_path: Path) -> None:
    """The error names both, and what to do."""
    first = table(tmp_path / "a.parquet", PAGES[:2])
    second = tmp_path / "b.parquet"
    pq.write_table(pa.Table.from_pylist(PAGES[2:]), second)
    ran = cli("filter", first, second, "--kept", tmp_path / "kept.parquet")
    assert ran.code == 2
    assert f"{second} has other columns than {first}" in ran.err


@pytest.mark.parametrize("name", ["kept.jsonl", "kept.parquet"])
def test_kept_pages_have_the_share_of_their_main_text(cli: Cli, tmp_path: Path, name: str) -> None:
    """So a state that is made of them knows it as the first one did, and the date of each page."""
    site, kept = tmp_path / "site", tmp_path / name
    site.mkdir()
    for number in range(3):
        article = f"<article><h1>Title</h1><p>{page(number)['text']}</p></article>"
        menu = f"<div>{'About us, terms, and how to reach us. ' * number}</div>"
        date = f'<meta property="article:published_time" content="2026-11-2{number}T08:00:00Z">'
        (site / f"{number}.html").write_text(f"<html><head>{date}</head><body>{menu}{article}</body></html>")
    assert cli("filter", site, "--kept", kept, "--state", tmp_path / "first").code == 0
    assert cli("filter", kept, "--state", tmp_path / "second").code == 0

    def known(state: str) -> list[tuple[str, str, int]]:
        members = [member for group in cli("groups", "--state", tmp_path / state).lines for member in group["members"]]
        return [(member["url"], member["date"], member["text_percent"]) for member in members]

    assert known("second") == known("first")
    shares = [share for _, _, share in known("first")]
    assert None not in shares
    assert len(set(shares)) > 1


def test_rows_go_to_no_file_of_another_name(cli: Cli, tmp_path: Path) -> None:
    """A name says what is written; the error says which names there are."""
    ran = cli("filter", table(tmp_path / "a.parquet", PAGES), "--kept", tmp_path / "kept")
    assert ran.code == 2
    assert "name a file that ends with .jsonl, .csv or .parquet" in ran.err
