"""Data frames as pages: what speaks the Arrow interchange (pandas, polars, DuckDB, pyarrow) has its rows read here.

A row is read as a line of JSON with our keys is (`readers.arrow_rows`). All rows are looked at before the first one
becomes a page, so that a wrong one costs nothing but the call.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.extraction import Extraction, extract
from dedup_service.core.page import Page
from dedup_service.runtime.readers.arrow_rows import (
    column_at,
    column_values,
    plain_row,
    wanted_columns,
)
from dedup_service.runtime.readers.columns import COLUMNS, Columns, PageJson
from dedup_service.runtime.readers.jsonlines import line_of, page_of

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_TOGETHER = 512
"""Rows that are pages at once."""

_HOW = 'check_frame(frame, text="content", url="address")'


def pages_of(frame: object, columns: Mapping[str, str]) -> Iterator[list[Page]]:
    """Yield the pages of a frame, in the order of its rows, so many at a time. columns: its names, by ours.

    RecordError names the row, from 0, and the field that is wrong, before the first page is yielded.
    ConfigurationError if the frame does not speak Arrow, or it lacks a column.
    """
    unknown = next((ours for ours in columns if ours not in COLUMNS), None)
    if unknown is not None:
        raise ConfigurationError(f"{unknown!r} is no value of a page: name one of {', '.join(COLUMNS)}")
    table = _table(frame)
    wanted = wanted_columns(table.schema, Columns(tuple(columns.items())), "the frame", _HOW)
    for _ in _lines(table, wanted):
        pass
    for lines in _lines(table, wanted):
        yield [page_of(line, extracted) for line in lines]


def extracted(html: bytes | str, declared_encoding: str | None) -> Extraction:
    """Extract a page in this process."""
    return extract(html, declared_encoding=declared_encoding)


def _table(frame: object) -> "pa.Table":
    import pyarrow as pa

    if not hasattr(frame, "__arrow_c_stream__"):
        raise ConfigurationError(
            f"{type(frame).__name__} does not speak the Arrow interchange (`__arrow_c_stream__`): give a data frame of "
            "pandas 2.2 or newer, polars, DuckDB or pyarrow; for a list of dicts, call check_many"
        )
    try:
        return pa.RecordBatchReader.from_stream(frame).read_all()
    except pa.ArrowException as error:  # pandas takes a column of several types as it is
        raise ConfigurationError(f"the frame cannot be read: {'; '.join(map(str, error.args))}") from error


def _lines(table: "pa.Table", wanted: Mapping[str, str]) -> Iterator[list[PageJson]]:
    first = 0
    for batch in table.to_batches(ROWS_TOGETHER):
        fields = {ours: column_values(column_at(batch, theirs)) for ours, theirs in wanted.items()}
        rows = (dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True))
        yield [line_of(plain_row(values), f"row {number}") for number, values in enumerate(rows, first)]
        first += batch.num_rows
