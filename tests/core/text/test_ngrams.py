"""Tests for distinct character n-grams."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.splitmix import GAMMA, splitmix64
from dedup_service.core.text.ngrams import distinct_ngrams
from dedup_service.core.text.normalise import letters


def ngram_hash(gram: str) -> int:
    """A polynomial of the code points modulo 2**64, mixed by the finaliser of SplitMix64."""
    value = len(gram)
    for character in gram:
        value = (value * int(GAMMA) + ord(character)) % 2**64
    return splitmix64((value - int(GAMMA)) % 2**64)


@given(st.text(alphabet="ab中文", max_size=60), st.integers(1, 5))
def test_each_distinct_ngram_counts_once(text: str, n: int) -> None:
    """There is one hash for each distinct n-gram, in order of first occurrence."""
    seen = letters(text)
    grams = list(dict.fromkeys(text[i : i + n] for i in range(len(text) - n + 1)))
    expected = [ngram_hash(gram) for gram in grams]
    assert distinct_ngrams(seen, n).tolist() == expected


def test_too_short_a_text_has_none() -> None:
    """Fewer letters than n give an empty array."""
    assert len(distinct_ngrams(np.array([1, 2], dtype=np.uint32), 3)) == 0
