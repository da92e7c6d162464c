"""The most frequent items of a stream, in bounded memory.

The Space-Saving algorithm: a fixed number of items is counted; an item that is not among them replaces one with the
minimum count and takes over that count plus one. So a count is never too low and at most by the minimum at that time
too high, and an item that is not counted occurred at most as often as the current minimum.
Source: Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams", ICDT 2005.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Top(Generic[T]):
    """An item and its frequency, which is between count − max_error and count."""

    item: T
    count: int
    max_error: int


class TopK(Generic[T]):
    """Counts at most `capacity` items. Adding one takes constant time."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._counts: dict[T, int] = {}
        self._items: dict[int, OrderedDict[T, int]] = {}  # count → item → maximum error of the count
        self._minimum = 0

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def over(self) -> int:
        """Maximum frequency of an item that is not counted."""
        return self._minimum if len(self._counts) == self._capacity else 0

    def add(self, item: T) -> None:
        """Count `item` once."""
        count = self._counts.get(item)
        if count is not None:
            self._put(item, count + 1, self._take(item, count))
        elif len(self._counts) < self._capacity:
            self._put(item, 1, 0)
            self._minimum = 1
        else:
            minimum = self._minimum
            replaced = next(iter(self._items[minimum]))
            self._take(replaced, minimum)
            del self._counts[replaced]
            self._put(item, minimum + 1, minimum)
        while self._minimum not in self._items:
            self._minimum += 1

    def top(self, limit: int) -> list[Top[T]]:
        """Return at most `limit` items, most frequent first."""
        top: list[Top[T]] = []
        for count in sorted(self._items, reverse=True):
            top += [Top(item, count, max_error) for item, max_error in self._items[count].items()]
            if len(top) >= limit:
                break
        return top[:limit]

    def _put(self, item: T, count: int, max_error: int) -> None:
        self._counts[item] = count
        items = self._items.get(count)
        if items is None:  # ordered: finding the first key of a plain dict skips every deleted one
            items = self._items[count] = OrderedDict()
        items[item] = max_error

    def _take(self, item: T, count: int) -> int:
        """Remove an item from its count, and return the maximum error of that count."""
        items = self._items[count]
        max_error = items.pop(item)
        if not items:
            del self._items[count]
        return max_error
