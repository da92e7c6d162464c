"""Comparisons with 64 rows at a time give what counting bits one by one gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.kernels import kernel
from dedup_service.core.wide_kernels import (
    COMPARED_BYTES,
    MAX_BLOCK_RADIUS,
    SIEVE_PLANES,
    WIDE,
    bits_apart,
    lowest_bit,
    near_rows,
    rows_with_equal_block,
    similar_rows,
)

WORDS = st.integers(0, 2**64 - 1)
SEEDS = st.integers(0, 2**32 - 1)


@kernel
def similar(planes: np.ndarray, first: int, sieve: np.ndarray, most: int) -> np.uint64:
    """Call `similar_rows` for the rows from `first` on of planes uint8[SIEVE_PLANES, rows]."""
    return similar_rows(planes.ctypes.data + first, planes.shape[1], sieve.ctypes.data, most)


@kernel
def near(values: np.ndarray, value: np.uint64, most: int) -> tuple[np.uint64, bool]:
    """Call `near_rows` and `rows_with_equal_block` for values uint64[WIDE]."""
    return near_rows(values.ctypes.data, value, most), rows_with_equal_block(values.ctypes.data, value)


@kernel
def apart(both: np.ndarray) -> int:
    """Call `bits_apart` for both: uint8[2, COMPARED_BYTES]."""
    return bits_apart(both.ctypes.data, both.ctypes.data + both.shape[1])


@kernel
def lowest(word: np.uint64) -> int:
    """Call `lowest_bit`."""
    return lowest_bit(word)


def of_word(word: int) -> list[bool]:
    """Return the bits of a mask, that of the first row first."""
    return [bool(word >> bit & 1) for bit in range(WIDE)]


@given(SEEDS, st.integers(0, 128), st.integers(0, 7))
def test_rows_of_similar_sieves_are_found(seed: int, most: int, first: int) -> None:
    """A bit is set if and only if at most so many of 128 bits differ, wherever the rows begin."""
    chosen = np.random.default_rng(seed)
    rows = chosen.integers(0, 256, (WIDE + 8, SIEVE_PLANES), np.uint8)
    sieve = rows[0] ^ chosen.integers(0, 2, SIEVE_PLANES, np.uint8)
    differing = np.unpackbits(rows ^ sieve, axis=1).sum(axis=1)
    found = similar(np.ascontiguousarray(rows.T), first, sieve, most)
    assert of_word(int(found)) == (differing <= most)[first : first + WIDE].tolist()


@given(WORDS, st.lists(st.tuples(st.sets(st.integers(0, 63), max_size=9), st.integers(0, 63)), max_size=8), SEEDS)
def test_rows_near_a_fingerprint_are_found(value: int, close: list[tuple[set[int], int]], seed: int) -> None:
    """A bit is set if and only if at most so many bits differ; without an equal block, more than 3 do in every row."""
    values = np.random.default_rng(seed).integers(0, 2**64, WIDE, np.uint64)
    for bits, row in close:
        values[row] = value ^ sum(1 << bit for bit in bits)
    differing = [(int(one) ^ value).bit_count() for one in values]
    for most in (0, 3, 7):
        found, has_block = near(values, np.uint64(value), most)
        assert of_word(int(found)) == [bits <= most for bits in differing]
    blocks = [any((int(one) ^ value) >> shift & 0xFFFF == 0 for shift in (0, 16, 32, 48)) for one in values]
    assert has_block == any(blocks)
    assert has_block or min(differing) > MAX_BLOCK_RADIUS


@given(SEEDS, st.sampled_from([0, 1, 255]))
def test_differing_bits_of_sketches_are_counted(seed: int, most: int) -> None:
    """All bits of two sketches are counted, also if all of them differ."""
    both = np.random.default_rng(seed).integers(0, most + 1, (2, COMPARED_BYTES), np.uint8)
    both[1] ^= np.uint8(most)
    assert apart(both) == int(np.unpackbits(both[0] ^ both[1]).sum())


def test_all_bits_of_sketches_may_differ() -> None:
    """The count does not overflow."""
    assert apart(np.stack([np.zeros(COMPARED_BYTES, np.uint8), np.full(COMPARED_BYTES, 255, np.uint8)])) == 2048


@pytest.mark.parametrize("bit", range(0, 64, 7))
def test_the_lowest_bit_is_found(bit: int) -> None:
    """Higher bits do not count."""
    assert lowest(np.uint64(1 << 63 | 1 << bit)) == bit
