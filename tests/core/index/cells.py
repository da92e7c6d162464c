"""A cell index that is asked one thing at a time, by batches of one."""

import numpy as np
import numpy.typing as npt

from dedup_service.core.errors import StateError
from dedup_service.core.evidence.keys import PARTS
from dedup_service.core.index.cell_index import CellAnswers, CellChanges, CellRows

NO_ROWS = np.empty(0, np.int64)


class Cells(CellRows):
    """Insertion, removal and probe of one page."""

    def insert(self, row: int, ordinal: int, keys: bytes, sieve: bytes) -> bytes:
        """Store an entry and return its path. keys: packed, b"" for none."""
        return self._change(row, ordinal, self._unpacked(keys), sieve, b"", removes=False).paths[0]

    def remove(self, row: int, ordinal: int, path: bytes) -> bool:
        """Remove an entry by its path; return False if the index does not have it so."""
        try:
            self._change(row, ordinal, self._unpacked(b""), bytes(16), path, removes=True)
        except StateError:
            return False
        return True

    def probe(self, keys: bytes, sieve: bytes) -> tuple[npt.NDArray[np.uint32], int]:
        """Return what the keys lead to and passes the sieve, and how many entries there were before the sieve."""
        sieves, none = np.frombuffer(sieve, np.uint64).reshape(1, 2), np.zeros((0, PARTS, self.levels), np.uint32)
        nothing = CellChanges(
            np.empty(0, np.uint32), NO_ROWS, np.empty(0, np.bool_), none, np.empty((0, 2), np.uint64), []
        )
        found = self.follow(nothing, np.zeros(1, np.int64), self._unpacked(keys), sieves)
        return found.rows, int(found.probed[0])

    def _change(
        self, row: int, ordinal: int, keys: npt.NDArray[np.uint32], sieve: bytes, path: bytes, *, removes: bool
    ) -> CellAnswers:
        change = CellChanges(
            np.array([row], np.uint32),
            np.array([ordinal], np.int64),
            np.array([removes]),
            keys,
            np.frombuffer(sieve, np.uint64).reshape(1, 2),
            [path],
        )
        return self.follow(change, NO_ROWS, keys[:0], np.empty((0, 2), np.uint64))

    def _unpacked(self, keys: bytes) -> npt.NDArray[np.uint32]:
        return np.frombuffer(keys or bytes(4 * PARTS * self.levels), "<u4").reshape(1, PARTS, self.levels)
