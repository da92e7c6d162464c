"""Write the live rows of a sparse segment into new files, in a thread, some at a time.

Rows keep their numbers (`segment.Members`), so nothing outside of the store changes. Rows that were removed since the
last commit are copied, too: after a crash they are live again until the log removes them.

Each call of `step` lets the thread copy about as much as it says, and the last one make all files durable. So the
caller waits neither for old rows, which are seldom in the page cache, nor for the disk to take the new ones. The new
files are not part of the store until a manifest names them; what a crash leaves is deleted when the store is opened.

Invariant: until `abort` has returned, nobody else changes, unmaps or closes the old segment. The thread locates its
files by itself, so the store may forget that segment before.
"""

from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dedup_service.runtime.store.address_table import AddressTable
from dedup_service.runtime.store.manifest import sync_directory
from dedup_service.runtime.store.row_reader import RowReader
from dedup_service.runtime.store.segment import Segment
from dedup_service.runtime.store.stored_rows import BYTE_FILES, STORED_ROW

_PIECE_ROWS = 2048


class Compaction:
    """The compaction of segment `old`. kept: bool[segment_rows], which rows go into the new files."""

    def __init__(self, folder: Path, identity: str, old: Segment, kept: npt.NDArray[np.bool_]) -> None:
        self.old = old
        self.new = Segment(folder, identity, old.number, old.generation + 1, None)
        """The copy. It belongs to the thread until `step` has returned True."""
        self._folder = folder
        self._kept = kept
        table = AddressTable()
        table.set(old)
        self._reader = RowReader({old.number: old}, table, len(kept))
        self._pieces = self._copy()
        self._thread = ThreadPoolExecutor(1, "compaction")
        self._work: Future[bool] | None = None

    def step(self, budget_bytes: int, *, wait: bool) -> bool:
        """Copy about `budget_bytes`; return whether the new segment is complete and durable.

        Without `wait`, the thread does it meanwhile; nothing more is begun before it is done. Raises what the thread
        raised: StoreFullError if the disk does not take the copy, StoreDamagedError if a row is altered.
        """
        if self._work is not None:
            if not wait and not self._work.done():
                return False
            if self._work.result():
                return self._end()
        self._work = self._thread.submit(self._do, budget_bytes)
        return wait and self._work.result() and self._end()

    def abort(self) -> None:
        """Wait for the thread, and delete the new files."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._pieces.close()
        self.new.delete()

    def _end(self) -> bool:
        self._thread.shutdown(wait=False)
        return True

    def _do(self, budget_bytes: int) -> bool:
        while budget_bytes > 0:
            copied = next(self._pieces, None)
            if copied is None:
                return True
            budget_bytes -= copied
        return False

    def _copy(self) -> Generator[int, None, None]:
        numbers = np.flatnonzero(self._kept) + self.old.number * len(self._kept)
        for start in range(0, len(numbers), _PIECE_ROWS):
            yield self._copy_rows(numbers[start : start + _PIECE_ROWS])
        self.new.set_members(self._kept)
        self.new.seal()
        for part in self.new.cut():
            part.sync()
        sync_directory(self._folder)

    def _copy_rows(self, numbers: npt.NDArray[np.int64]) -> int:
        rows = self._reader.stored(numbers)
        segments = np.full(len(rows), self.old.number, np.int64)
        contents = {}
        for name in BYTE_FILES:
            sizes = rows[f"{name}_bytes"].astype(np.int64)
            spans = self._reader.gather(name, segments, rows[f"{name}_at"].astype(np.int64), sizes)
            rows[f"{name}_at"] = self.new.files[name].length + spans.starts[:-1]
            contents[name] = spans.data.tobytes()
        self.new.append(rows, contents)
        return len(rows) * STORED_ROW.itemsize + sum(map(len, contents.values()))
