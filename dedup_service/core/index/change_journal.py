"""Which words of a table a kernel changed, so that a snapshot writes these and nothing else.

A kernel that changes word `place` of a flat array calls `record(places, words, used, place, word)` with the new
content. `ChangeJournal.take` returns what was recorded since the last call. The journal has a fixed capacity; what
does not fit is counted and not stored, and the whole table has to be written instead.

Invariant: if a word was recorded more than once, the last one is what the table has.
"""

import numpy as np
import numpy.typing as npt

from dedup_service.core.kernels import kernel_inline

__all__ = ["ChangeJournal", "record"]


@kernel_inline
def record(
    places: npt.NDArray[np.uint64], words: npt.NDArray[np.uint64], used: npt.NDArray[np.int64], place: int, word: int
) -> None:
    """Record that word `place` is now `word`; a step of kernels. used: int64[1], the number of records."""
    at = used[0]
    if at < len(places):
        places[at] = place
        words[at] = word
    used[0] = at + 1


class ChangeJournal:
    """Recorded changes of one table. capacity: records until a table has to be written as a whole; 16 bytes each.

    places, words, used: the arguments of `record`; memory that is never written is not used.
    """

    def __init__(self, capacity: int) -> None:
        self.places: npt.NDArray[np.uint64] = np.empty(capacity, np.uint64)
        self.words: npt.NDArray[np.uint64] = np.empty(capacity, np.uint64)
        self.used: npt.NDArray[np.int64] = np.zeros(1, np.int64)

    def __len__(self) -> int:
        """Return the number of changes, those that were not stored included."""
        return int(self.used[0])

    def take(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]] | None:
        """Return places and words since the last call, uint64[m] each, as copies; None if they did not all fit."""
        count = len(self)
        self.used[0] = 0
        if count > len(self.places):
            return None
        return self.places[:count].copy(), self.words[:count].copy()
