"""Parquet files that a run writes: verdicts, pages that were kept, rows as they were read.

A file is complete once it is closed, also after an interruption or an error. One of a process that was killed has no
footer, and is refused by its readers; run the same command again.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any, Self

from dedup_service.core.errors import ConfigurationError, TwinsieveError
from dedup_service.interfaces.cli.support.outputs import OutputError
from dedup_service.interfaces.cli.support.page_stream import DecidedRecord
from dedup_service.runtime.addresses import AddressUnreachableError
from dedup_service.runtime.readers.arrow_rows import require_pyarrow
from dedup_service.runtime.readers.parquet import ParquetRow, RowOrigin, shape_of
from dedup_service.runtime.readers.record import NamedRecord, Record
from dedup_service.runtime.verdict_json import renamed, verdict_rows, verdict_schema

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 1 << 16
GROUP_BYTES = 64 << 20
"""A row group ends at one of them: it is in memory until then."""

COMPRESSION = "zstd"


class TableFile:
    """A Parquet file of these columns. compression: as pyarrow names it; also: further columns behind them."""

    def __init__(
        self, name: str, schema: "pa.Schema", compression: str = COMPRESSION, also: "pa.Schema | None" = None
    ) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._name, self.schema = name, schema if also is None else pa.schema([*schema, *also])
        self._parts: list[Any] = []
        self._rows = self._bytes = 0
        try:
            self._sink = pa.OSFile(name, "wb")  # pyarrow would take some names for addresses
            self._writer = pq.ParquetWriter(self._sink, self.schema, compression=compression)
        except OSError as error:
            raise ConfigurationError(f"cannot write {name!r}: {error.strerror or error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sync(self) -> None:
        """Do nothing: a table that is not closed is written anew."""

    def add(self, batch: "pa.RecordBatch") -> None:
        """Append rows; OutputError if the disk does not take them."""
        self._parts.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self.end_group()

    def end_group(self) -> None:
        """Write the rows so far as a row group, if there are any."""
        import pyarrow as pa

        if self._rows:
            table = pa.Table.from_batches(self._parts, self.schema)
            self._parts, self._rows, self._bytes = [], 0, 0
            with self._errors():
                self._writer.write_table(table, row_group_size=max(table.num_rows, 1))

    def close(self) -> None:
        """Write what is left, and the footer."""
        self.end_group()
        with self._errors():
            self._writer.close()
            self._sink.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutputError(
                f"{self._name}: {error.strerror or error}; the file is not complete. Make room and run the same "
                "command again"
            ) from error


class RowTable(TableFile):
    """A Parquet file that takes rows by their columns."""

    def write(self, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows by their columns; a value that is missing is null. OutputError as `add`."""
        import pyarrow as pa

        self.add(pa.RecordBatch.from_pylist(rows, self.schema))


class RowsBeside(TableFile):
    """Verdicts as rows, beside all columns of the rows of Parquet that they are on; these have the types of the inputs.

    sources: the inputs, of which all must have the same columns.
    """

    def __init__(self, name: str, sources: Sequence[str]) -> None:
        require_pyarrow(name)
        import pyarrow as pa

        self._first, (self._own, compression) = _first_shape(sources)
        own = pa.schema([field.with_name(renamed(field.name)) for field in self._own])
        super().__init__(name, own, compression, also=verdict_schema(is_beside=True))

    def write(self, decided: Sequence[DecidedRecord]) -> None:
        """Append verdicts. ConfigurationError if an input has other columns."""
        import pyarrow as pa

        said = verdict_rows([one.verdict for one in decided], verdict_schema(is_beside=True))
        first = 0
        for source, origins in _by_batch(decided):
            _check_columns(origins[0], self._own, source, self._first)
            own, verdicts = _taken(origins, self._own), said.slice(first, len(origins))
            self.add(pa.RecordBatch.from_arrays([*own.columns, *verdicts.columns], schema=self.schema))
            first += len(origins)


def text_schema(names: Iterable[str]) -> "pa.Schema":
    """Return columns of texts."""
    import pyarrow as pa

    return pa.schema([(name, pa.string()) for name in names])


def page_schema() -> "pa.Schema":
    """Return the columns of pages of any kind."""
    import pyarrow as pa

    names = ("id", "url", "title", "text", "lang", "date", "site_name", "canonical_url")
    lists = ("keywords", "tags", "references")
    columns = [(key, pa.string()) for key in names] + [("text_percent", pa.int8())]
    return pa.schema(columns + [(key, pa.list_(pa.string())) for key in lists])


class KeptRows(TableFile):
    """Kept rows of Parquet files, with all their columns: types, metadata and row groups are those of the inputs.

    sources: the inputs, of which all must have the same columns; the metadata is that of the first.
    """

    due: bytes | None = None

    def __init__(self, name: str, sources: Sequence[str]) -> None:
        require_pyarrow(name)
        self._first, (schema, compression) = _first_shape(sources)
        super().__init__(name, schema, compression)
        self._current = "", -1

    def write(self, kept: Sequence[DecidedRecord]) -> None:
        """Append the rows of pages. ConfigurationError if an input has other columns."""
        for source, origins in _by_batch(kept):
            self._begin(source, origins[0])
            self.add(_taken(origins, self.schema))

    def _begin(self, source: str, origin: RowOrigin) -> None:
        """End the row group if this row is of another one."""
        _check_columns(origin, self.schema, source, self._first)
        if (source, origin.group) != self._current:
            self.end_group()
            self._current = source, origin.group


def _first_shape(sources: Sequence[str]) -> "tuple[str, tuple[pa.Schema, str]]":
    """Return the first input that can be read, and its shape. ConfigurationError if there is none."""
    problem: TwinsieveError | None = None
    for source in sources:
        try:
            return source, shape_of(source)
        except (ConfigurationError, AddressUnreachableError) as error:  # then it is a bad record
            problem = problem or error
    assert problem is not None
    raise problem


def _origin_of(record: Record) -> tuple[str, RowOrigin]:
    """Return the input of a row, "" for the only one, and the row as it was read."""
    source, row = (record.source, record.record) if isinstance(record, NamedRecord) else ("", record)
    if not isinstance(row, ParquetRow) or row.origin is None:
        raise AssertionError("a row was read without all its columns")
    return source, row.origin


def _by_batch(decided: Sequence[DecidedRecord]) -> Iterator[tuple[str, list[RowOrigin]]]:
    """Yield the rows that follow each other in a batch of an input, with its name."""
    rows = [_origin_of(one.record) for one in decided]
    for _, same in groupby(rows, key=lambda row: id(row[1].batch)):
        group = list(same)
        yield group[0][0], [origin for _, origin in group]


def _check_columns(origin: RowOrigin, schema: "pa.Schema", source: str, first: str) -> None:
    if not origin.batch.schema.equals(schema, check_metadata=False):
        raise ConfigurationError(
            f"{source} has other columns than {first}, and the rows of all inputs are written into one table: filter "
            "them one after the other, with one --state, or name a file that ends with .jsonl"
        )


def _taken(origins: Sequence[RowOrigin], schema: "pa.Schema") -> "pa.RecordBatch":
    """Return rows of one batch."""
    import pyarrow as pa

    rows = [origin.at for origin in origins]
    return pa.RecordBatch.from_arrays([_values(column, rows) for column in origins[0].batch.columns], schema=schema)


def _values(column: "pa.Array", rows: Sequence[int]) -> "pa.Array":
    """Return values of a column."""
    import pyarrow as pa

    try:
        return column.take(pa.array(rows, pa.int64()))
    except NotImplementedError:  # of views of texts, for instance
        return pa.concat_arrays([column.slice(row, 1) for row in rows])
