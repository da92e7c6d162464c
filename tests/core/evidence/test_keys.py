"""Min-hash keys, against sets of hashes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.evidence.keys import LEVELS, MAX_LEVELS, PARTS, min_hash_keys, packed_keys, unpacked_keys
from dedup_service.core.text.ngrams import distinct_ngrams, ngram_hash
from dedup_service.core.text.normalise import letters

WORD = (1 << 64) - 1
SEED = 0x5851F42D4C957F2D

texts = st.text("abc", max_size=400) | st.text(max_size=60)


def mix(value: int) -> int:
    """The finaliser of SplitMix64 in Python."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB & WORD
    return value ^ value >> 31


def keys_by_definition(text: str, n: int, levels: int) -> list[list[int]]:
    """In each part the smallest different keys of the set of n-grams, then zeros."""
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    parts: list[set[int]] = [set() for _ in range(PARTS)]
    for gram in {tuple(points[at : at + n].tolist()) for at in range(len(points) - n + 1)}:
        value = mix(int(ngram_hash(np.array(gram, np.uint32), 0, n)) ^ SEED)
        parts[value >> 61].add(max(value >> 29 & 0xFFFFFFFF, 1))
    return [(sorted(part) + [0] * levels)[:levels] for part in parts]


@given(texts, st.integers(1, 6), st.sampled_from([1, 2, LEVELS, MAX_LEVELS]))
def test_keys_are_the_smallest_of_each_part(text: str, n: int, levels: int) -> None:
    """However often an n-gram comes, and in whatever order."""
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    keys = min_hash_keys(distinct_ngrams(points, n), levels)
    assert (keys.shape, keys.dtype) == ((PARTS, levels), np.uint32)
    assert keys.tolist() == keys_by_definition(text, n, levels)


@given(st.text("ab", max_size=200), st.integers(1, 5))
def test_fewer_levels_are_the_first_of_more(text: str, levels: int) -> None:
    """So levels can be added without other keys before them; a row ascends and has no key twice."""
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    shingles = distinct_ngrams(points, 3)
    more = min_hash_keys(shingles, levels + 3)
    assert min_hash_keys(shingles, levels).tolist() == more[:, :levels].tolist()
    assert all(a < b or b == 0 for row in more.tolist() for a, b in pairwise(row))


@given(texts, st.integers(1, MAX_LEVELS))
def test_packed_keys_are_read_back(text: str, levels: int) -> None:
    """As many bytes as keys, little-endian; without any key none."""
    keys = min_hash_keys(distinct_ngrams(letters(text), 5), levels)
    packed = packed_keys(keys)
    assert unpacked_keys(packed, levels).tolist() == keys.tolist()
    assert len(packed) == (4 * PARTS * levels if keys.any() else 0)
    assert packed[:4] == int(keys[0, 0]).to_bytes(4, "little")[: len(packed)]


@pytest.mark.parametrize("packed", [b"", b"\1", bytes(31), b"\1" * (4 * PARTS * LEVELS - 1), b"\1" * 4 * PARTS])
def test_other_bytes_have_no_keys(packed: bytes) -> None:
    """Bytes of another length, as of another number of levels, read as a page without keys."""
    assert not unpacked_keys(packed, LEVELS).any()
