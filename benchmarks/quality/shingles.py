"""Exact Jaccard similarity of the 5-grams of letters, which sketches and samples estimate.

The letters are those of the evidence: of the folded body, without a first line that repeats the title and
without repost markers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.quality.edges import Edges
from dedup_service.core.evidence.packed import SHINGLE
from dedup_service.core.kernels import kernel
from dedup_service.core.page import Page
from dedup_service.core.text.folded_pages import without_repost_marks
from dedup_service.core.text.ngrams import distinct_ngrams
from dedup_service.core.text.normalise import fold, letters, without_headline

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class ShingleSets:
    """Sets one after the other, each ascending: set i is values[offsets[i] : offsets[i + 1]], uint64."""

    offsets: Integers
    values: Words

    @property
    def sizes(self) -> Integers:
        """The number of members of each set: int64[n]."""
        return np.diff(self.offsets)

    def jaccard(self, one: Integers, other: Integers) -> npt.NDArray[np.float64]:
        """Return the similarity of each pair of sets: float64[m]; 0 for two empty sets."""
        return _jaccard(self.offsets, self.values, one, other)

    def alike(self, minimum: float) -> Edges:
        """Return all pairs of sets with a similarity of at least `minimum`, which must be greater than 0."""
        owners = np.repeat(np.arange(len(self.offsets) - 1), self.sizes)
        order = np.argsort(self.values, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(self.values[order]) != 0])
        rank = np.empty(len(order), np.int64)
        rank[order] = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(order)]))
        later, earlier, found = _alike(self.offsets, rank, starts, owners[order], minimum)
        return Edges(later, earlier, found)


def body_of(page: Page) -> str:
    """Return the folded body of a page as the evidence uses it."""
    return without_repost_marks(without_headline(fold(page.text), fold(page.title)))


def shingle_sets(pages: Sequence[Page]) -> ShingleSets:
    """Return the sets of 5-grams of the bodies of `pages`."""
    sets = [np.sort(distinct_ngrams(letters(body_of(page)), SHINGLE)) for page in pages]
    offsets = np.zeros(len(sets) + 1, np.int64)
    np.cumsum([len(found) for found in sets], out=offsets[1:])
    return ShingleSets(offsets, np.concatenate(sets) if sets else np.empty(0, np.uint64))


@kernel
def _jaccard(offsets: Integers, values: Words, one: Integers, other: Integers) -> npt.NDArray[np.float64]:
    found = np.zeros(len(one), np.float64)
    for pair in range(len(one)):
        i, end_i = offsets[one[pair]], offsets[one[pair] + 1]
        j, end_j = offsets[other[pair]], offsets[other[pair] + 1]
        total, common = end_i - i + end_j - j, 0
        while i < end_i and j < end_j:
            if values[i] == values[j]:
                common += 1
                i += 1
                j += 1
            elif values[i] < values[j]:
                i += 1
            else:
                j += 1
        if total:
            found[pair] = common / (total - common)
    return found


@kernel
def _alike(
    offsets: Integers, rank: Integers, starts: Integers, owners: Integers, minimum: float
) -> tuple[Integers, Integers, npt.NDArray[np.float64]]:
    """Count, for each set, the members that it shares with each earlier set.

    rank: number of each member among the distinct ones. starts: where the owners of a member begin in
    `owners`; they are ascending.
    """
    count = len(offsets) - 1
    room, found = 1 << 16, 0
    later, earlier, likeness = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.float64)
    common, touched = np.zeros(count, np.int64), np.empty(count, np.int64)
    for one in range(count):
        seen = 0
        for place in range(offsets[one], offsets[one + 1]):
            at = starts[rank[place]]
            while owners[at] < one:
                if common[owners[at]] == 0:
                    touched[seen] = owners[at]
                    seen += 1
                common[owners[at]] += 1
                at += 1
        for before in np.sort(touched[:seen]):
            total = offsets[one + 1] - offsets[one] + offsets[before + 1] - offsets[before]
            value = common[before] / (total - common[before])
            common[before] = 0
            if value >= minimum:
                if found == room:
                    later, earlier = np.append(later, later), np.append(earlier, earlier)
                    likeness, room = np.append(likeness, likeness), 2 * room
                later[found], earlier[found], likeness[found] = one, before, value
                found += 1
    return later[:found], earlier[:found], likeness[:found]
