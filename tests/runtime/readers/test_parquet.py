"""Rows of Parquet files as pages."""

import itertools
import json
import pickle
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError, RecordError
from dedup_service.core.page import Page
from dedup_service.runtime.readers.columns import Columns
from dedup_service.runtime.readers.jsonlines import JsonLine
from dedup_service.runtime.readers.open import InputOptions, open_source
from dedup_service.runtime.readers.parquet import ParquetRow, read_parquet
from dedup_service.runtime.readers.record import BrokenInput, Extract, Record


def rows(path: Path, columns: str | None = None) -> list[Record]:
    """Return the records of a file."""
    with open_source(str(path), InputOptions(columns=Columns.parse(columns) if columns else None)) as source:
        return [record for record in source.records if record is not None]


def table(path: Path, *values: dict[str, Any], group: int = 1000) -> Path:
    """Write rows."""
    pq.write_table(pa.Table.from_pylist(list(values)), path, row_group_size=group)
    return path


texts = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
pages = st.fixed_dictionaries(
    {"url": st.text(st.characters(exclude_categories=["Cs"]), max_size=20)},
    optional={
        "id": texts,
        "title": texts,
        "text": texts,
        "lang": texts,
        "date": texts,
        "site_name": texts,
        "text_percent": st.none() | st.integers(-9, 120),
        "canonical_url": texts,
        "keywords": st.none() | st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=3),
    },
)


@given(values=st.lists(pages, min_size=1, max_size=5))
def test_a_row_is_the_page_of_its_line(tmp_path_factory: pytest.TempPathFactory, values: list[dict[str, Any]]) -> None:
    """Whatever a line of JSON says, the row says, errors included."""
    path = tmp_path_factory.mktemp("rows") / "pages.parquet"
    schema = pa.schema(
        [(name, pa.string()) for name in ("url", "id", "title", "text", "lang", "date", "site_name", "canonical_url")]
        + [("text_percent", pa.int8()), ("keywords", pa.list_(pa.string()))]
    )
    pq.write_table(pa.Table.from_pylist(values, schema), path)

    def said(record: Record) -> Page | str:
        try:
            return record.page(lambda *_: pytest.fail("no HTML"))
        except RecordError as error:
            return str(error)

    lines = [JsonLine(2, json.dumps(value).encode()) for value in values]
    assert [said(row) for row in rows(path)] == [said(line) for line in lines]


def test_numbers_times_and_bytes_become_text(tmp_path: Path, extract_html: Extract) -> None:
    """An id may be a number and a date a timestamp; HTML in bytes is decoded as browsers do."""
    story = "本市新建的大桥周一上午正式通车，沿线居民出行更加方便，施工历时两年。" * 3
    html = f"<html><body><article><p>{story}</p></article></body></html>".encode("gb18030")
    values = {"url": "https://a.example/", "id": 7, "date": datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "html": html}
    (row,) = rows(table(tmp_path / "a.parquet", values))
    page = row.page(extract_html)
    assert (page.id, page.date, story in page.text) == ("7", "2026-01-02T03:04:00+00:00", True)
    (row,) = rows(table(tmp_path / "b.parquet", {"url": "https://a.example/", "text": "a", "date": date(2026, 1, 2)}))
    assert row.page(extract_html).date == "2026-01-02"


@pytest.mark.parametrize(
    ("value", "percent"),
    [
        (pa.scalar(71, pa.int64()), 71),
        (pa.scalar(0, pa.uint8()), 0),
        (pa.scalar(70.6), 71),  # as pandas has numbers of which some are missing
        (pa.scalar(float("nan")), None),
        (pa.scalar(float("inf")), None),
        (pa.scalar(Decimal("12.0")), 12),
        (pa.scalar(101), None),
        (pa.scalar(-1), None),
        (pa.scalar(None, pa.int8()), None),
    ],
)
def test_a_share_of_main_text_is_a_number(
    tmp_path: Path, extract_html: Extract, value: pa.Scalar, percent: int
) -> None:
    """Of any type; one that no page can have is not known."""
    columns = {"url": ["https://a.example/"], "text": ["a"], "text_percent": pa.array([value.as_py()], value.type)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    (row,) = rows(tmp_path / "a.parquet")
    assert row.page(extract_html).text_percent == percent


def test_bytes_that_are_no_text_and_times_beyond_years_stop_nothing(tmp_path: Path, extract_html: Extract) -> None:
    """A writer that checks nothing may have written them; what can be read is read."""
    raw = pa.array([b"good text", b"bad \xff text"], pa.binary())
    text = pa.StringArray.from_buffers(2, raw.buffers()[1], raw.buffers()[2])
    times = pa.array([2**62, 1_767_323_045_000_000_001], pa.timestamp("ns"))
    urls = pa.array(["https://a.example/1", "https://a.example/2"])
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"url": urls, "text": text, "date": times}), path)
    pages = [row.page(extract_html) for row in rows(path)]
    assert [page.text for page in pages] == ["good text", "bad \N{REPLACEMENT CHARACTER} text"]
    assert str(pages[1].date).startswith("2026-01-02")


LARGE = "x" * 2**19


@pytest.mark.parametrize(
    ("column", "values", "writing"),
    [
        ("text", ["small"] + [LARGE] * 99, {}),
        ("text", [None] * 3 + [LARGE] * 97, {}),
        ("keywords", [[]] * 2 + [[LARGE]] * 98, {}),
        ("more", [{"a": "small"}] + [{"a": LARGE}] * 99, {}),
        ("text", [LARGE] * 100, {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}),
    ],
    ids=["text", "nulls first", "list", "object", "prefixes"],
)
def test_a_large_value_that_is_stored_once_for_many_rows_is_large_in_each(
    tmp_path: Path, column: str, values: list[Any], writing: dict[str, Any]
) -> None:
    """A small file cannot have hundreds of copies of a text in memory; its rows are read a few at once."""
    columns = {"url": [f"https://a.example/{one}" for one in range(100)], "text": ["a"] * 100} | {column: values}
    if "column_encoding" in writing:
        writing = writing | {"column_encoding": dict.fromkeys(columns, "PLAIN") | writing["column_encoding"]}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd", dictionary_pagesize_limit=2**30, **writing)
    assert path.stat().st_size < 20_000
    found = [
        (row.number, row.origin.batch.num_rows, row.origin.batch.nbytes)
        for row in itertools.islice(read_parquet(str(path), "a", whole=True), 12)
        if isinstance(row, ParquetRow) and row.origin
    ]
    assert [number for number, _, _ in found] == list(range(1, 13))
    assert max(rows for _, rows, _ in found) <= 32
    assert max(size for _, _, size in found) <= 2**24 + 2**12


def test_columns_have_other_names(tmp_path: Path, extract_html: Extract) -> None:
    """Fields of objects are named by their paths; only the named columns are read."""
    values = {"content": "a text", "metadata": {"url": "https://a.example/", "size": 3}, "title": "A title", "more": 1}
    (row,) = rows(table(tmp_path / "a.parquet", values), "text=content,url=metadata.url")
    page = row.page(extract_html)
    assert (page.url, page.text, page.title) == ("https://a.example/", "a text", "A title")
    assert b"size" not in row.raw


@pytest.mark.parametrize(
    ("columns", "missing"), [(None, "url"), ("url=address", "text"), ("url=address,text=nothing", "nothing")]
)
def test_a_missing_column_is_named_with_those_that_are_there(tmp_path: Path, columns: str, missing: str) -> None:
    """The error says how to name columns."""
    path = table(tmp_path / "a.parquet", {"address": "https://a.example/", "content": "a text"})
    with pytest.raises(ConfigurationError, match=rf"has no column '{missing}', it has address, content.*--columns"):
        rows(path, columns)


def test_a_damaged_row_group_costs_its_rows(tmp_path: Path, extract_html: Extract) -> None:
    """It is one bad record by its name, and the rows of the others are read with their numbers."""
    values = [{"url": f"https://a.example/{number}", "text": f"text {number} " * 50} for number in range(9)]
    path = table(tmp_path / "a.parquet", *values, group=3)
    column = pq.ParquetFile(path).metadata.row_group(1).column(1)
    content = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    content[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(content)
    found = rows(path)
    assert [record.number for record in found] == [1, 2, 3, 6, 7, 8, 9]
    broken = pickle.loads(pickle.dumps(found[3]))
    assert (broken.place, broken.raw) == ("row group 2", b"")
    with pytest.raises(RecordError, match="cannot be read there"):
        broken.page(extract_html)
    with open_source(str(path), after=broken.mark) as source:
        assert [record.number for record in source.records if record] == [7, 8, 9]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"hello" * 100, b"PAR1" + bytes(50) + b"PAR1"])
def test_a_file_that_is_no_table_is_one_bad_record(tmp_path: Path, content: bytes) -> None:
    """Reading it does not raise."""
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    (broken,) = rows(path)
    assert isinstance(broken, BrokenInput)
    with pytest.raises(RecordError, match="the file cannot be read"):
        broken.unread()


def test_without_pyarrow_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is imported for Parquet alone."""
    path = table(tmp_path / "a.parquet", {"url": "https://a.example/", "text": "a"})
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'twinsieve\[parquet\]'"):
        rows(path)


NO_TEXT = pa.array([b"a\xff", b"ok"], pa.binary()).view(pa.string())
URLS = pa.array(["https://a.example/1", "https://a.example/2"])
TEXTS = pa.array(["one", "two"])


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("column", "values", "named", "read"),
    [
        ("keywords", pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), NO_TEXT), None, ["a\ufffd"]),
        ("title", pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), NO_TEXT), None, "a\ufffd"),
        ("m", pa.StructArray.from_arrays([NO_TEXT, TEXTS], ["a", "b"]), "title=m.a", "a\ufffd"),
        ("m", pa.StructArray.from_arrays([NO_TEXT, TEXTS], ["a", "b"]), "title=m.b", "one"),
        ("date", pa.array([2**62, 1], pa.timestamp("us")), None, "<value out of range: 4611686018427387904>"),
        ("date", pa.array([5, 1], pa.timestamp("us", "Mars/Phobos")), None, "5"),
        ("doc.title", TEXTS, "title=doc.title", "one"),
        ("keywords", pa.array([["a", None], None]), None, ["a"]),
    ],
    ids=["list", "dictionary", "object", "beside it", "far time", "unknown zone", "points", "null in a list"],
)
def test_a_value_costs_no_other_row(
    tmp_path: Path, whole: bool, column: str, values: pa.Array, named: str | None, read: Any
) -> None:
    """Wrong UTF-8 inside of lists and objects, and times that Python lacks, are read, whether rows are kept or not."""
    path = tmp_path / "pages.parquet"
    pq.write_table(pa.table({"url": URLS, "text": TEXTS, column: values}), path)
    columns = Columns.parse(named) if named else None
    found = list(read_parquet(str(path), "pages.parquet", columns, whole=whole))
    assert len(found) == 2
    ours = named.partition("=")[0] if named else column
    assert json.loads(found[0].raw)[ours] == read


def test_two_columns_of_one_name_are_wrong_usage(tmp_path: Path) -> None:
    """Which of them is meant cannot be known."""
    path = tmp_path / "pages.parquet"
    pq.write_table(pa.Table.from_arrays([URLS, TEXTS, TEXTS], ["url", "text", "text"]), path)
    with pytest.raises(ConfigurationError, match="two columns 'text'"):
        rows(path)


def test_a_name_of_a_column_that_is_no_utf_8_is_a_broken_file(tmp_path: Path) -> None:
    """It is one bad record, as any other damage of the footer."""
    path = tmp_path / "pages.parquet"
    pq.write_table(pa.table({"url": URLS, "text": TEXTS, "keywords": TEXTS}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"keywords", b"keyword\xb1"))
    (record,) = rows(path)
    assert isinstance(record, BrokenInput)
    assert record.place == "footer"
