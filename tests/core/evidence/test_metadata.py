"""Tests for metadata sets and their Jaccard similarity."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.evidence.similarity import EXACT_LIMIT, jaccard, minhash, pack

MEMBERS = st.sets(st.text(alphabet="abcdefgh", min_size=1, max_size=3), min_size=1, max_size=20)


@given(MEMBERS, MEMBERS)
def test_small_sets_are_compared_exactly(a: set[str], b: set[str]) -> None:
    """The Jaccard similarity of small sets is the true one."""
    assert jaccard(pack(a), pack(b)) == Fraction(len(a & b), len(a | b))


def test_empty_metadata_says_nothing() -> None:
    """If either page has no members, the similarity is None, not zero."""
    assert pack(["", "  "]) == b""
    assert jaccard(b"", pack(["a"])) is None


def test_members_are_folded() -> None:
    """Case, width and Chinese script of a keyword do not matter."""
    assert pack(["國際", "ＡＩ"]) == pack(["ai", "国际"])


def test_large_sets_are_estimated_within_three_standard_errors() -> None:
    """128 independent permutations estimate J = 1/3 to within 3·√(J(1−J)/128)."""
    a = {f"w{i}" for i in range(4 * EXACT_LIMIT)}
    b = {f"w{i}" for i in range(2 * EXACT_LIMIT, 6 * EXACT_LIMIT)}
    estimate = jaccard(pack(a), pack(b))
    assert estimate is not None
    assert abs(float(estimate) - 1 / 3) < 3 * (2 / 9 / 128) ** 0.5


def test_a_signature_row_is_the_minimum_of_its_permutation() -> None:
    """The signature of a union is the row-wise minimum of the signatures."""
    a, b = np.array([3, 5, 8], dtype=np.uint64), np.array([5, 9], dtype=np.uint64)
    union = minhash(np.union1d(a, b))
    assert (union == np.minimum(minhash(a), minhash(b))).all()
