"""The most frequent of many things, in bounded memory.

Space-saving: so many things are counted at a time; one that is not takes the place of one with the least count, and
its count, plus one. So a count is at most that much too high, never too low, and what is not counted came at most as
often as the least that is.
Source: Metwally, Agrawal, El Abbadi, "Efficient computation of frequent and top-k elements in data streams", ICDT 2005.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Top", "TopK"]

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Top(Generic[T]):
    """A thing and how often it came: between count − at_most_over and count."""

    thing: T
    count: int
    at_most_over: int


class TopK(Generic[T]):
    """Counts at most `capacity` things. Adding takes the same time however many they are."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._counts: dict[T, int] = {}
        self._things: dict[int, OrderedDict[T, int]] = {}  # count → thing → how much of it may be another's
        self._minimum = 0

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def over(self) -> int:
        """How often, at most, a thing came that is not counted."""
        return self._minimum if len(self._counts) == self._capacity else 0

    def add(self, thing: T) -> None:
        """Count `thing` once."""
        count = self._counts.get(thing)
        if count is not None:
            self._put(thing, count + 1, self._take(thing, count))
        elif len(self._counts) < self._capacity:
            self._put(thing, 1, 0)
            self._minimum = 1
        else:
            minimum = self._minimum
            loser = next(iter(self._things[minimum]))
            self._take(loser, minimum)
            del self._counts[loser]
            self._put(thing, minimum + 1, minimum)
        while self._minimum not in self._things:
            self._minimum += 1

    def top(self, maximum: int) -> list[Top[T]]:
        """Return the most frequent, most frequent first."""
        found: list[Top[T]] = []
        for count in sorted(self._things, reverse=True):
            found += [Top(thing, count, over) for thing, over in self._things[count].items()]
            if len(found) >= maximum:
                break
        return found[:maximum]

    def _put(self, thing: T, count: int, over: int) -> None:
        self._counts[thing] = count
        things = self._things.get(count)
        if things is None:  # ordered, since the first of a plain dict is found past all that were taken out before
            things = self._things[count] = OrderedDict()
        things[thing] = over

    def _take(self, thing: T, count: int) -> int:
        """Take a thing out of its count, and return by how much that may be too high."""
        things = self._things[count]
        over = things.pop(thing)
        if not things:
            del self._things[count]
        return over
