"""Differing bits and the table that finds a pair, compared with single bits and the real index."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.explain.channels import BLOCKS, compare_channel, tolerance_of
from dedup_service.core.index import BlockIndex
from dedup_service.core.index.block_layout import tolerance

FINGERPRINTS = st.integers(0, (1 << 64) - 1)
FLIPS = st.sets(st.integers(0, 63), max_size=10)


@given(FINGERPRINTS, FINGERPRINTS)
def test_bits_are_those_that_differ(one: int, other: int) -> None:
    """The bits are compared one by one; the number of different ones is the distance."""
    view = compare_channel("words", one, other, 3)
    assert list(view.bits) == [bit for bit in range(64) if (one >> bit & 1) != (other >> bit & 1)]
    assert view.distance == len(view.bits)


@given(FINGERPRINTS, FINGERPRINTS)
def test_blocks_are_the_fingerprint(one: int, other: int) -> None:
    """The blocks make up the fingerprints, and each has the differing bits of its range."""
    view = compare_channel("body", one, other, 7)
    assert sum(block.one << 16 * block.block for block in view.blocks) == one
    assert sum(block.other << 16 * block.block for block in view.blocks) == other
    for block in view.blocks:
        assert block.differing == sum(16 * block.block <= bit < 16 * block.block + 16 for bit in view.bits)


@given(FINGERPRINTS, FLIPS, st.integers(0, 7))
def test_the_named_table_finds_what_the_index_finds(one: int, flips: set[int], radius: int) -> None:
    """A pair is found iff the real index finds it; the named table is the first whose block agrees."""
    other = one ^ sum(1 << bit for bit in flips)
    index = BlockIndex(radius)
    index.insert(1, other)
    view = compare_channel("words", one, other, radius)
    assert view.found == (len(index.probe(one)) == 1)
    assert (view.table is not None) == view.found
    if view.table is not None:
        assert view.blocks[view.table].agrees
        assert not any(block.agrees for block in view.blocks[: view.table])


@pytest.mark.parametrize("radius", range(8))
def test_tolerances_are_those_of_the_index(radius: int) -> None:
    """The tolerance of every table equals that of the kernels."""
    assert [tolerance_of(radius, block) for block in range(BLOCKS)] == [
        tolerance(radius, table) for table in range(BLOCKS)
    ]


def test_without_a_fingerprint_or_an_index_nothing_is_found() -> None:
    """Nothing is found for a text that is too short for the block index, either."""
    assert compare_channel("words", None, 1, 3).distance is None
    assert compare_channel("words", None, 1, 3).blocks == ()
    assert not compare_channel("words", 1, 1, None).found
    assert not compare_channel("words", 1, 1, 3, indexed=False).found
