"""Profiles: the named ones, and those that users write."""

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rules.guards import NO_GUARDS, Guards
from dedup_service.core.rules.profiles import PROFILES, parse_profile, profile_text, rule_for, rule_named
from dedup_service.core.rules.rule import MatchRule


@pytest.mark.parametrize("name", ["balanced", "precise", "broad"])
def test_a_profile_written_to_a_file_is_the_same(name: str) -> None:
    """A user can therefore start from a profile that ships."""
    assert parse_profile(profile_text(PROFILES[name])) == PROFILES[name]


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_survives_the_log(name: str) -> None:
    """A policy record contains the whole table."""
    assert MatchRule.from_dict(PROFILES[name].to_dict()) == PROFILES[name]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k = 3", "candidates, match, guards, got 'k'"),
        ("[candidates]\nbody = 9", "from 0 to 7"),
        ("[candidates]\nbody = true", "number of bits"),
        ("[candidates]\nkeys = 1", "true or false"),
        ("[candidates]\nkeys = true", "give the rule a table"),
        ("[[match]]\nname = 'a'\njaccard = 0.5", "finds no candidates"),
        ("[candidates]\nbody = 3\n[[match]]\njaccard = 0.5", "needs a name"),
        ("match = 3", r"rows \[\[match\]\]"),
        ("[candidates]\nbody = 3\n[guards]\nmost = 1", "max_titles, surge_percent, got 'most'"),
        ("[candidates]\nbody = 3\n[guards]\nmax_hosts = -1", "max_hosts of the guards must be a whole number"),
        ("[candidates]\nbody = 3\n[guards]\nsurge_percent = 101", "at most 100"),
        ("guards = 3", r"tables \[candidates\] and \[guards\]"),
        ("[candidates", "TOML"),
    ],
)
def test_an_invalid_profile_is_refused(text: str, message: str) -> None:
    """The message says what is wrong and what is valid."""
    with pytest.raises(ConfigurationError, match=message):
        parse_profile(text)


def test_a_rule_that_no_profile_can_express_is_refused() -> None:
    """A condition on both channels, or μ, cannot be expressed."""
    for rule in (rule_for("both"), rule_for(mu=0.9)):
        with pytest.raises(ConfigurationError):
            profile_text(rule)


def test_the_default_is_the_default_profile() -> None:
    """`k` alone replaces its radii."""
    assert rule_for() == PROFILES["balanced"]
    narrow = rule_for(k=1)
    assert (narrow.verified, narrow.keys) == (PROFILES["balanced"].verified, True)
    assert {near.body for near in narrow.conditions} | {near.words for near in narrow.conditions} == {1, None}


def test_two_complete_rules_are_refused() -> None:
    """Neither of them is silently ignored."""
    for arguments in (
        {"channels": "both", "mu": 0.9},
        {"mu": 0.9, "k": 3},
        {"channels": "body", "profile": PROFILES["broad"]},
    ):
        with pytest.raises(ConfigurationError):
            rule_for(**arguments)  # type: ignore[arg-type]


def test_a_rule_has_a_name() -> None:
    """A profile or channels, each also with a radius, or the combined similarity; other names are of files."""
    assert {name: rule_named(name) for name in PROFILES} == PROFILES
    assert rule_named("precise:2") == PROFILES["precise"].with_radius(2)
    assert (rule_named("body"), rule_named("both:0")) == (rule_for("body"), rule_for("both", k=0))
    assert rule_named("combined:.8") == rule_for(mu=0.8)
    assert rule_named("news.toml") is rule_named("c:/news") is None


@pytest.mark.parametrize("name", ["words:8", "balanced:", "body:+3", "combined", "combined:0", "combined:1.5"])
def test_a_rule_with_a_wrong_number_is_refused(name: str) -> None:
    """It is no name of a file."""
    with pytest.raises(ConfigurationError):
        rule_named(name)


def test_a_profile_file_sets_guards() -> None:
    """An omitted bound has its default, 0 switches it off; a file without the table has all defaults."""
    text = "[candidates]\nbody = 3\n"
    assert parse_profile(text).guards == Guards()
    assert parse_profile(text + "[guards]\nmax_hosts = 0\n").guards == Guards(max_hosts=0)
    unguarded = MatchRule(parse_profile(text).conditions)
    assert parse_profile(profile_text(unguarded)).guards == NO_GUARDS
