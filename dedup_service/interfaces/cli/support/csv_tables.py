"""CSV and TSV files that a run writes: verdicts, kept pages, rows as they were read.

The first row has the names of the columns. A value that is missing is an empty cell, a list has a `;` between its
values, the distance is in two columns, and any other object is JSON.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from dedup_service.core.errors import ConfigurationError
from dedup_service.interfaces.cli.support.outputs import OutputFile
from dedup_service.interfaces.cli.support.page_stream import DecidedRecord
from dedup_service.runtime.readers.csv_rows import CsvRow, delimiter_of
from dedup_service.runtime.readers.jsonlines import PageJson, values_of
from dedup_service.runtime.readers.open import CSV_ENDINGS, InputKind, names_of_columns
from dedup_service.runtime.readers.record import unnamed
from dedup_service.runtime.verdict_json import plain_json

PAGE_COLUMNS = tuple(name for name in PageJson.__struct_fields__ if name != "html")
"""Of pages that were read from anything but rows."""


def is_csv(name: str) -> bool:
    """Return whether a file of this name is CSV or TSV."""
    return name.endswith(CSV_ENDINGS)


class CsvFile:
    """A CSV or TSV file of these columns. keep: as of `OutputFile`; the names are there already if it is not 0."""

    def __init__(self, name: str, columns: Sequence[str], *, keep: int = 0) -> None:
        self.columns = tuple(columns)
        self._file = OutputFile(name, keep=keep)
        self._delimiter = delimiter_of(name)
        if not keep:
            self.write([dict(zip(columns, columns, strict=True))])

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows, by the names of their columns."""
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self._delimiter, lineterminator="\n")
        writer.writerows([_cell(row.get(name)) for name in self.columns] for row in rows)
        self._file.write([text.getvalue().encode("utf-8", "replace")])

    def sync(self) -> None:
        """Bring what was written to the disk."""
        self._file.sync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class KeptCsv(CsvFile):
    """Kept pages as rows: rows of CSV with all their columns, others with what was extracted of them."""

    due: bytes | None = None

    def __init__(self, name: str, kind: InputKind | None, sources: Sequence[str], *, keep: int = 0) -> None:
        self._own = kind is InputKind.CSV
        super().__init__(name, first_names(sources) if self._own else PAGE_COLUMNS, keep=keep)

    def write(self, rows: Sequence[Mapping[str, Any] | DecidedRecord]) -> None:
        """Append pages. ConfigurationError if an input has other columns."""
        super().write([self._row(one) if isinstance(one, DecidedRecord) else one for one in rows])

    def _row(self, one: DecidedRecord) -> Mapping[str, Any]:
        return cells_of(one, self.columns) if self._own else values_of(one.page)


def first_names(sources: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the first CSV input that has some; ConfigurationError if none has, as a pipe."""
    names = next(filter(None, map(names_of_columns, sources)), None)
    if names is None:
        raise ConfigurationError(
            f"the columns of {sources[0]} are not known before it is read: write it to a file first, or name an output "
            "that ends with .jsonl"
        )
    return names


def cells_of(one: DecidedRecord, columns: Sequence[str]) -> dict[str, str]:
    """Return the cells of a row by their columns; ConfigurationError if it has others."""
    row = unnamed(one.record)
    if not isinstance(row, CsvRow) or row.names != tuple(columns):
        raise ConfigurationError(
            "the inputs have different columns, and one table is written of them: filter them one after the other, "
            "with one --state, or name an output that ends with .jsonl"
        )
    return dict(zip(row.names, row.cells, strict=True))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ";".join(value)
    return value if isinstance(value, str) else plain_json(value).decode()
