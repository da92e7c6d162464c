"""The native rule: against `PlainSimilarity` and `MatchRow.holds`, on evidence of any kind."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service._native import ComparedPages, Entry, Rule
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.rules.rule import DistanceBound, MatchRule
from dedup_service.core.verdict import Distance
from tests.core.evidence.any_evidence import COMMON, DISTANCES, evidence_pairs, is_of_a_page
from tests.oracle.similarity import PlainSimilarity

SHARES = st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 0.9, 1.0])
BOUNDS: dict[str, st.SearchStrategy[float]] = {
    **dict.fromkeys(("containment", "title", "title_on_host", "metadata", "combined"), SHARES),
    "min_letters": st.sampled_from([0, 1, 160, 10**400]),
    "figures": st.sampled_from([0.5, 1.0]),
    "length_ratio": st.sampled_from([1.0, 1.2, 2.0, 10**400, math.inf]),
    "score": st.sampled_from([-9.0, -1.0, 0.0, 1.0]),
    "series": st.sampled_from([0, 1]),
    "words_distance": st.sampled_from([0, 3, 64]),
    "body_distance": st.sampled_from([0, 64]),
}
ROWS = st.lists(
    st.fixed_dictionaries({"jaccard": st.sampled_from([0.001, 0.1, 0.5, 0.9, 1.0])}, optional=BOUNDS),
    min_size=1,
    max_size=4,
).map(lambda rows: tuple(MatchRow(name=f"row {number}", **bounds) for number, bounds in enumerate(rows)))


def compared(
    rule: MatchRule, pair: tuple[bytes, bytes], common: list[int], bits: int | None, *, same_host: bool
) -> ComparedPages | None:
    """What the rule says of two pages whose words differ in so many bits, and whose texts differ."""
    word = None if bits is None else (1 << bits) - 1
    kept = Entry(1, None if bits is None else 0, None, 1, 1, text_hash=1, host=1, evidence=pair[0])
    page = Entry(2, word, None, 2, 2, text_hash=2, host=1 if same_host else 2, evidence=pair[1])
    return Rule(rule).compare(kept, page, common)


@settings(max_examples=300)
@given(evidence_pairs(), COMMON, DISTANCES, st.booleans(), ROWS)
def test_the_first_row_that_holds_makes_the_match(
    pair: tuple[bytes, bytes],
    common: list[int],
    distance: Distance,
    same_host: bool,
    rows: tuple[MatchRow, ...],
) -> None:
    """As `MatchRow.holds` says of one row after another; evidence that no page has is compared somehow."""
    rule = MatchRule(keys=True, verified=rows)
    found = compared(rule, pair, common, distance.words, same_host=same_host)
    kept, page = map(Evidence, pair)
    if not (is_of_a_page(kept) and is_of_a_page(page)):
        return
    similarity = PlainSimilarity(kept, page, distance, common, same_host)
    least = Rule(rule).min_rough_jaccard
    assert least == min(0.15, *(0.75 * row.jaccard for row in rows))
    may_match = kept.shingles and page.shingles and page.rough_jaccard(pair[0]) >= least
    holding = [row.name for row in rows if may_match and row.holds(similarity)]  # type: ignore[arg-type]
    if holding:
        assert found is not None
        assert (found.reason, found.score) == (holding[0], round(similarity.jaccard, 4))
    else:
        assert found is None or found.score is None


@given(evidence_pairs(), st.none() | st.integers(0, 64), st.integers(0, 7))
def test_without_a_table_the_distance_decides(pair: tuple[bytes, bytes], bits: int | None, bound: int) -> None:
    """Whatever the evidence is; a page without a fingerprint is near nothing."""
    found = compared(MatchRule((DistanceBound(words=bound),)), pair, [], bits, same_host=True)
    assert (found is not None) == (bits is not None and bits <= bound)
    assert found is None or found.reason == f"words ≤ {bound}"
