"""A wrong format is named by what it looks like, once, before anything is decided."""

import gzip
import io
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.readers.csv_rows import CsvRow, read_csv
from dedup_service.runtime.readers.looks import look, refuse_other
from dedup_service.runtime.readers.open import open_source
from dedup_service.runtime.readers.record import Mark

LINE = b'{"url": "https://a.example/", "text": "a text"}\n'
FORMATS = {
    b"url,text\nhttps://a.example/,a\n": "CSV",
    b"id;url;text\n": "CSV",
    b"url\ttext\n": "TSV",
    b"\xef\xbb\xbfurl,text\n": "CSV",
    b'[{"url": "https://a.example/"}]': "an array of JSON",
    b'{\n  "url": "https://a.example/"\n}\n': "JSON over several lines",
    b"<!DOCTYPE html><html>": "HTML",
    b'<?xml version="1.0"?><feed>': "XML",
    b"WARC/1.0\r\n": "a WARC file",
    b"PAR1\x15\x04": "Parquet",
    b"ARROW1\0\0": "Arrow IPC",
    b"PK\x03\x04": "a ZIP archive or a spreadsheet",
    b"%PDF-1.7": "PDF",
    "url".encode("utf-16"): "text in UTF-16",
}


@pytest.mark.parametrize("packed", [bytes, gzip.compress, zstandard.compress])
@pytest.mark.parametrize(("content", "what"), FORMATS.items())
def test_a_file_of_another_format_is_named(tmp_path: Path, content: bytes, what: str, packed: type[bytes]) -> None:
    """Also if it is packed; the message says what to do."""
    path = tmp_path / "pages.jsonl"
    path.write_bytes(packed(content))
    with pytest.raises(ConfigurationError, match=f"looks like {what}, not like JSON lines: "), open_source(str(path)):
        pass


@pytest.mark.parametrize("name", ["pages.csv", "pages.parquet", "pages.warc", "pages.tsv"])
def test_lines_of_json_under_another_name_are_named(tmp_path: Path, name: str) -> None:
    """A name that says another format is wrong, not the lines."""
    (tmp_path / name).write_bytes(LINE)
    with pytest.raises(ConfigurationError, match="looks like JSON lines, not like"), open_source(str(tmp_path / name)):
        pass


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", LINE, b"  " + LINE, b"garbage\n" + LINE, b"[1]\n" + LINE, b"garbage"]
)
def test_lines_with_bad_records_among_them_are_lines(content: bytes) -> None:
    """Where an object is among the first lines, or little is there, bad lines are bad records."""
    refuse_other(content, "pages.jsonl", ("JSON lines",))


def test_a_text_without_any_object_is_refused() -> None:
    """It would be a bad record a line; what is not known is not named."""
    assert look(b"some text\n") is None
    with pytest.raises(ConfigurationError, match="no object of JSON in its first lines"):
        refuse_other(b"some text\n" * 100, "pages.jsonl", ("JSON lines",))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_standard_input_is_unpacked_and_looked_at(pack: type[bytes]) -> None:
    """By its first bytes: packed lines are read, CSV is refused with exit code 2 and one message."""
    command = [sys.executable, "-m", "dedup_service.interfaces.cli", "filter", "-", "--quiet"]
    ran = subprocess.run(command, input=pack(LINE * 3), capture_output=True, check=False)
    assert (ran.returncode, ran.stdout.count(b'"verdict"')) == (0, 3)
    ran = subprocess.run(command, input=pack(b"url,text\n" + b"a,b\n" * 500), capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr.startswith(b"twinsieve: standard input looks like CSV")
    assert ran.stderr.endswith(b"twinsieve filter pages.csv\n")
    assert ran.stderr.count(b"\n") == 1


def csv_rows(content: bytes, after: Mark | None = None) -> list[CsvRow]:
    """Return the rows of a file."""
    return [row for row in read_csv(io.BytesIO(content), "pages.csv", after=after) if isinstance(row, CsvRow)]


def test_rows_are_found_in_their_lines() -> None:
    """A row in quotes goes over several lines; empty lines are none; the place is its first line."""
    content = b'\xef\xbb\xbfurl;text;tags\r\na;"one\n\ntwo ""x""";p;\r\n\r\nb;"x;y";p; q\r\nc;z;p\r\n'
    rows = csv_rows(content.replace(b";p; q", b";'p; q'").replace(b"'", b'"').replace(b";p;\r", b";p\r"))
    assert [(row.place, row.cells[0]) for row in rows] == [("line 2", "a"), ("line 6", "b"), ("line 7", "c")]
    assert rows[0].cells[1] == 'one\n\ntwo "x"'
    page = rows[1].text_page()
    assert page is not None
    assert (page.text, page.tags) == ("x;y", ("p", "q"))


def test_reading_goes_on_behind_a_mark() -> None:
    """Rows have the same numbers, places and values as in one go."""
    content = b"url,text\n" + b"".join(b'"%d","a\nb"\n' % number for number in range(9))
    whole = csv_rows(content)
    assert csv_rows(content, after=whole[4].mark) == whole[5:]
    assert [row.number for row in whole] == list(range(1, 10))


def test_a_quotation_mark_that_is_never_closed_is_one_bad_row() -> None:
    """Reading comes to its end."""
    rows = csv_rows(b'url,text\na,b\nc,"d\n' + b"e,f\n" * 100)
    assert [row.problem is None for row in rows] == [True, False]
