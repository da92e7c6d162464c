"""Tests for distinct character n-grams."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.text.ngrams import distinct_ngrams, ngram_hash
from dedup_service.core.text.normalise import letters


@given(st.text(alphabet="ab中文", max_size=60), st.integers(1, 5))
def test_each_distinct_ngram_counts_once(text: str, n: int) -> None:
    """There is one hash for each distinct n-gram, in order of first occurrence."""
    seen = letters(text)
    grams = list(dict.fromkeys(text[i : i + n] for i in range(len(text) - n + 1)))
    expected = [int(ngram_hash(letters(gram), 0, n)) for gram in grams]
    assert distinct_ngrams(seen, n).tolist() == expected


def test_too_short_a_text_has_none() -> None:
    """Fewer letters than n give an empty array."""
    assert len(distinct_ngrams(np.array([1, 2], dtype=np.uint32), 3)) == 0
