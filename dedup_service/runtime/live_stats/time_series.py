"""Counts by time: a ring of equal slots, the newest one in progress.

Invariant: the size of a ring is fixed. If the clock goes back, counts go to the newest slot; if it leaps forward, the
slots that it passes are emptied.
"""

from collections.abc import Iterable


class TimeSeries:
    """Counts of several kinds in `slots` slots of `step_s` seconds. now_s: Unix seconds at which the series begins."""

    def __init__(self, step_s: int, slots: int, kinds: int, now_s: float) -> None:
        self.step_s = step_s
        self._counts = [[0] * slots for _ in range(kinds)]
        self._slots = slots
        self._newest = int(now_s // step_s)

    def add(self, now_s: float, counts: Iterable[int]) -> None:
        """Add `counts`, one number for each kind, to the slot of `now_s`."""
        self.advance(now_s)
        position = self._newest % self._slots
        for kind, count in zip(self._counts, counts, strict=True):
            kind[position] += count

    def advance(self, now_s: float) -> None:
        """Begin new slots up to the one of `now_s`."""
        slot = int(now_s // self.step_s)
        passed = min(slot - self._newest, self._slots)
        if passed <= 0:
            return
        for kind in self._counts:
            for begun in range(slot - passed + 1, slot + 1):
                kind[begun % self._slots] = 0
        self._newest = slot

    @property
    def newest_s(self) -> int:
        """Begin of the slot in progress, in Unix seconds."""
        return self._newest * self.step_s

    @property
    def start_s(self) -> int:
        """Begin of the oldest slot, in Unix seconds."""
        return (self._newest - self._slots + 1) * self.step_s

    def all(self) -> list[list[int]]:
        """Return the counts of all slots for each kind, oldest first, the slot in progress last."""
        cut = (self._newest + 1) % self._slots
        return [kind[cut:] + kind[:cut] for kind in self._counts]

    def in_progress(self) -> tuple[int, ...]:
        """Return the counts of the slot in progress."""
        return tuple(kind[self._newest % self._slots] for kind in self._counts)

    def last(self, slots: int) -> list[tuple[int, ...]]:
        """Return the counts of the last complete slots, oldest first: a tuple for each slot, a number for each kind.

        Slots from before the series began are zeros.
        """
        slots = min(slots, self._slots - 1)
        positions = [slot % self._slots for slot in range(self._newest - slots, self._newest)]
        return [tuple(kind[position] for kind in self._counts) for position in positions]
