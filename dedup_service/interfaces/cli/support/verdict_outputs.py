"""Where verdicts go: to lines of JSON, CSV or Parquet, by the name of the file; with the values of the input, if asked.

The values of an input are the keys of a line, the columns of a row, and of any other record what was extracted.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dedup_service.core.errors import ConfigurationError
from dedup_service.interfaces.cli.support.csv_tables import PAGE_COLUMNS, CsvFile, first_names, is_csv
from dedup_service.interfaces.cli.support.outputs import OutputFile
from dedup_service.interfaces.cli.support.page_stream import DecidedRecord
from dedup_service.interfaces.cli.support.tables import RowsBeside, ValuesBeside, VerdictTable
from dedup_service.runtime.readers.csv_rows import CsvRow
from dedup_service.runtime.readers.jsonlines import JsonLine, values_of
from dedup_service.runtime.readers.open import InputKind
from dedup_service.runtime.readers.parquet import ParquetRow, shape_of
from dedup_service.runtime.readers.record import unnamed
from dedup_service.runtime.verdict_json import OF_THE_PAGE, beside, plain_json, renamed, verdict_dict, verdict_line

_COLUMNS = (
    *("verdict", "duplicate_of", "duplicate_of_url", "duplicate_of_base", "distance_words", "distance_body", "score"),
    *("reason", "sequence", "space"),
)
"""Of a verdict in CSV, but for `id` and `url`."""


class VerdictOutput(Protocol):
    """Where verdicts go."""

    def write(self, decided: Sequence[DecidedRecord]) -> None:
        """Append verdicts."""
        ...

    def sync(self) -> None:
        """Bring what was written to the disk."""
        ...

    def close(self) -> None:
        """Close the output."""
        ...


class JsonVerdicts:
    """Verdicts as lines of JSON. name: of the file, - for standard output; keep: as of `OutputFile`."""

    def __init__(self, name: str, *, with_input: bool, keep: int = 0) -> None:
        self._file, self._with_input = OutputFile(name, keep=keep), with_input

    def write(self, decided: Sequence[DecidedRecord]) -> None:
        """Append verdicts."""
        self._file.write([_line(one) if self._with_input else verdict_line(one.verdict) for one in decided])

    def sync(self) -> None:
        """Bring what was written to the disk."""
        self._file.sync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class CsvVerdicts:
    """Verdicts as CSV or TSV. own: the columns of the input that stand before them; None for `id` and `url`."""

    def __init__(self, name: str, own: Sequence[str] | None, *, keep: int = 0) -> None:
        self._own = own
        before = OF_THE_PAGE if own is None else map(renamed, own)
        self._file = CsvFile(name, [*before, *_COLUMNS], keep=keep)

    def write(self, decided: Sequence[DecidedRecord]) -> None:
        """Append verdicts."""
        rows = [verdict_dict(one.verdict) if self._own is None else row_beside(one) for one in decided]
        for row in rows:
            row.update({f"distance_{channel}": bits for channel, bits in row["distance"].items()})
        self._file.write(rows)

    def sync(self) -> None:
        """Bring what was written to the disk."""
        self._file.sync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def open_verdicts(
    name: str, kind: InputKind | None, sources: Sequence[str], *, with_input: bool, keep: int = 0
) -> VerdictOutput:
    """Return the output of this name.

    kind: of the inputs; None for several kinds. sources: their names. keep: bytes of an earlier run that stay.
    ConfigurationError for a table of lines with their own keys, which may be others in each line.
    """
    is_table = name.endswith(".parquet")
    if not is_table and not is_csv(name):
        return JsonVerdicts(name, with_input=with_input, keep=keep)
    if not with_input:
        return VerdictTable(name) if is_table else CsvVerdicts(name, None, keep=keep)
    if kind is InputKind.PARQUET:
        return RowsBeside(name, sources) if is_table else CsvVerdicts(name, shape_of(sources[0])[0].names, keep=keep)
    own = first_names(sources) if kind is InputKind.CSV else None
    return ValuesBeside(name, own, row_beside) if is_table else CsvVerdicts(name, own or PAGE_COLUMNS, keep=keep)


def check_with_input(name: str, kind: InputKind | None) -> None:
    """Raise ConfigurationError for a table of lines with their own keys, which may be others in each line."""
    if kind in {None, InputKind.JSON_LINES} and (name.endswith(".parquet") or is_csv(name)):
        raise ConfigurationError(
            f"--with-input writes lines of JSON with keys of their own to lines, not to a table as {name!r}: name an "
            "output that ends with .jsonl"
        )


def row_beside(one: DecidedRecord) -> dict[str, Any]:
    """Return the values of a record, and its verdict."""
    return beside(_own_values(one), one.verdict)


def _line(one: DecidedRecord) -> bytes:
    return plain_json(row_beside(one)) + b"\n"


def _own_values(one: DecidedRecord) -> Mapping[str, Any]:
    record = unnamed(one.record)
    if isinstance(record, JsonLine):
        return record.values()
    if isinstance(record, CsvRow):
        return dict(zip(record.names, record.cells, strict=True))
    if isinstance(record, ParquetRow):
        return record.values()
    return values_of(one.page)
