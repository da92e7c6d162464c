"""Differing bits and the table that finds a pair, compared with single bits and the real index."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.explain.channels import compare_channel
from tests.core.index.block_index import BlockIndex

FINGERPRINTS = st.integers(0, (1 << 64) - 1)
FLIPS = st.sets(st.integers(0, 63), max_size=10)


@given(FINGERPRINTS, FINGERPRINTS)
def test_bits_are_those_that_differ(one: int, other: int) -> None:
    """The bits are compared one by one; the number of different ones is the distance."""
    view = compare_channel("words", one, other, 3)
    assert list(view.bits) == [bit for bit in range(64) if (one >> bit & 1) != (other >> bit & 1)]
    assert view.distance == len(view.bits)


@given(FINGERPRINTS, FINGERPRINTS, st.none() | st.integers(0, 7))
def test_blocks_are_the_fingerprint(one: int, other: int, radius: int | None) -> None:
    """The blocks make up the fingerprints, and each has the differing bits of its range."""
    view = compare_channel("body", one, other, radius)
    assert [bit for block in view.blocks for bit in range(block.bits[0], block.bits[1] + 1)] == list(range(64))
    assert sum(block.one << block.bits[0] for block in view.blocks) == one
    assert sum(block.other << block.bits[0] for block in view.blocks) == other
    for block in view.blocks:
        assert block.differing == sum(block.bits[0] <= bit <= block.bits[1] for bit in view.bits)


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


def test_without_a_fingerprint_or_an_index_nothing_is_found() -> None:
    """Nothing is found for a text that is too short for the block index, either."""
    assert compare_channel("words", None, 1, 3).distance is None
    assert compare_channel("words", None, 1, 3).blocks == ()
    assert not compare_channel("words", 1, 1, None).found
    assert not compare_channel("words", 1, 1, 3, indexed=False).found
