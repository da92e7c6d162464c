"""Blocks and tolerances: the arithmetic that exactness rests on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.index import block_halves, block_layout
from tests.core.index.streams import fingerprints


@pytest.mark.parametrize("radius", range(8))
def test_tolerances_leave_no_gap(radius: int) -> None:
    """The tolerances plus one add up to the radius plus one, so blocks cannot all differ in more bits."""
    tolerances = [block_layout.tolerance(radius, table) for table in range(block_layout.tables_for(radius))]
    assert sum(tolerance + 1 for tolerance in tolerances) == radius + 1
    assert set(tolerances) <= {0, 1}


@settings(deadline=None)  # the first example compiles
@given(fingerprint=fingerprints(), table=st.integers(0, 3))
def test_block_and_remaining_bits_make_the_fingerprint(fingerprint: int, table: int) -> None:
    """A key and the other 48 bits contain every bit of the fingerprint once."""
    key = block_layout.home_bucket(np.uint64(fingerprint), table) - (table << 16)
    rest = int(block_layout.remaining_bits(np.uint64(fingerprint), table))
    below = (1 << (16 * table)) - 1
    assert (rest & below) | (key << (16 * table)) | ((rest & ~below) << 16) == fingerprint
    subs = [block_layout.sub_bucket(np.uint64(rest), sub) - (sub << 12) for sub in range(4)]
    assert sum(key << (12 * sub) for sub, key in enumerate(subs)) == rest


@pytest.mark.parametrize("radius", range(4))
def test_tolerances_of_halves_leave_no_gap(radius: int) -> None:
    """The tolerances of the compact layout plus one add up to the radius plus one, too."""
    tolerances = [block_halves.half_tolerance(radius, half) for half in range(2)]
    assert sum(tolerance + 1 for tolerance in tolerances) == radius + 1
    assert set(tolerances) <= {-1, 0, 1}
