"""Tests for sketches: the estimate differs from the exact similarity by no more than the stated error."""

import random
import string
from array import array
from statistics import fmean, pstdev

import pytest

from dedup_service._native import distinct_ngrams
from dedup_service.core.evidence.packed import BINS, SHINGLE, SKETCH_BYTES, Evidence
from dedup_service.core.splitmix import GAMMA, splitmix64
from tests.made_evidence import evidence_of
from tests.oracle.similarity import estimated_jaccard


def sketch(text: str) -> bytes:
    """Return the sketch of a text of letters."""
    return Evidence(evidence_of(text)).sketch


def shingles(text: str) -> set[int]:
    """Return the hashes of the shingles of a text of letters."""
    return set(array("Q", distinct_ngrams(text, SHINGLE)))


def letters(count: int, seed: int) -> str:
    """Return so many letters."""
    return "".join(random.Random(seed).choices(string.ascii_lowercase, k=count))


@pytest.mark.parametrize("size", [40, 200, 900, 3000, 9000])
def test_the_error_of_the_estimate_is_as_stated(size: int) -> None:
    """There is no bias, and the standard error is at most .025, whatever the size of the sets."""
    errors = []
    for seed in range(60):
        jaccard = 0.2 + 0.7 * seed / 60
        text, common = letters(2 * size, seed), round(2 * size * jaccard / (1 + jaccard))
        one, other = text[:size], text[:common] + text[size : 2 * size - common]
        ours, theirs = shingles(one), shingles(other)
        errors.append(estimated_jaccard(sketch(one), sketch(other)) - len(ours & theirs) / len(ours | theirs))
    assert abs(fmean(errors)) < 0.01
    assert pstdev(errors) < 0.025


def test_no_shingles_give_an_empty_sketch() -> None:
    """All bits are 0."""
    assert sketch("abcd") == bytes(SKETCH_BYTES)


def sketch_by_definition(values: set[int]) -> int:
    """Return the bits of a sketch, by loops: rounds of hashes over all bins, then one round for each empty bin."""
    bins: dict[int, int] = {}
    for number in range(2 * BINS):
        hashes = [splitmix64(value + number * GAMMA) for value in values]
        if number < BINS:
            reached: dict[int, int] = {}
            for value in hashes:
                reached[value >> 53] = min(value, reached.get(value >> 53, value))
            bins = reached | bins
        else:
            bins.setdefault(number - BINS, min(hashes))
        if len(bins) == BINS:
            break
    return sum((value & 1) << place for place, value in bins.items())


@pytest.mark.parametrize("size", [5, 6, 11, 100, 600, 20_000])
def test_a_bin_has_the_smallest_value_of_the_first_round_that_reaches_it(size: int) -> None:
    """The bits are those of the definition, whether rounds reach all bins or not."""
    text = letters(size, size)
    assert int.from_bytes(sketch(text), "little") == sketch_by_definition(shingles(text))
