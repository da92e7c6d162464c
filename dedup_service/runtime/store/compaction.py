"""Write the live rows of a sparse segment into new files, a few bytes a call.

Rows keep their numbers (`segment.Members`), so nothing outside of the store changes. Rows that were removed since the
last commit are copied, too: after a crash they are live again until the log removes them.

The new files are not part of the store until the manifest names them. It is the last commit's manifest, with this
segment replaced: neither rows nor tables of later calls become part of it.
"""

from collections.abc import Generator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dedup_service.runtime.store.row_reader import RowReader
from dedup_service.runtime.store.segment import Segment
from dedup_service.runtime.store.stored_rows import BYTE_FILES, STORED_ROW

__all__ = ["Compaction"]

_PIECE_ROWS = 2048


class Compaction:
    """The compaction of segment `old`. kept: bool[segment_rows], which rows go into the new files."""

    def __init__(
        self, folder: Path, identity: str, old: Segment, kept: npt.NDArray[np.bool_], reader: RowReader
    ) -> None:
        self.old = old
        self.new = Segment(folder, identity, old.number, old.generation + 1, None)
        self._kept = kept
        self._reader = reader
        self._pieces = self._copy()

    def step(self, budget_bytes: int) -> bool:
        """Copy about `budget_bytes`; return whether the new segment is complete and durable."""
        while budget_bytes > 0:
            copied = next(self._pieces, None)
            if copied is None:
                return True
            budget_bytes -= copied
        return False

    def abort(self) -> None:
        """Delete the new files."""
        self._pieces.close()
        self.new.delete()

    def _copy(self) -> Generator[int, None, None]:
        numbers = np.flatnonzero(self._kept) + self.old.number * len(self._kept)
        for start in range(0, len(numbers), _PIECE_ROWS):
            yield self._copy_rows(numbers[start : start + _PIECE_ROWS])
        self.new.set_members(self._kept)
        self.new.seal()
        for part in self.new.cut():
            part.sync()

    def _copy_rows(self, numbers: npt.NDArray[np.int64]) -> int:
        rows = self._reader.stored(numbers)
        segments = np.full(len(rows), self.old.number, np.int64)
        contents = {}
        for name in BYTE_FILES:
            sizes = rows[f"{name}_bytes"].astype(np.int64)
            if name == "texts" and not self.old.files[name].length:
                sizes[:] = 0
            spans = self._reader.gather(name, segments, rows[f"{name}_at"].astype(np.int64), sizes)
            rows[f"{name}_bytes"] = sizes
            rows[f"{name}_at"] = self.new.files[name].length + spans.starts[:-1]
            contents[name] = spans.data.tobytes()
        self.new.append(rows, contents)
        return len(rows) * STORED_ROW.itemsize + sum(map(len, contents.values()))
