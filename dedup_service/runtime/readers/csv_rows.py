"""Read the rows of a CSV or TSV file as pages: its first row has the names of the columns.

A row becomes a line of JSON with our keys, and is read as one. An empty cell is a value that is missing; `keywords`,
`tags` and `references` have a `;` between their values. Cells of `.tsv` are separated by tabs, those of `.csv` by
commas, or by semicolons if the first row has no comma. A row may go over several lines in quotes.
"""

import csv
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

import msgspec

from dedup_service.core.errors import RecordError
from dedup_service.core.size_limits import MAX_RECORD_BYTES, line_too_long
from dedup_service.core.text.encoding import without_surrogates
from dedup_service.runtime.readers.columns import COLUMNS_OPTION, Columns
from dedup_service.runtime.readers.jsonlines import (
    DAMAGE,
    Check,
    InputLine,
    JsonRecord,
    broken_at,
    read_lines,
)
from dedup_service.runtime.readers.pipe import ReadingStopped, Wait
from dedup_service.runtime.readers.record import BrokenInput, Mark

MAX_CELL_CHARS = 1 << 25
"""Of a cell. A quotation mark that is never closed makes a cell of all that is left of a file."""

_LISTS = ("keywords", "tags", "references")


@dataclass(frozen=True, slots=True)
class CsvRow(JsonRecord):
    """One row. number: from 1, without the names. line, end: where it begins, and the byte behind it, unpacked.

    json: its values that a page has. names, cells: as they were read; empty in workers. problem: why it is none.
    """

    number: int
    line: int
    end: int
    raw: bytes
    json: bytes
    names: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def mark(self) -> Mark:
        """The next row."""
        return Mark(self.number, self.end)

    @property
    def place(self) -> str:
        """The number of its first line, as editors count."""
        return f"line {self.line}"

    @property
    def identity(self) -> bytes:
        """The values of the page."""
        return self.json

    def values(self) -> dict[str, str]:
        """Return the cells of this row, which was read well, by their columns."""
        return dict(zip(self.names, self.cells, strict=True))

    def _json(self) -> bytes:
        if self.problem is not None:
            raise RecordError(self.problem)
        return self.json

    def __reduce__(self) -> tuple[type["CsvRow"], tuple[Any, ...]]:
        """Leave out what a worker does not need."""
        return CsvRow, (self.number, self.line, self.end, b"", self.json, (), (), self.problem)


class _Rows:
    """Rows as lists of cells, with the lines that each was read of."""

    def __init__(self, stream: BinaryIO, wait: Wait | None, delimiter: str, check: Check | None = None) -> None:
        csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL_CHARS))
        self._lines = read_lines(stream, MAX_RECORD_BYTES, wait, check=check)
        self._waiting: deque[InputLine] = deque()
        self.taken: list[InputLine] = []
        self._tabs = delimiter == "\t"
        self._reader: Any = None
        self.last = InputLine(0, b"")

    def __iter__(self) -> Iterator[list[str] | str | None]:
        """Yield rows; a text says why one cannot be read; None if the next one has not arrived yet."""
        for line in self._lines:
            if line is None:
                yield None
                continue
            self._waiting.append(line)
            self.taken = []
            if self._reader is None:
                self._reader = csv.reader(self._texts(), delimiter=self._delimiter(line), strict=True)
            try:
                cells: list[str] = next(self._reader)
            except csv.Error as error:
                yield str(error)
                continue
            if any(one.cut for one in self.taken):
                yield line_too_long(MAX_RECORD_BYTES)
            elif cells:
                yield cells

    def _texts(self) -> Iterator[str]:
        while True:
            line = self._waiting.popleft() if self._waiting else next(filter(None, self._lines), None)
            if line is None:
                return
            self.last = line
            self.taken.append(line)
            yield line.raw.decode("utf-8-sig" if line.number == 1 else "utf-8", "surrogateescape")

    def _delimiter(self, first: InputLine) -> str:
        if self._tabs:
            return "\t"
        return ";" if b";" in first.raw and b"," not in first.raw else ","


def delimiter_of(name: str) -> str:
    r"""Return what separates the cells of a file of this name.

    >>> delimiter_of("a.csv"), delimiter_of("a.tsv.gz")
    (',', '\t')
    """
    return "\t" if name.removesuffix(".gz").removesuffix(".zst").endswith(".tsv") else ","


def read_names(stream: BinaryIO, delimiter: str) -> tuple[str, ...]:
    """Return the names of the columns; none for an empty file, or one that cannot be read."""
    with suppress(*DAMAGE):
        first = next(filter(None, _Rows(stream, None, delimiter)), [])
        return () if isinstance(first, str) else tuple(first)
    return ()


def read_csv(
    stream: BinaryIO,
    name: str,
    wait: Wait | None = None,
    *,
    delimiter: str = ",",
    columns: Columns | None = None,
    after: Mark | None = None,
    check: Check | None = None,
) -> Iterator[CsvRow | BrokenInput | None]:
    """Yield the rows of a stream; yield None when the next one has not arrived yet, as `read_json_lines` does.

    name: of the input, for messages. after: begin behind that row. check: see `read_lines`.
    ConfigurationError if there is no column for `url`, or none for the content.
    """
    rows = _Rows(stream, wait, delimiter, check)
    names: tuple[str, ...] = ()
    wanted: dict[str, int] = {}
    number = 0
    try:
        for cells in rows:
            if cells is None:
                yield None
            elif not names:
                names = (cells,) if isinstance(cells, str) else tuple(cells)
                found = (columns or Columns()).among(names, name, COLUMNS_OPTION)
                wanted = {ours: names.index(theirs) for ours, theirs in found.items()}
            else:
                number += 1
                if after is None or number > after.number:
                    yield _row(number, rows, names, cells, wanted)
    except ReadingStopped:
        yield None
    except DAMAGE as error:
        yield broken_at(rows.last.number + 1, error, Mark(number + 1, rows.last.end, last=True))


def _row(number: int, rows: _Rows, names: tuple[str, ...], cells: list[str] | str, wanted: dict[str, int]) -> CsvRow:
    raw, line = b"".join(one.raw for one in rows.taken), rows.taken[0].number if rows.taken else rows.last.number
    problem, json = None, b""
    if isinstance(cells, str):
        problem = f"not a row: {cells}"
    elif len(cells) != len(names):
        problem = f"not a row: it has {len(cells)} cells, the first row has {len(names)}"
    elif any(without_surrogates(cell) != cell for cell in cells):
        problem = "not a row: it is not UTF-8"
    else:
        json = msgspec.json.encode({ours: _value(ours, cells[at]) for ours, at in wanted.items() if cells[at]})
    return CsvRow(number, line, rows.last.end, raw, json, names, () if problem else tuple(cells), problem)


def _value(ours: str, cell: str) -> str | float | list[str]:
    if ours in _LISTS:
        return [one.strip() for one in cell.split(";") if one.strip()]
    if ours == "text_percent":
        with suppress(ValueError):
            return float(cell)
    return cell
