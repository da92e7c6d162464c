"""Counts by time: a ring of equal slots, the newest in progress.

Invariant: a ring is as large as it was made, and its sums are those of the slots that it still has; a clock that goes
back counts for the newest slot, one that leaps forward empties what it passes.
"""

from collections.abc import Iterable

__all__ = ["TimeSeries"]


class TimeSeries:
    """Counts of so many kinds in `slots` slots of `step_s` seconds. now_s: the time to begin at, in Unix seconds."""

    def __init__(self, step_s: int, slots: int, kinds: int, now_s: float) -> None:
        self.step_s = step_s
        self._counts = [[0] * slots for _ in range(kinds)]
        self._slots = slots
        self._newest = int(now_s // step_s)

    def add(self, now_s: float, counts: Iterable[int]) -> None:
        """Count what happened just now, one number a kind."""
        self.move(now_s)
        place = self._newest % self._slots
        for kind, count in zip(self._counts, counts, strict=True):
            kind[place] += count

    def move(self, now_s: float) -> None:
        """Begin the slots that time has reached."""
        slot = int(now_s // self.step_s)
        passed = min(slot - self._newest, self._slots)
        if passed <= 0:
            return
        for kind in self._counts:
            for at in range(slot - passed + 1, slot + 1):
                kind[at % self._slots] = 0
        self._newest = slot

    @property
    def newest_s(self) -> int:
        """Where the slot in progress begins, in Unix seconds."""
        return self._newest * self.step_s

    @property
    def start_s(self) -> int:
        """Where the oldest slot begins."""
        return (self._newest - self._slots + 1) * self.step_s

    def all(self) -> list[list[int]]:
        """Return the slots of each kind, oldest first, the one in progress last."""
        cut = (self._newest + 1) % self._slots
        return [kind[cut:] + kind[:cut] for kind in self._counts]

    def in_progress(self) -> tuple[int, ...]:
        """Return the counts of the slot in progress."""
        return tuple(kind[self._newest % self._slots] for kind in self._counts)

    def last(self, slots: int) -> list[tuple[int, ...]]:
        """Return the counts of the last whole slots, oldest first, one sequence of kinds each; not the one in progress.

        Before the ring began there was nothing: zeros.
        """
        slots = min(slots, self._slots - 1)
        places = [at % self._slots for at in range(self._newest - slots, self._newest)]
        return [tuple(kind[place] for kind in self._counts) for place in places]
