"""Tests for the matcher: a rule table gives the same answer compiled and by its definition."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.matching import Matcher
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.match_row import MatchRow
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.core.verdict import Distance
from tests.core.evidence.any_evidence import COMMON, DISTANCES, evidence_pairs

NEVER = MatchRow(name="never", jaccard=1.0, min_letters=1 << 40, metadata=1.0)
"""A row that never holds; with it, a table is not compiled."""

PROFILE_NAMES = ["balanced", "precise", "broad"]
COMPILED = {name: Matcher(PROFILES[name]) for name in PROFILE_NAMES}
BY_DEFINITION = {
    name: Matcher(replace(PROFILES[name], verified=(*PROFILES[name].verified, NEVER))) for name in PROFILE_NAMES
}


@pytest.mark.parametrize("profile", PROFILE_NAMES)
@given(evidence_pairs(), COMMON, DISTANCES, st.booleans())
def test_a_compiled_table_gives_the_matches_of_its_definition(
    profile: str,
    pair: tuple[bytes, bytes],
    common: npt.NDArray[np.uint32],
    distance: Distance,
    same_host: bool,
) -> None:
    """Score, reason and near miss, too, for evidence of any kind."""
    words = None if distance.words is None else (1 << distance.words) - 1
    entry = Entry(7, 0, None, 1, 1, evidence=pair[0])
    page = PreparedPage(Page(url="", canonical_url="", id=""), Fingerprint(words), 2, pair[1])
    found = [
        matcher[profile].compare(entry, page, Evidence(pair[1]), common, same_host=same_host)
        for matcher in (COMPILED, BY_DEFINITION)
    ]
    assert found[0] == found[1]
