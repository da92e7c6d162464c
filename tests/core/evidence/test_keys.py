"""Min-hash keys, against sets of hashes."""

import random
import string
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service._native import PageText, distinct_ngrams
from dedup_service.core.evidence.keys import LEVELS, PARTS, unpacked_keys
from dedup_service.core.evidence.packed import SHINGLE
from dedup_service.core.splitmix import GAMMA, splitmix64
from tests.made_evidence import prepared_text

SEED = 0x5851F42D4C957F2D


def keys_by_definition(text: str) -> list[tuple[int, ...]]:
    """In each part, which the upper three bits name, the smallest different keys of the set, then zeros."""
    parts: list[set[int]] = [set() for _ in range(PARTS)]
    for shingle in array("Q", distinct_ngrams(PageText("", text).letters, SHINGLE)):
        value = splitmix64((shingle ^ SEED) - GAMMA)
        parts[value >> 61].add(max(value >> 29 & 0xFFFFFFFF, 1))
    return [tuple((sorted(part) + [0] * LEVELS)[:LEVELS]) for part in parts]


@given(st.text("abc", min_size=5, max_size=300) | st.text(max_size=60))
def test_keys_are_the_smallest_of_each_part(text: str) -> None:
    """However often a shingle comes, of a text with few shingles or none."""
    assert unpacked_keys(prepared_text(text).keys, LEVELS) == keys_by_definition(text)


@pytest.mark.parametrize("size", [100, 400, 5_000])
def test_keys_of_many_shingles_are_the_smallest_too(size: int) -> None:
    """Of pages as long as most; all keys are there."""
    text = "".join(random.Random(size).choices(string.ascii_lowercase, k=size))
    keys = unpacked_keys(prepared_text(text).keys, LEVELS)
    assert keys == keys_by_definition(text)
    assert size < 400 or min(map(min, keys)) > 0


@pytest.mark.parametrize("packed", [b"", b"\1", bytes(31), b"\1" * (4 * PARTS * LEVELS - 1), b"\1" * 4 * PARTS])
def test_other_bytes_have_no_keys(packed: bytes) -> None:
    """Bytes of another length, as of another number of levels, read as a page without keys."""
    assert unpacked_keys(packed, LEVELS) == [(0,) * LEVELS] * PARTS
