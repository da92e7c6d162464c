"""Where decided records go, one by one: to lines of JSON, CSV or Parquet, by the name of the file.

Verdicts are written alone or beside the values of the input, which are the keys of a line, the columns of a row, and of
any other record what was extracted.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from dedup_service.core.errors import ConfigurationError
from dedup_service.interfaces.cli.support.csv_tables import CsvFile, first_names, is_csv
from dedup_service.interfaces.cli.support.outputs import OutputFile
from dedup_service.interfaces.cli.support.page_stream import DecidedRecord
from dedup_service.interfaces.cli.support.tables import RowsBeside, RowTable, page_schema, text_schema
from dedup_service.runtime.readers.arrow_rows import require_pyarrow
from dedup_service.runtime.readers.columns import PageJson
from dedup_service.runtime.readers.csv_rows import CsvRow
from dedup_service.runtime.readers.jsonlines import JsonLine, json_of, values_of
from dedup_service.runtime.readers.open import InputKind
from dedup_service.runtime.readers.parquet import ParquetRow, shape_of
from dedup_service.runtime.readers.record import unnamed
from dedup_service.runtime.verdict_json import (
    OF_THE_PAGE,
    OF_THE_VERDICT,
    beside,
    plain_json,
    renamed,
    verdict_dict,
    verdict_line,
    verdict_schema,
)

_PAGE_COLUMNS = tuple(name for name in PageJson.__struct_fields__ if name != "html")
_DISTANCES = ("distance_words", "distance_body")
_VERDICT_COLUMNS = [column for name in OF_THE_VERDICT for column in (_DISTANCES if name == "distance" else (name,))]
"""Of a verdict in CSV, but for `id` and `url`."""


class RecordOutput(Protocol):
    """Where records go."""

    def write(self, decided: Sequence[DecidedRecord]) -> None:
        """Append what is written of records."""
        ...

    def sync(self) -> None:
        """Bring what was written to the disk."""
        ...

    def close(self) -> None:
        """Close the output."""
        ...


class RecordFile:
    """A file of lines or rows, one for each record. value_of: what is written of it, a line or a row by its columns."""

    due: bytes | None = None

    def __init__(self, file: OutputFile | CsvFile | RowTable, value_of: Callable[[DecidedRecord], Any]) -> None:
        self._file, self._value_of = file, value_of
        self.sync, self.close = file.sync, file.close

    def write(self, decided: Sequence[DecidedRecord]) -> None:
        """Append the values of records."""
        self._file.write([self._value_of(one) for one in decided])


def open_verdicts(
    name: str, kind: InputKind | None, sources: Sequence[str], *, with_input: bool, keep: int = 0
) -> RecordOutput:
    """Return the output of verdicts, a file of this name.

    kind: of the inputs; None for several kinds. sources: their names. keep: bytes of an earlier run that stay.
    """
    if is_csv(name):
        own = _own_columns(kind, sources) if with_input else OF_THE_PAGE
        row_of = row_beside if with_input else _row
        return RecordFile(
            CsvFile(name, [*map(renamed, own), *_VERDICT_COLUMNS], keep=keep), lambda one: _flat(row_of(one))
        )
    if not name.endswith(".parquet"):
        line_of = _line_beside if with_input else _line
        return RecordFile(OutputFile(name, keep=keep), line_of)
    require_pyarrow(name)
    if not with_input:
        return RecordFile(RowTable(name, verdict_schema()), _row)
    if kind is InputKind.PARQUET:
        return RowsBeside(name, sources)
    schema = text_schema(map(renamed, first_names(sources))) if kind is InputKind.CSV else page_schema()
    return RecordFile(RowTable(name, schema, also=verdict_schema(is_beside=True)), row_beside)


def open_pages(name: str, *, keep: int = 0) -> RecordFile:
    """Return a file of this name for what was extracted of pages of any kind. keep: as of `open_verdicts`."""
    if name.endswith(".parquet"):
        require_pyarrow(name)
        return RecordFile(RowTable(name, page_schema()), _extracted)
    if is_csv(name):
        return RecordFile(CsvFile(name, _PAGE_COLUMNS, keep=keep), _extracted)
    return RecordFile(OutputFile(name, keep=keep), lambda one: json_of(one.page) + b"\n")


def check_with_input(name: str, kind: InputKind | None) -> None:
    """Raise ConfigurationError for a table of lines with their own keys, which may be others in each line."""
    if kind in {None, InputKind.JSON_LINES} and (name.endswith(".parquet") or is_csv(name)):
        raise ConfigurationError(
            f"--with-input writes lines of JSON with keys of their own to lines, not to a table as {name!r}: name an "
            "output that ends with .jsonl"
        )


def row_beside(one: DecidedRecord) -> dict[str, Any]:
    """Return the values of a record, and its verdict."""
    record: Any = unnamed(one.record)
    is_own = isinstance(record, JsonLine | CsvRow | ParquetRow)
    return beside(record.values() if is_own else values_of(one.page), one.verdict)


def _own_columns(kind: InputKind | None, sources: Sequence[str]) -> Sequence[str]:
    if kind is InputKind.PARQUET:
        names: list[str] = shape_of(sources[0])[0].names
        return names
    return first_names(sources) if kind is InputKind.CSV else _PAGE_COLUMNS


def _row(one: DecidedRecord) -> dict[str, Any]:
    return verdict_dict(one.verdict)


def _flat(row: dict[str, Any]) -> Mapping[str, Any]:
    return row | {f"distance_{channel}": bits for channel, bits in row["distance"].items()}


def _line(one: DecidedRecord) -> bytes:
    return verdict_line(one.verdict)


def _line_beside(one: DecidedRecord) -> bytes:
    return plain_json(row_beside(one)) + b"\n"


def _extracted(one: DecidedRecord) -> Mapping[str, Any]:
    return values_of(one.page)
