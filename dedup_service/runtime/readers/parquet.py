"""Read the rows of a Parquet file as pages, a few hundred at a time.

A row becomes a line of JSON with our keys, and is read as one: what JSON lines promise holds for rows, too. Numbers and
times become text; HTML in bytes is decoded as browsers do. A part of a file that cannot be read (a row group) is one
bad record, and the next one is read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from dedup_service.core.errors import ConfigurationError, RecordError
from dedup_service.core.page import Page
from dedup_service.core.size_limits import MAX_PAGE_SIZE, record_too_large
from dedup_service.core.text.encoding import decode_html
from dedup_service.runtime.addresses import is_address
from dedup_service.runtime.readers.columns import COLUMNS, Columns
from dedup_service.runtime.readers.jsonlines import names_in_json, page_in_json, text_page_in_json
from dedup_service.runtime.readers.record import BrokenInput, Extract, Mark
from dedup_service.runtime.readers.remote import opened

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["ParquetRow", "RowOrigin", "read_parquet", "require_pyarrow", "shape_of"]

ROWS_TOGETHER = 256
BYTES_TOGETHER = 16 << 20
"""Rows are decoded so many at once that they have about as many bytes, as the metadata of their row group says."""

BUFFER_BYTES = 1 << 20
"""Of each column, packed: without it, whole columns of a row group are in memory."""


@dataclass(frozen=True, slots=True, eq=False)
class RowOrigin:
    """The row as it was read. batch: with all columns; at: its place there; group: its row group."""

    batch: "pa.RecordBatch"
    at: int
    group: int


@dataclass(frozen=True, slots=True)
class ParquetRow:
    """One row. raw: its columns that a page has, as JSON. origin: None unless whole rows are read, and in workers."""

    number: int
    raw: bytes
    origin: RowOrigin | None = None

    @property
    def mark(self) -> Mark:
        """The next row."""
        return Mark(self.number, self.number)

    @property
    def place(self) -> str:
        """The number of the row in the file, from 1."""
        return f"row {self.number}"

    @property
    def identity(self) -> bytes:
        """The values of the page: the same row in another file is the same delivery."""
        return self.raw

    def page(self, extract: Extract) -> Page:
        """Return the page of this row; RecordError if it has no URL, a value of a wrong type, or is too large."""
        if (problem := record_too_large(len(self.raw))) is not None:
            raise RecordError(problem)
        return page_in_json(self.raw, extract)

    def text_page(self) -> Page | None:
        """Return the page if the row is short and has a text, None for others; RecordError as `page`."""
        return text_page_in_json(self.raw)

    def unread(self) -> Page:
        """Return the page with `url` and `id` alone; RecordError as `page`."""
        if (problem := record_too_large(len(self.raw))) is not None:
            raise RecordError(problem)
        return names_in_json(self.raw)

    def __reduce__(self) -> tuple[type["ParquetRow"], tuple[int, bytes]]:
        """Leave the origin out: a worker needs the page alone."""
        return ParquetRow, (self.number, self.raw)


def require_pyarrow(name: str) -> None:
    """Raise ConfigurationError if the library is missing. name: what is read or written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            f"{name} is Parquet, and pyarrow is missing: pip install 'twinsieve[parquet]'"
        ) from error


def shape_of(name: str) -> "tuple[pa.Schema, str]":
    """Return the columns of a Parquet file, with its metadata, and how they are compressed.

    ConfigurationError if the file cannot be read.
    """
    require_pyarrow(name)
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with opened(name) if is_address(name) else Path(name).open("rb") as stream:
            file = pq.ParquetFile(stream)
            groups = file.metadata.num_row_groups and file.metadata.num_columns
            return file.schema_arrow, file.metadata.row_group(0).column(0).compression.lower() if groups else "zstd"
    except (pa.ArrowException, OSError) as error:
        raise ConfigurationError(f"the columns of {name} cannot be read: {_one_line(error)}") from error


def read_parquet(
    stream: "BinaryIO | str",
    name: str,
    columns: Columns | None = None,
    *,
    after: Mark | None = None,
    whole: bool = False,
    count: Callable[[int], None] | None = None,
) -> Iterator[ParquetRow | BrokenInput]:
    """Yield the rows of a Parquet file, and a `BrokenInput` for each row group that cannot be read.

    stream: the file, or its path. name: of the input, for messages. after: begin behind that row. whole: read all
    columns, for `ParquetRow.origin`. count: gets the number of rows.
    ConfigurationError if the file has no column for `url`, or none for the content.
    """
    require_pyarrow(name)
    import pyarrow as pa
    import pyarrow.parquet as pq

    done = 0 if after is None else int(after.position)
    try:
        file = pq.ParquetFile(stream, buffer_size=BUFFER_BYTES)
    except (pa.ArrowException, OSError) as error:
        yield BrokenInput("footer", f"the file cannot be read: {_one_line(error)}", Mark(done + 1, done))
        return
    chosen = columns or Columns()
    wanted = _wanted(file.schema_arrow, chosen, name)
    if count is not None:
        count(file.metadata.num_rows)
    first = 0
    for group in range(file.metadata.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if first + rows > done:
            try:
                yield from _rows(file, group, first, max(done - first, 0), wanted, chosen, whole=whole)
            except (pa.ArrowException, OSError, NotImplementedError, ValueError, OverflowError) as error:
                place = f"row group {group + 1}"
                problem = f"the file cannot be read there: {_one_line(error)}"
                yield BrokenInput(place, problem, Mark(first + rows, first + rows))
        first += rows


def _rows(
    file: "pq.ParquetFile", group: int, first: int, skip: int, wanted: list[str], columns: Columns, *, whole: bool
) -> Iterator[ParquetRow]:
    """Yield the rows of a row group. first: rows before it; skip: rows of it to leave out."""
    at, shape = 0, file.metadata.row_group(group)
    together = max(1, min(ROWS_TOGETHER, BYTES_TOGETHER * shape.num_rows // max(shape.total_byte_size, 1)))
    for batch in file.iter_batches(together, row_groups=[group], columns=None if whole else wanted):
        if at + batch.num_rows > skip:
            fields = {name: _values(batch.column(name)) for name in {one.partition(".")[0] for one in wanted}}
            for row in range(max(skip - at, 0), batch.num_rows):
                values = columns.pick({name: values[row] for name, values in fields.items()})
                origin = RowOrigin(batch, row, group) if whole else None
                yield ParquetRow(first + at + row + 1, _json(values), origin)
        at += batch.num_rows


def _wanted(schema: "pa.Schema", columns: Columns, name: str) -> list[str]:
    """Return the columns of a file that are read; those of objects by their paths."""
    found = {ours: theirs for ours in COLUMNS if _has(schema, theirs := columns.of(ours))}
    missing = [ours for ours, theirs in columns.names if ours not in found]
    if missing or "url" not in found or not {"text", "html"} & set(found):
        what = columns.of(missing[0]) if missing else "url" if "url" not in found else "text"
        raise ConfigurationError(
            f"{name} has no column {what!r}, it has {', '.join(schema.names)}: name them with --columns, as "
            "--columns text=content,url=address"
        )
    return list(found.values())


def _has(schema: "pa.Schema", name: str) -> bool:
    """Return whether a schema has a column, or a field of objects at this path."""
    if name in schema.names:
        return True
    import pyarrow as pa

    first, point, rest = name.partition(".")
    if not point or first not in schema.names:
        return False
    kind = schema.field(first).type
    return pa.types.is_struct(kind) and _has(pa.schema(list(kind)), rest)


def _values(column: "pa.Array") -> list[Any]:
    """Return values. Bytes of a text that are no UTF-8 are replaced; times that Python lacks are text."""
    import pyarrow as pa

    try:
        return list(column.to_pylist())
    except ValueError:  # UnicodeDecodeError, too
        if pa.types.is_temporal(column.type):
            return list(column.cast(pa.string()).to_pylist())
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise
    raw = column.cast(pa.large_binary()).to_pylist()
    return [None if value is None else value.decode("utf-8", "replace") for value in raw]


def _json(values: dict[str, Any]) -> bytes:
    """Return the values of a row as a line of JSON, without those that are missing."""
    return msgspec.json.encode({name: _plain(name, value) for name, value in values.items() if value is not None})


def _plain(name: str, value: Any) -> Any:
    """Return a value as a text or a list of texts, if it can be one."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return decode_html(value[: MAX_PAGE_SIZE + 1]).text if name == "html" else value.decode("utf-8", "replace")
    if isinstance(value, list):
        return [_plain("", one) for one in value]
    if isinstance(value, date):  # and datetime
        return value.isoformat()
    return value if isinstance(value, dict) else str(value)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
