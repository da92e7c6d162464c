"""`twinsieve filter` with CSV, single pages, and verdicts beside what was read."""

import csv
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.running import Cli, article, page, write_lines
from tests.runtime.readers.samples import write_sample

ROWS = [
    {"link": f"https://news.example/{number}", "body": article(text, 60), "score": str(number), "note": note}
    for number, (text, note) in enumerate([(0, "a, b"), (1, 'say "so"'), (0, "two\nlines")])
]
NAMED = ("--columns", "url=link,text=body")
VERDICTS = ["unique", "unique", "duplicate"]


def write_csv(path: Path, rows: Sequence[dict[str, Any]], delimiter: str = ",") -> Path:
    """Write rows, packed if the name says so."""
    opened = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "wt", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def rows_of(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    """Return the rows of a file, packed if its name says so."""
    opened = gzip.open if path.name.endswith(".gz") else open
    with opened(path, "rt", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


@pytest.mark.parametrize(("name", "delimiter"), [("pages.csv", ","), ("pages.tsv", "\t"), ("pages.csv.gz", ",")])
def test_rows_of_csv_have_verdicts(cli: Cli, tmp_path: Path, name: str, delimiter: str) -> None:
    """Kept rows have all their columns, and are read again; a cell may have lines and quotation marks."""
    path, kept = write_csv(tmp_path / name, ROWS, delimiter), tmp_path / f"kept-{name}"
    ran = cli("filter", path, *NAMED, "--kept", kept)
    assert [line["verdict"] for line in ran.lines] == VERDICTS
    assert rows_of(kept, delimiter) == ROWS[:2]
    again = cli("filter", kept, *NAMED)
    assert [line["verdict"] for line in again.lines] == VERDICTS[:2]


@pytest.mark.parametrize(("name", "delimiter"), [("out.csv", ","), ("out.tsv", "\t"), ("out.csv.gz", ",")])
def test_an_output_with_the_name_of_csv_is_csv(cli: Cli, tmp_path: Path, name: str, delimiter: str) -> None:
    """Verdicts and kept pages of lines: the columns are the keys, but for the distance, which has two."""
    path, out, kept = write_lines(tmp_path / "p.jsonl", [page(1), page(1)]), tmp_path / name, tmp_path / f"kept-{name}"
    assert cli("filter", path, "-o", out, "--kept", kept).code == 0
    first, second = rows_of(out, delimiter)
    assert (first["url"], first["verdict"], first["distance_words"]) == ("https://news.example/1", "unique", "")
    assert (second["verdict"], second["duplicate_of"], second["distance_words"]) == ("unchanged", "p1", "0")
    assert [row["text"] for row in rows_of(kept, delimiter)] == [article(1)] * 2


def test_no_output_of_lines_is_called_csv(cli: Cli, tmp_path: Path) -> None:
    """Bad records and pairs are lines of JSON; a name of CSV is refused."""
    path = write_lines(tmp_path / "p.jsonl", [page(1), page(2)])
    for arguments in (("filter", path, "--errors"), ("pairs", path, write_lines(tmp_path / "x.jsonl", []), "-o")):
        ran = cli(*arguments, tmp_path / "out.csv")
        assert (ran.code, "out.csv' would have lines of JSON: give it a name" in ran.err) == (2, True)


@pytest.mark.parametrize("out", ["out.jsonl", "out.csv", "out.parquet"])
@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_verdict_is_written_beside_its_record(cli: Cli, tmp_path: Path, kind: str, out: str) -> None:
    """All keys or columns are there; one with a name of the verdict's begins with input_. Lines fit in no table."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path, target = tmp_path / f"pages.{kind}", tmp_path / out
    if kind == "jsonl":
        write_lines(path, ROWS)
    elif kind == "csv":
        write_csv(path, ROWS)
    else:
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    ran = cli("filter", path, *NAMED, "--with-input", "-o", target)
    if kind == "jsonl" and out != "out.jsonl":
        assert (ran.code, "name an output that ends with .jsonl" in ran.err) == (2, True)
        return
    found: list[dict[str, Any]] = {
        "out.jsonl": lambda: [json.loads(line) for line in target.read_bytes().splitlines()],
        "out.csv": lambda: rows_of(target),
        "out.parquet": lambda: pq.read_table(target).to_pylist(),
    }[out]()
    assert [row["verdict"] for row in found] == VERDICTS
    own = [{"link": row["link"], "body": row["body"], "input_score": row["score"], "note": row["note"]} for row in ROWS]
    assert [{name: row[name] for name in own[0]} for row in found] == own
    assert float(found[2]["score"]) == 1
    assert not {"id", "url"} & set(found[0])


@pytest.mark.parametrize("out", ["out.jsonl", "out.csv", "out.parquet"])
def test_beside_a_verdict_on_html_is_what_was_extracted(cli: Cli, tmp_path: Path, out: str) -> None:
    """As title and text, in each kind of output; the values of Parquet keep their types."""
    target = tmp_path / out
    assert cli("filter", write_sample(tmp_path, "warc.gz", [page(1)]), "--with-input", "-o", target).lines == []
    if out == "out.parquet":
        (row,) = pytest.importorskip("pyarrow.parquet").read_table(target).to_pylist()
    else:
        (row,) = rows_of(target) if out == "out.csv" else map(json.loads, target.read_bytes().splitlines())
    assert (row["verdict"], row["url"]) == ("unique", "https://news.example/1")
    assert article(1)[:50] in row["text"]


def test_an_html_file_is_one_page(cli: Cli, tmp_path: Path) -> None:
    """Its id is its name; several of one name are refused, since their folder tells them apart."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        html = f"<!doctype html><html><body><article><h1>Story</h1><p>{article(1)}</p></article></body></html>"
        (tmp_path / folder / "story.html").write_text(html)
    ran = cli("filter", tmp_path / "a" / "story.html", "--url-prefix", "https://news.example/")
    assert [(line["id"], line["url"], line["verdict"]) for line in ran.lines] == [
        ("story.html", "https://news.example/story.html", "unique")
    ]
    both = cli("filter", tmp_path / "a" / "story.html", tmp_path / "b" / "story.html")
    assert (both.code, "have the same name" in both.err) == (2, True)


def test_a_bad_row_is_reported_and_the_others_are_read(cli: Cli, tmp_path: Path) -> None:
    """Too few cells, no URL, bytes that are no UTF-8: each is named by its line; a run on the header alone is none."""
    path, errors = tmp_path / "pages.csv", tmp_path / "errors.jsonl"
    rows = [
        "url,text,title",
        "https://a.example/1",
        ",a text,",
        "https://a.example/2,a text,caf\xe9",
        '"https://a.example/3",b,c',
    ]
    path.write_bytes("\n".join(rows).encode("latin-1"))
    ran = cli("filter", path, "--errors", errors)
    assert ran.code == 3
    assert [line["url"] for line in ran.lines] == ["https://a.example/3"]
    problems = [json.loads(line) for line in errors.read_bytes().splitlines()]
    assert [one["place"] for one in problems] == ["line 2", "line 3", "line 4"]
    assert [one["error"].partition(": ")[2][:9] for one in problems] == ["it has 1 ", "Object mi", "it is not"]
    path.write_bytes(b"url,text\n")
    assert (cli("filter", path).code, cli("filter", path).out) == (0, "")


def test_columns_that_do_not_fit_are_refused(cli: Cli, tmp_path: Path) -> None:
    """A file without a column for the URL, and two inputs with different columns for one table."""
    other = write_csv(tmp_path / "other.csv", [{"url": "https://a.example/", "text": "a"}])
    assert "has no column 'url', it has link, body" in cli("filter", write_csv(tmp_path / "p.csv", ROWS)).err
    third = write_csv(tmp_path / "third.csv", [{"url": "https://b.example/", "text": "b", "more": "c"}])
    ran = cli("filter", other, third, "--kept", tmp_path / "kept.csv")
    assert (ran.code, "the inputs have different columns" in ran.err) == (2, True)
