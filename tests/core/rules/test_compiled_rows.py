"""Tests for compiled rule tables: against `Similarity` and `MatchRow.holds`, on evidence of any kind."""

import math
import random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service.core.evidence.packed import Evidence, pack_evidence
from dedup_service.core.evidence.quantities import QUANTITIES
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.rules.compiled_rows import DISTANT, NO_ROW, UNREADABLE, CompiledRows
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.text.normalise import fold, letters
from dedup_service.core.verdict import Distance
from tests.core.evidence.any_evidence import COMMON, DISTANCES, evidence_pairs

TINY = 1e-9
ANY = CompiledRows.of([MatchRow(name="any", jaccard=TINY)], TINY)


def ascends(page: Evidence) -> bool:
    """Whether the samples are as those of pages: ascending, sentences and terms distinct."""
    sentences, terms, numbers = page.sentence_values.tolist(), list(page.terms), list(page.numbers)
    return [sentences, terms, numbers] == [sorted(set(sentences)), sorted(set(terms)), sorted(numbers)]


def check_quantities(
    one: bytes, other: bytes, common: npt.NDArray[np.uint32], distance: Distance, *, same_host: bool
) -> None:
    """Compare all quantities of two pages, bit for bit."""
    assert ANY is not None
    kept, page = Evidence(one), Evidence(other)
    outcome = ANY.first(one, other, common, distance, same_host=same_host)
    similarity = Similarity(kept, page, distance, common, same_host)
    if not (kept.shingles and page.shingles) or page.rough_jaccard(one) < TINY:
        assert outcome == DISTANT
        return
    if outcome == UNREADABLE:
        assert not (ascends(kept) and ascends(page))
        return
    assert outcome == (0 if similarity.jaccard >= TINY else NO_ROW)
    for name in QUANTITIES:
        assert (name, ANY.quantity(name)) == (name, float(getattr(similarity, name)))


@settings(max_examples=150)
@given(evidence_pairs(), COMMON, DISTANCES, st.booleans())
def test_all_quantities_are_those_of_similarity(
    pair: tuple[bytes, bytes], common: npt.NDArray[np.uint32], distance: Distance, same_host: bool
) -> None:
    """Bit for bit, for evidence of any kind; evidence that no page has is refused or has the same quantities."""
    check_quantities(*pair, common, distance, same_host=same_host)


STORY = [
    f"The bridge over river {n} opens on 2024-05-{n + 10}, {n + 3} weeks early; tickets cost ${n}.50, a rise of {n}%."
    for n in range(40)
]
PASSAGES = [f"第{n}号线的工程提前{n + 2}周完工，沿线{n + 9}个车站将于下月起陆续开放。" for n in range(160)]


def prepared(rng: random.Random) -> tuple[bytes, npt.NDArray[np.uint32]]:
    """Evidence of a text of sentences of a story, and some of its sentences."""
    story = rng.choice([STORY, PASSAGES])
    start = rng.randrange(10)
    text = fold(" ".join(story[start : start + rng.choice([3, 20, 150])]) + rng.choice(["", " It rained 12 mm."]))
    title = rng.choice(["", "A bridge opens", "A bridge opens in May", "大桥通车"])
    page = Evidence(pack_evidence(fold(title), text, letters(text), b""))
    return page.packed, page.sentence_values[: rng.choice([0, 1, 4])]


def test_all_quantities_of_prepared_pages_are_those_of_similarity() -> None:
    """Of texts short and long, in frames and not; none of them is refused."""
    rng = random.Random(6)
    for _ in range(300):
        (one, ours), (other, theirs) = prepared(rng), prepared(rng)
        common = np.unique(np.concatenate([ours, theirs]))
        check_quantities(one, other, common, Distance(words=3, body=None), same_host=rng.random() < 0.5)
        assert ANY is not None
        assert ANY.first(one, other, common, Distance(), same_host=True) != UNREADABLE


BOUNDS: dict[str, st.SearchStrategy[float]] = {
    **dict.fromkeys(
        ("containment", "title", "title_on_host", "sentences", "numbers", "swapped_numbers", "alphabetic", "unspaced"),
        st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]),
    ),
    "min_letters": st.sampled_from([0, 1, 160, 10**400]),
    "missing_numbers": st.sampled_from([0, 1, 5, 10**400]),
    "figures": st.sampled_from([0.5, 1.0]),
    "length_ratio": st.sampled_from([1.0, 1.2, 2.0, 10**400, math.inf]),
    "words_distance": st.sampled_from([0, 3, 64]),
    "body_distance": st.sampled_from([0, 64]),
}
ROWS = st.lists(
    st.fixed_dictionaries({"jaccard": st.sampled_from([0.1, 0.5, 0.9, 1.0])}, optional=BOUNDS).map(
        lambda bounds: MatchRow(name="row", **bounds)
    ),
    min_size=1,
    max_size=4,
)


@given(evidence_pairs(), COMMON, DISTANCES, st.booleans(), ROWS)
def test_the_first_row_that_holds_is_found(
    pair: tuple[bytes, bytes],
    common: npt.NDArray[np.uint32],
    distance: Distance,
    same_host: bool,
    rows: list[MatchRow],
) -> None:
    """As `MatchRow.holds` says of one row after another."""
    compiled = CompiledRows.of(rows, TINY)
    assert compiled is not None
    outcome = compiled.first(*pair, common, distance, same_host=same_host)
    similarity = Similarity(*map(Evidence, pair), distance, common, same_host)
    holding = [number for number, row in enumerate(rows) if row.holds(similarity)]
    if outcome != UNREADABLE:
        assert max(outcome, -1) == (holding[0] if holding else -1)


@pytest.mark.parametrize("bound", ["metadata", "combined"])
def test_tables_with_bounds_in_exact_fractions_are_not_compiled(bound: str) -> None:
    """Their comparison with a bound is exact, which floats are not."""
    rows = [MatchRow(name="one", jaccard=0.5), MatchRow(name="other", jaccard=0.5, **{bound: 0.25})]
    assert CompiledRows.of(rows, 0.15) is None
    assert CompiledRows.of(rows[:1], 0.15) is not None
