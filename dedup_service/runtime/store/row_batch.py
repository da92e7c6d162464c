"""A batch of rows to append, cut where a segment ends or a file has all the bytes that a row can point to."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup_service.core.decision.entry_rows import EntryRows
from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.store.segment import Segment
from dedup_service.runtime.store.stored_rows import BYTE_FILES, STORED_ROW, StoredNames, pack_names

LARGEST_FILE = (1 << 32) - 1
"""Bytes of a file that rows point to."""


class RowBatch:
    """Rows with their bytes. names, texts: of each row, or empty."""

    def __init__(self, entries: EntryRows, names: Sequence[StoredNames], texts: Sequence[bytes]) -> None:
        evidence = np.frombuffer(entries.evidence, np.uint8)
        contents = {
            "evidence": (evidence, entries.rows["evidence_bytes"].astype(np.int64)),
            "names": _joined([pack_names(name) for name in names], len(entries)),
            "texts": _joined(texts, len(entries)),
        }
        self._rows = np.zeros(len(entries), STORED_ROW)
        for field in entries.rows.dtype.names or ():
            self._rows[field] = entries.rows[field]
        for name in ("names", "texts"):
            self._rows[f"{name}_bytes"] = contents[name][1]
        self._bytes = {name: content for name, (content, _) in contents.items()}
        self._starts = {name: np.append(0, np.cumsum(sizes)) for name, (_, sizes) in contents.items()}

    def __len__(self) -> int:
        return len(self._rows)

    def fitting(self, first: int, segment: Segment, segment_rows: int) -> int:
        """Return the row of the batch up to which those from `first` on fit into a segment."""
        stop = min(len(self), first + segment_rows - segment.rows)
        return min([stop, *(_fitting(self._starts[name], first, segment.files[name].length) for name in BYTE_FILES)])

    def part(self, first: int, stop: int, segment: Segment) -> tuple[npt.NDArray[Any], dict[str, bytes]]:
        """Return the rows from `first` to `stop` - 1 as they are in a segment, and their bytes for each file."""
        rows, contents = self._rows[first:stop].copy(), {}
        for name in BYTE_FILES:
            starts = self._starts[name]
            rows[f"{name}_at"] = segment.files[name].length + starts[first:stop] - starts[first]
            contents[name] = self._bytes[name][starts[first] : starts[stop]].tobytes()
        return rows, contents


def _joined(values: Sequence[bytes], rows: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of all values, and their sizes: int64[rows]."""
    if not values:
        return np.zeros(0, np.uint8), np.zeros(rows, np.int64)
    if len(values) != rows:
        raise ConfigurationError(f"{rows} rows have {len(values)} names or texts: give all of them, or none")
    return np.frombuffer(b"".join(values), np.uint8), np.array([len(value) for value in values], np.int64)


def _fitting(starts: npt.NDArray[np.int64], first: int, length: int) -> int:
    """Return the row up to which bytes fit into a file that has `length` bytes."""
    return int(starts.searchsorted(starts[first] + LARGEST_FILE - length, side="right")) - 1
