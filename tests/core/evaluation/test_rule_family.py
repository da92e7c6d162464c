"""The family of rules that one number tightens and loosens."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evaluation.calibration import offsets_of, tightened, tightest_offset
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
def test_only_the_scores_move(name: str) -> None:
    """Names, other bounds and candidates stay."""
    rule = PROFILES[name]
    for offset in (-0.13, 0.07):
        moved = tightened(rule, offset)
        assert (moved.conditions, moved.keys) == (rule.conditions, rule.keys)
        for before, after in zip(rule.verified, moved.verified, strict=True):
            assert {**before.to_dict(), "score": 0} == {**after.to_dict(), "score": 0}
            assert after.score == round((before.score or 0) + offset, 4)


def test_without_scores_the_jaccard_bounds_move() -> None:
    """Within their range; a row without a score stays if another has one."""
    row = "[[match]]\nname = '{0}'\njaccard = {0}\n"
    rule = parse_profile("[candidates]\nkeys = true\n" + row.format(0.5) + row.format(0.9))
    assert [row.jaccard for row in tightened(rule, 0.3).verified] == [0.8, 0.99]
    mixed = replace(rule, verified=(*rule.verified, *PROFILES["precise"].verified))
    assert tightened(mixed, 0.3).verified == (*rule.verified, *tightened(PROFILES["precise"], 0.3).verified)


@pytest.mark.parametrize("name", TABLES)
def test_offset_0_is_the_rule_itself(name: str) -> None:
    """A calibration that chooses 0 changes nothing."""
    assert tightened(PROFILES[name], 0.0) == PROFILES[name]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("offset", [4, 0.1, -0.1, -4])
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
    offsets = offsets_of(PROFILES[name])[::5]
    matches = [any(row.holds(similarity) for row in tightened(PROFILES[name], offset).verified) for offset in offsets]
    assert matches == sorted(matches)
    found = tightest_offset(lambda offset: matches[offsets.index(offset)], offsets)
    assert found == next((offset for offset, yes in zip(offsets, matches, strict=True) if yes), None)
