"""Exact Jaccard similarity of the 5-grams of letters, which sketches and samples estimate.

The letters are those of the evidence: of the folded body, without a first line that repeats the title and
without repost markers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.quality.edges import Edges
from dedup_service._native import PageText, distinct_ngrams
from dedup_service.core.page import Page

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

SHINGLE = 5
"""Letters of a shingle."""


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
        sets = np.split(self.values, self.offsets[1:-1])
        pairs = zip(one.tolist(), other.tolist(), strict=True)
        common = np.array([len(np.intersect1d(sets[a], sets[b], assume_unique=True)) for a, b in pairs], np.int64)
        union: Integers = self.sizes[one] + self.sizes[other] - common
        return common.astype(np.float64) / np.maximum(union, 1)

    def alike(self, minimum: float) -> Edges:
        """Return all pairs of sets with a similarity of at least `minimum`, which must be greater than 0."""
        sizes = self.sizes
        owners = np.repeat(np.arange(len(sizes)), sizes)
        order = np.argsort(self.values, kind="stable")  # the owners of a value are ascending
        owners_by_value = owners[order]
        starts = np.flatnonzero(np.r_[True, np.diff(self.values[order]) != 0])
        held_before, first_owner = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
        first_owner[order] = np.repeat(starts, np.diff(np.r_[starts, len(order)]))
        held_before[order] = np.arange(len(order)) - first_owner[order]
        found = [np.empty((3, 0))]
        for page, members in enumerate(zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True)):
            begins, counts = first_owner[slice(*members)], held_before[slice(*members)]
            places = np.repeat(begins - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
            common = np.bincount(owners_by_value[places], minlength=1)
            earlier = np.flatnonzero(common)
            likeness = common[earlier] / (sizes[page] + sizes[earlier] - common[earlier])
            enough = likeness >= minimum
            found.append(np.stack([np.full(enough.sum(), page), earlier[enough], likeness[enough]]))
        later, earlier, likeness = np.concatenate(found, axis=1)
        return Edges(later.astype(np.int64), earlier.astype(np.int64), likeness)


def body_of(page: Page) -> str:
    """Return the folded body of a page as the evidence uses it."""
    return PageText(page.title, page.text).body


def ngrams_of(text: str, title: str = "") -> Words:
    """Return the hashes of the distinct 5-grams of the letters of a page's body: uint64[n]."""
    return np.frombuffer(distinct_ngrams(PageText(title, text).letters, SHINGLE), np.uint64)


def shingle_sets(pages: Sequence[Page]) -> ShingleSets:
    """Return the sets of 5-grams of the bodies of `pages`."""
    sets = [np.sort(ngrams_of(page.text, page.title)) for page in pages]
    offsets = np.zeros(len(sets) + 1, np.int64)
    np.cumsum([len(found) for found in sets], out=offsets[1:])
    return ShingleSets(offsets, np.concatenate(sets) if sets else np.empty(0, np.uint64))
