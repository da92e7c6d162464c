"""Min-hash keys, against sets of hashes."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.evidence.keys import LEVELS, MAX_LEVELS, PARTS, min_hash_keys, packed_keys, unpacked_keys
from dedup_service.core.text.ngrams import distinct_ngrams
from dedup_service.core.text.normalise import letters

WORD = (1 << 64) - 1
SEED = 0x5851F42D4C957F2D

hashes = st.lists(st.integers(0, 300) | st.integers(0, WORD), max_size=300)
texts = st.text("abc", max_size=300) | st.text(max_size=60)


def mix(value: int) -> int:
    """The finaliser of SplitMix64 in Python."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB & WORD
    return value ^ value >> 31


def unmix(value: int) -> int:
    """The hash that `mix` makes `value` of."""
    value ^= value >> 31 ^ value >> 62
    value = value * pow(0x94D049BB133111EB, -1, 1 << 64) & WORD
    value ^= value >> 27 ^ value >> 54
    value = value * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & WORD
    return value ^ value >> 30 ^ value >> 60


def keys_by_definition(shingles: list[int], levels: int) -> list[list[int]]:
    """In each part, which the upper three bits name, the smallest different keys of the set, then zeros."""
    parts: list[set[int]] = [set() for _ in range(PARTS)]
    for value in {mix(shingle ^ SEED) for shingle in shingles}:
        parts[value >> 61].add(max(value >> 29 & 0xFFFFFFFF, 1))
    return [(sorted(part) + [0] * levels)[:levels] for part in parts]


def keys_of(shingles: list[int], levels: int) -> list[list[int]]:
    """The keys that the code gives."""
    keys = min_hash_keys(np.array(shingles, np.uint64), levels)
    assert (keys.shape, keys.dtype) == ((PARTS, levels), np.uint32)
    found: list[list[int]] = keys.tolist()
    return found


@given(hashes, st.sampled_from([1, 2, LEVELS, MAX_LEVELS]))
def test_keys_are_the_smallest_of_each_part(shingles: list[int], levels: int) -> None:
    """However often a shingle comes, and in whatever order."""
    assert keys_of(shingles, levels) == keys_by_definition(shingles, levels)
    assert keys_of([*reversed(shingles), *shingles], levels) == keys_of(shingles, levels)


@given(
    st.lists(st.tuples(st.integers(0, 7), st.sampled_from([0, 1, 2, 3, WORD >> 32]), st.integers(0, 3)), max_size=40)
)
def test_equal_keys_of_different_shingles_are_one(made: list[tuple[int, int, int]]) -> None:
    """Also 0 and 1, since 0 is no key."""
    shingles = [unmix(part << 61 | key << 29 | low) ^ SEED for part, key, low in made]
    assert keys_of(shingles, 3) == keys_by_definition(shingles, 3)
    assert [set(row) - {0} for row in keys_of(shingles, 8)] == [
        {max(key, 1) for part, key, _ in made if part == number} for number in range(PARTS)
    ]


@pytest.mark.parametrize("parts", [1, PARTS])
@pytest.mark.parametrize("size", [100, 400, 5_000])
def test_keys_of_many_shingles_are_the_smallest_too(size: int, parts: int) -> None:
    """Of pages as long as most, and of shingles that nearly all belong to one part, which no hash brings about."""
    chosen = random.Random(size)
    shingles = [unmix((chosen.randrange(parts) << 61) + chosen.getrandbits(61)) ^ SEED for _ in range(size)]
    shingles += [unmix((part << 61) + chosen.getrandbits(61)) ^ SEED for part in range(PARTS) for _ in range(9)]
    assert keys_of(shingles, LEVELS) == keys_by_definition(shingles, LEVELS)


@given(hashes, st.integers(1, 5))
def test_fewer_levels_are_the_first_of_more(shingles: list[int], levels: int) -> None:
    """A row ascends and has no key twice."""
    more = keys_of(shingles, levels + 3)
    assert keys_of(shingles, levels) == [row[:levels] for row in more]
    assert all(a < b or b == 0 for row in more for a, b in pairwise(row))


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
