"""Tests for the hashes of features."""

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.features.hashing import java_hash, word_hasher, xxh3


def test_xxh3_has_64_or_128_bits_that_all_move() -> None:
    """One changed character flips about half the bits."""
    flipped = [(xxh3(f"word{i}") ^ xxh3(f"word{i}x")).bit_count() for i in range(200)]
    assert 28 < sum(flipped) / len(flipped) < 36
    assert xxh3("a", 128) >> 64


def test_the_java_hash_follows_its_recurrence() -> None:
    """It is x = u·2⁷, then x·1000003 ⊕ u, then ⊕ length, in UTF-16 units."""
    assert java_hash("a") == ((97 << 7) * 1000003 ^ 97) ^ 1
    assert java_hash("") == 0
    assert java_hash("𠮷") == java_hash("\ud842\udfb7")


def test_an_unknown_hash_is_refused() -> None:
    """The error names the choices."""
    with pytest.raises(ConfigurationError, match="xxh3, java"):
        word_hasher("md5")
