"""The family of rules that one number tightens and loosens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evaluation.calibration import OFFSETS, tightened, tightest_offset
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.evidence.similarity import Similarity
from dedup_service.core.rules.profiles import PROFILES, parse_profile, profile_text
from tests.interfaces.cli.edited import SENTENCES, edited, story
from tests.made_evidence import evidence_of

TABLES = [name for name, rule in PROFILES.items() if rule.verified]


def evidence(sentences: list[str]) -> Evidence:
    """The evidence of a text."""
    return Evidence(evidence_of(" ".join(sentences)))


@pytest.mark.parametrize("name", TABLES)
def test_only_the_jaccard_bounds_move(name: str) -> None:
    """Names, other bounds and candidates stay, and so does the row that requires the same text."""
    rule = PROFILES[name]
    for offset in (-0.13, 0.07):
        moved = tightened(rule, offset)
        assert (moved.conditions, moved.keys) == (rule.conditions, rule.keys)
        for before, after in zip(rule.verified, moved.verified, strict=True):
            assert {**before.to_dict(), "jaccard": 0} == {**after.to_dict(), "jaccard": 0}
            expected = before.jaccard if before.name == "same text" else round(before.jaccard + offset, 4)
            assert after.jaccard == min(expected, max(before.jaccard, 0.99))


@pytest.mark.parametrize("name", TABLES)
def test_offset_0_is_the_rule_itself(name: str) -> None:
    """A calibration that chooses 0 changes nothing."""
    assert tightened(PROFILES[name], 0.0) == PROFILES[name]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("offset", [OFFSETS[0], 0.01, -0.01, OFFSETS[-1]])
def test_every_rule_of_the_family_survives_a_profile_file(name: str, offset: float) -> None:
    """Reading the file again loses no precision."""
    rule = tightened(PROFILES[name], offset)
    assert parse_profile(profile_text(rule)) == rule


def test_distance_alone_has_no_family() -> None:
    """Without a table nothing can be tightened; the message says what to name instead."""
    with pytest.raises(ConfigurationError, match="name a profile with rows"):
        tightened(PROFILES["simhash"], 0.1)


@given(st.integers(0, 20), st.integers(0, SENTENCES), st.sampled_from(TABLES))
def test_a_looser_rule_keeps_every_match(seed: int, changed: int, name: str) -> None:
    """The tightest offset of a pair therefore determines all others."""
    similarity = Similarity(evidence(story(seed)), evidence(edited(seed, changed)))
    offsets = OFFSETS[::5]
    matches = [any(row.holds(similarity) for row in tightened(PROFILES[name], offset).verified) for offset in offsets]
    assert matches == sorted(matches)
    found = tightest_offset(lambda offset: matches[offsets.index(offset)], offsets)
    assert found == next((offset for offset, yes in zip(offsets, matches, strict=True) if yes), None)
