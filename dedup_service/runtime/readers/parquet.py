"""Read the rows of a Parquet file as pages, a few hundred at a time.

A row becomes a line of JSON with our keys, and is read as one: what JSON lines promise holds for rows, too. Numbers and
times become text; HTML in bytes is decoded as browsers do. A part of a file that cannot be read (a row group) is one
bad record, and the next one is read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from dedup_service.core.errors import ConfigurationError, RecordError, TwinsieveError
from dedup_service.core.size_limits import record_too_large
from dedup_service.runtime.addresses import is_address
from dedup_service.runtime.readers.arrow_rows import (
    column_at,
    column_values,
    json_of_row,
    require_pyarrow,
    wanted_columns,
)
from dedup_service.runtime.readers.columns import Columns
from dedup_service.runtime.readers.jsonlines import JsonRecord
from dedup_service.runtime.readers.record import BrokenInput, Mark
from dedup_service.runtime.readers.remote import opened

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROWS_TOGETHER = 256
BYTES_TOGETHER = 16 << 20
"""Rows are decoded so many at once that they have about as many bytes, as the metadata of their row group says.

A large value that is stored once for many rows counts for each of them (`_repeatable_bytes`).
"""

BUFFER_BYTES = 1 << 20
"""Of each column, packed: without it, whole columns of a row group are in memory."""


@dataclass(frozen=True, slots=True, eq=False)
class RowOrigin:
    """The row as it was read. batch: with all columns; at: its place there; group: its row group."""

    batch: "pa.RecordBatch"
    at: int
    group: int


@dataclass(frozen=True, slots=True)
class ParquetRow(JsonRecord):
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

    def values(self) -> dict[str, Any]:
        """Return all values of this row, which was read with all its columns."""
        assert self.origin is not None
        rows = self.origin.batch.slice(self.origin.at, 1)
        return {name: column_values(column)[0] for name, column in zip(rows.schema.names, rows.columns, strict=True)}

    def _json(self) -> bytes:
        if (problem := record_too_large(len(self.raw))) is not None:
            raise RecordError(problem)
        return self.raw

    def __reduce__(self) -> tuple[type["ParquetRow"], tuple[int, bytes]]:
        """Leave the origin out: a worker needs the page alone."""
        return ParquetRow, (self.number, self.raw)


def shape_of(name: str) -> "tuple[pa.Schema, str]":
    """Return the columns of a Parquet file, with its metadata, and how they are compressed.

    ConfigurationError if the file cannot be read.
    """
    require_pyarrow(name)
    import pyarrow.parquet as pq

    try:
        with opened(name) if is_address(name) else Path(name).open("rb") as stream:
            file = pq.ParquetFile(stream)
            _ = file.schema_arrow.names  # an error of UTF-8, if they are none
            groups = file.metadata.num_row_groups and file.metadata.num_columns
            packed = file.metadata.row_group(0).column(0).compression.lower() if groups else "zstd"
            return file.schema_arrow, "none" if packed == "uncompressed" else packed
    except TwinsieveError:
        raise
    except Exception as error:
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
    import pyarrow.parquet as pq

    done = 0 if after is None else int(after.position)
    try:
        file = pq.ParquetFile(stream, buffer_size=BUFFER_BYTES)
        wanted = wanted_columns(file.schema_arrow, columns or Columns(), name)
    except TwinsieveError:
        raise
    except Exception as error:  # also a name of a column that is no UTF-8
        yield BrokenInput("footer", f"the file cannot be read: {_one_line(error)}", Mark(done + 1, done, last=True))
        return
    if count is not None:
        count(file.metadata.num_rows)
    first = 0
    for group in range(file.metadata.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if first + rows > done:
            try:
                yield from _rows(file, stream, group, first, max(done - first, 0), wanted, whole=whole)
            except TwinsieveError:
                raise
            except Exception as error:  # whatever a hostile file makes of pyarrow
                place = f"row group {group + 1}"
                problem = f"the file cannot be read there: {_one_line(error)}"
                yield BrokenInput(place, problem, Mark(first + rows, first + rows))
        first += rows


def _rows(
    file: "pq.ParquetFile",
    stream: "BinaryIO | str",
    group: int,
    first: int,
    skip: int,
    wanted: dict[str, str],
    *,
    whole: bool,
) -> Iterator[ParquetRow]:
    """Yield the rows of a row group. first: rows before it; skip: rows of it to leave out."""
    at, shape = 0, file.metadata.row_group(group)
    columns = None if whole else list(dict.fromkeys(wanted.values()))
    mean_bytes = shape.total_byte_size // max(shape.num_rows, 1)
    row_bytes = max(mean_bytes, _repeatable_bytes(file, stream, group, columns), 1)
    together = max(1, min(ROWS_TOGETHER, BYTES_TOGETHER // row_bytes))
    for batch in file.iter_batches(together, row_groups=[group], columns=columns):
        if at + batch.num_rows > skip:
            fields = {ours: column_values(column_at(batch, theirs)) for ours, theirs in wanted.items()}
            for row in range(max(skip - at, 0), batch.num_rows):
                values = {ours: values[row] for ours, values in fields.items()}
                origin = RowOrigin(batch, row, group) if whole else None
                yield ParquetRow(first + at + row + 1, json_of_row(values), origin)
        at += batch.num_rows


def _repeatable_bytes(file: "pq.ParquetFile", stream: "BinaryIO | str", group: int, columns: list[str] | None) -> int:
    """Return how large a row can be of values that a row group stores once, for as many rows as it likes.

    These are values of dictionaries, and those of which is stored how they differ from the value before. stream: of
    the file. columns: that are read; None: all.
    """
    import pyarrow.parquet as pq

    shape, found, dictionaries = file.metadata.row_group(group), 0, []
    for at in range(shape.num_columns):
        chunk = shape.column(at)
        path, stored = chunk.path_in_schema, chunk.total_uncompressed_size
        is_read = columns is None or any(path == name or path.startswith(f"{name}.") for name in columns)
        if not is_read or stored * min(shape.num_rows, ROWS_TOGETHER) <= BYTES_TOGETHER:
            continue
        if "DELTA_BYTE_ARRAY" in chunk.encodings:
            found += stored
        elif chunk.physical_type == "BYTE_ARRAY" and any(name.endswith("_DICTIONARY") for name in chunk.encodings):
            dictionaries.append(path)
    if dictionaries:  # as such: a value is in memory once, and the first rows with values have all that there are
        reader = pq.ParquetFile(stream, metadata=file.metadata, read_dictionary=dictionaries, buffer_size=BUFFER_BYTES)
        for path in dictionaries:
            batches = reader.iter_batches(ROWS_TOGETHER, row_groups=[group], columns=[path])
            sizes = (_largest_in_dictionaries(batch.column(0)) for batch in batches)
            found += next(filter(None, sizes), 0)
    return found


def _largest_in_dictionaries(column: "pa.Array") -> int:
    """Return the bytes of the largest value of the dictionaries in a column of texts, lists or objects; 0 for none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.DictionaryArray):
        return pc.max(pc.binary_length(column.dictionary)).as_py() or 0
    if isinstance(column, pa.StructArray):
        return max(map(_largest_in_dictionaries, column.flatten()), default=0)
    if isinstance(column, pa.MapArray):
        return max(_largest_in_dictionaries(column.keys), _largest_in_dictionaries(column.items))
    if isinstance(column, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        return _largest_in_dictionaries(column.values)
    return 0


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
