"""Profiles: the named ones, and those that users write."""

from dataclasses import replace
from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.rules.guards import NO_GUARDS, Guards
from dedup_service.core.rules.profiles import (
    PROFILES,
    RULES,
    parse_profile,
    profile_text,
    rule_for,
    rule_named,
    rule_text,
)
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
        ("k = 3", "candidates, match, guards, card, got 'k'"),
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
        ("guards = 3", r"tables \[candidates\], \[guards\] and \[card\]"),
        ("card = 3", r"tables \[candidates\], \[guards\] and \[card\]"),
        ("[candidates", "TOML"),
        ("[card]\nbias = 1" + "0" * 5000, "TOML"),
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


@pytest.mark.parametrize("name", [*RULES, "balanced:2", "body:3", "combined:0.9"])
def test_a_rule_is_shown_by_the_name_that_gives_it(name: str) -> None:
    """`both` is the same rule as `simhash`."""
    assert rule_text(rule_named(name) or rule_for()) == ("simhash" if name == "both" else name)


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("score = 0.5", "score = 0.9", "own: precise, score +0.4"),
        ("figures = 0.5\n", "", "own: precise, figures any of 'nearly the same text, no figure changed'"),
        ("words = 3", "body = 2", "own: precise, body ≤ 2 or a shared key"),
        ("max_hosts = 500", "max_hosts = 20", "own: precise, max_hosts 20"),
    ],
)
def test_an_own_rule_is_shown_by_what_it_changes(old: str, new: str, shown: str) -> None:
    """Of the profile with the fewest changes."""
    assert rule_text(parse_profile(profile_text(PROFILES["precise"]).replace(old, new))) == shown


def test_each_reason_of_a_profile_is_explained() -> None:
    """The table has each row that ships, whole or by its ending."""
    table = (Path(__file__).parents[3] / "docs/profiles.md").read_text("utf-8").partition("## What a reason says")[2]
    names = {row.name for rule in PROFILES.values() for row in rule.verified}
    assert not [name for name in names if f"| `{name.replace(', of', ' under').partition(' under')[0]}` |" not in table]
    assert all(f"… `{ending}` |" in table for ending in ("under another title", ", of a series"))


def test_a_rule_from_before_guards_is_shown_as_one() -> None:
    """It has the rows of a profile, so it has its name."""
    assert rule_text(replace(PROFILES["broad"], guards=NO_GUARDS)) == "own: broad, no guards"


def test_a_rule_with_rows_of_its_own_is_written_out() -> None:
    """With each bound; beside another rule with the same rows, only what differs is."""
    text = "[candidates]\nkeys = true\n[[match]]\nname = 'alike'\njaccard = 0.5\nscore = 1\nseries = 0\n"
    one, other = parse_profile(text), parse_profile(text.replace("score = 1", "score = 1.5"))
    guards = "guards: 10000 pages, 500 hosts, 100 titles, 40 % surge"
    assert rule_text(one) == f"own: a shared key; 'alike' (jaccard ≥ 0.5, score ≥ 1, series ≤ 0); {guards}"
    assert rule_text(other, than=one) == "the same but for score +0.5"
