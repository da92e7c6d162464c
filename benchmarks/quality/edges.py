"""Similar pairs of pages with their similarity: the common form of all compared systems except twinsieve.

An edge joins a later page to an earlier one. A greater `likeness` means more similar; a distance is stored
negated.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Edges:
    """later, earlier: places int64[n], sorted by later, then earlier; likeness: float64[n]."""

    later: Integers
    earlier: Integers
    likeness: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.later)

    def at_least(self, likeness: float) -> Self:
        """Return the edges with at least this likeness."""
        return self.where(self.likeness >= likeness)

    def where(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return the edges of a mask bool[n]."""
        return type(self)(self.later[chosen], self.earlier[chosen], self.likeness[chosen])


def edges_within(values: Words, present: npt.NDArray[np.bool_], radius: int) -> Edges:
    """Return all pairs of values uint64[n] within `radius` bits, by brute force. present: bool[n]."""
    places = np.flatnonzero(present)
    later, earlier = pairs_within(values[places], radius)
    far = distances(values[places][later], values[places][earlier])
    return Edges(places[later], places[earlier], -far.astype(np.float64))


def edges_sharing(pages: Integers, keys: Words) -> Edges:
    """Return all pairs of pages that share a key. pages: int64[m], the page of each key; keys: uint64[m].

    likeness: the number of keys that the two share.
    """
    order = np.lexsort((pages, keys))
    later, earlier = _pairs_of_runs(pages[order], keys[order])
    if not len(later):
        return Edges(later, earlier, np.empty(0))
    joined, shared = np.unique(later * (int(pages.max()) + 1) + earlier, return_counts=True)
    size = int(pages.max()) + 1
    return Edges(joined // size, joined % size, shared.astype(np.float64))


def distances(one: Words, other: Words) -> Integers:
    """Return the number of differing bits of each pair: int64[n]."""
    found: Integers = np.bitwise_count(one ^ other).astype(np.int64)
    return found


def _pairs_of_runs(pages: Integers, keys: Words) -> tuple[Integers, Integers]:
    """Return the pairs of different pages with equal keys. Equal keys must be adjacent."""
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])[: len(keys)]
    before = np.arange(len(keys)) - np.repeat(starts, np.diff(np.r_[starts, len(keys)]))
    places = np.repeat(np.arange(len(keys)), before)
    earlier = np.arange(len(places)) - np.repeat(np.cumsum(before) - before, before) + places - before[places]
    joined = pages[places] != pages[earlier]
    return pages[places[joined]], pages[earlier[joined]]


def pairs_within(fingerprints: Words, radius: int) -> tuple[Integers, Integers]:
    """Return the indexes (later, earlier) of all pairs within `radius`, sorted by later, then earlier.

    fingerprints: uint64[n]; both results are int64[m].
    """
    places = range(len(fingerprints))
    found = [np.flatnonzero(distances(fingerprints[:at], fingerprints[at : at + 1]) <= radius) for at in places]
    return np.repeat(places, [len(earlier) for earlier in found]), np.concatenate([np.empty(0, np.int64), *found])
