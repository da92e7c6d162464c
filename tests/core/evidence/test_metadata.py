"""Tests for metadata sets and their Jaccard similarity."""

from collections.abc import Iterable
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity, jaccard
from tests.made_evidence import evidence_of

MEMBERS = st.sets(st.text(alphabet="abcdefgh", min_size=1, max_size=3), min_size=1, max_size=20)
EXACT_LIMIT = 64


def metadata(members: Iterable[str]) -> bytes:
    """Return the packed set."""
    return Evidence(evidence_of("", metadata=members)).metadata


@given(MEMBERS, MEMBERS)
def test_small_sets_are_compared_exactly(a: set[str], b: set[str]) -> None:
    """The Jaccard similarity of small sets is the true one."""
    assert jaccard(metadata(a), metadata(b)) == Fraction(len(a & b), len(a | b))


def test_empty_metadata_says_nothing() -> None:
    """If either page has no members, the similarity is None, not zero."""
    assert metadata(["", "  "]) == b""
    assert jaccard(b"", metadata(["a"])) is None


def test_members_are_folded() -> None:
    """Case, width and Chinese script of a keyword do not matter."""
    assert metadata(["國際", "ＡＩ"]) == metadata(["ai", "国际"])


def test_large_sets_are_estimated_within_three_standard_errors() -> None:
    """128 independent permutations estimate J = 1/3 to within 3·√(J(1−J)/128)."""
    a = {f"w{i}" for i in range(4 * EXACT_LIMIT)}
    b = {f"w{i}" for i in range(2 * EXACT_LIMIT, 6 * EXACT_LIMIT)}
    estimate = jaccard(metadata(a), metadata(b))
    assert estimate is not None
    assert abs(float(estimate) - 1 / 3) < 3 * (2 / 9 / 128) ** 0.5


def test_a_small_set_is_compared_with_a_large_one() -> None:
    """By the signature that the small one would have, as decisions compare them."""
    small, large = {f"w{i}" for i in range(EXACT_LIMIT)}, {f"w{i}" for i in range(EXACT_LIMIT + 1)}
    one, other = Evidence(evidence_of("", metadata=small)), Evidence(evidence_of("", metadata=large))
    estimate = jaccard(one.metadata, other.metadata)
    assert estimate is not None
    assert estimate > 0.9
    assert float(estimate) == Similarity(one, other).metadata
