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
from dedup_service.runtime.readers.open import CSV_ENDINGS, names_of_columns
from dedup_service.runtime.readers.record import unnamed
from dedup_service.runtime.verdict_json import plain_json


def is_csv(name: str) -> bool:
    """Return whether a file of this name is CSV or TSV."""
    return name.endswith(CSV_ENDINGS)


class CsvFile:
    """A CSV or TSV file of these columns. keep: as of `OutputFile`; the names are there already if it is not 0."""

    def __init__(self, name: str, columns: Sequence[str], *, keep: int = 0) -> None:
        self.columns = tuple(columns)
        self._file = OutputFile(name, keep=keep, csv=True)
        self.sync, self.close = self._file.sync, self._file.close
        self._delimiter = delimiter_of(name)
        if not keep:
            self.write([dict(zip(columns, columns, strict=True))])

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows, by the names of their columns."""
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self._delimiter, lineterminator="\n")
        writer.writerows([_cell(row.get(name)) for name in self.columns] for row in rows)
        self._file.write([text.getvalue().encode("utf-8", "replace")])


def first_names(sources: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the first CSV input that has some; ConfigurationError if none has, as a pipe."""
    names = next(filter(None, map(names_of_columns, sources)), None)
    if names is None:
        raise ConfigurationError(
            f"the columns of {sources[0]} are not known before it is read: write it to a file first, or name an output "
            "that ends with .jsonl"
        )
    return names


class KeptCsv(CsvFile):
    """Kept rows of CSV with all their columns. sources: the inputs, of which all must have the same ones."""

    due: bytes | None = None

    def __init__(self, name: str, sources: Sequence[str], *, keep: int = 0) -> None:
        super().__init__(name, first_names(sources), keep=keep)

    def write(self, rows: Sequence[Mapping[str, Any] | DecidedRecord]) -> None:
        """Append rows. ConfigurationError if an input has other columns."""
        super().write([self._cells_of(one) if isinstance(one, DecidedRecord) else one for one in rows])

    def _cells_of(self, one: DecidedRecord) -> dict[str, str]:
        row = unnamed(one.record)
        if not isinstance(row, CsvRow) or row.names != self.columns:
            raise ConfigurationError(
                "the inputs have different columns, and one table is written of them: filter them one after the other, "
                "with one --state, or name an output that ends with .jsonl"
            )
        return row.values()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ";".join(value)
    return value if isinstance(value, str) else plain_json(value).decode()
